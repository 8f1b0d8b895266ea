import { relative } from 'node:path'
import { flagOf, settings } from '../config/settings.ts'
import type { Holdfast } from '../engine/engine.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { boundOf } from '../reaper/recovery-bound.ts'
import { ladderLines } from './format-ladder.ts'
import { formatDuration } from './format-time.ts'
import { paint } from './terminal.ts'

/** The URL of the HTTP API, and whether it needs keys. */
export interface Api {
  url: string
  needsKey: boolean
}

/** What the banner shows. */
export interface BannerFacts {
  hf: Holdfast
  api: Api
  /** Where the embedded Postgres keeps its data; undefined if the database is not embedded. */
  dataDir: string | undefined
  pids: readonly number[]
  isSample: boolean
}

/** What `holdfast dev` prints once everything is running: where things are, and what to try. */
export function banner({ hf, api, dataDir, pids, isSample }: BannerFacts): string[] {
  const { config } = hf
  const name = (word: string) => paint('bold', word.padEnd(10))
  const where = dataDir === undefined ? undefined : nearPath(dataDir)
  const at = whereFlag(hf, dataDir)
  const tries: [line: string, about: string][] = [
    [`${command()} jobs${at}`, 'list jobs'],
    [`${command()} show <id>${at}`, 'show one job with its timeline'],
    ...(isSample
      ? [
          [`${command()} submit extract '{"document":"invoice-1001.txt"}' --wait${at}`, 'submit a job'] as [
            string,
            string,
          ],
          [curlLine(api), 'submit over HTTP'] as [string, string],
        ]
      : []),
    [`${command()} --help`, 'all commands'],
  ]
  const width = Math.max(...tries.map(([line]) => line.length))
  return [
    '',
    `${paint('green', 'Holdfast is running.')} Press Ctrl-C to stop.`,
    '',
    `  ${name('database')} ${withoutPassword(hf.url)}${where ? ` (password in ${where}/password)` : ''}`,
    ...(where ? [`  ${name('data')} ${where}`] : []),
    `  ${name('api')} ${api.url} (docs: ${api.url}/docs), ${api.needsKey ? 'every request needs an API key' : 'no API key needed from this machine'}`,
    `  ${name('workers')} ${pids.length === 1 ? '1 process' : `${pids.length} processes`} (${pids.join(', ')}), ${config.concurrency} handlers each`,
    `  ${name('recovery')} a job that loses its worker is recovered within ${formatDuration(boundOf(config))}:`,
    ...ladderLines(config).map((line) => `  ${' '.repeat(10)} ${line}`),
    '',
    'In another terminal:',
    ...tries.map(([line, about]) => `  ${paint('cyan', line.padEnd(width))}  ${paint('dim', about)}`),
    '',
  ]
}

function curlLine({ url, needsKey }: Api): string {
  const key = needsKey ? ' -H "authorization: Bearer $HOLDFAST_KEY"' : ''
  return `curl ${url}/v1/jobs -H 'content-type: application/json'${key} -d '{"kind":"extract","input":{"document":"invoice-1001.txt"}}'`
}

/** The flag that makes a command in another terminal use this database. */
function whereFlag({ config }: Holdfast, dataDir: string | undefined): string {
  if (dataDir === undefined) return ` ${flagOf('url')} …`
  return config.dataDir === settings.dataDir.default ? '' : ` ${flagOf('dataDir')} ${config.dataDir}`
}

function nearPath(path: string): string {
  const near = relative(process.cwd(), path)
  return near === '' || near.startsWith('..') ? path : near
}

// `npm start` does not put `holdfast` on the path; npx finds it in the project
function command(): string {
  return process.env.npm_lifecycle_event ? 'npx holdfast' : 'holdfast'
}
