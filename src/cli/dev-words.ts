import { relative } from 'node:path'
import { flagOf, settings } from '../config/settings.ts'
import type { Holdfast } from '../engine/engine.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { boundOf } from '../reaper/bound.ts'
import { ladderLines } from './ladder-words.ts'
import { paint } from './terminal.ts'
import { lengthWords } from './time-words.ts'

/** Where the HTTP API is, and whether it asks for keys. */
export interface Api {
  url: string
  needsKey: boolean
}

/** What there is to say once everything runs. */
export interface BannerFacts {
  hf: Holdfast
  api: Api
  /** Where the embedded Postgres keeps its data; undefined if the database is not embedded. */
  dataDir: string | undefined
  pids: readonly number[]
  isSample: boolean
}

/** What `holdfast dev` says once everything runs: where things are, and what to try. */
export function banner({ hf, api, dataDir, pids, isSample }: BannerFacts): string[] {
  const { config } = hf
  const name = (word: string) => paint('bold', word.padEnd(10))
  const where = dataDir === undefined ? undefined : nearPath(dataDir)
  const at = whereFlag(hf, dataDir)
  const tries: [line: string, about: string][] = [
    [`${command()} jobs${at}`, 'what there is'],
    [`${command()} show <id>${at}`, 'one job, with its timeline'],
    ...(isSample
      ? [
          [`${command()} submit extract '{"document":"invoice-1001.txt"}' --wait${at}`, 'another one'] as [
            string,
            string,
          ],
          [curlLine(api), 'the same over HTTP'] as [string, string],
        ]
      : []),
    [`${command()} --help`, 'all commands'],
  ]
  const width = Math.max(...tries.map(([line]) => line.length))
  return [
    '',
    `${paint('green', 'Holdfast runs.')} Ctrl-C stops it.`,
    '',
    `  ${name('database')} ${withoutPassword(hf.url)}${where ? ` (its password is in ${where}/password)` : ''}`,
    ...(where ? [`  ${name('data')} ${where}`] : []),
    `  ${name('api')} ${api.url} (docs: ${api.url}/docs), ${api.needsKey ? 'every request needs an API key' : 'no key needed from this machine'}`,
    `  ${name('workers')} ${pids.length === 1 ? '1 process' : `${pids.length} processes`} (${pids.join(', ')}), ${config.concurrency} handlers each`,
    `  ${name('recovery')} a job whose worker is lost moves again within ${lengthWords(boundOf(config))}:`,
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

/** What another terminal must add to mean this database. */
function whereFlag({ config }: Holdfast, dataDir: string | undefined): string {
  if (dataDir === undefined) return ` ${flagOf('url')} …`
  return config.dataDir === settings.dataDir.default ? '' : ` ${flagOf('dataDir')} ${config.dataDir}`
}

function nearPath(path: string): string {
  const near = relative(process.cwd(), path)
  return near === '' || near.startsWith('..') ? path : near
}

// `npm start` puts no `holdfast` on the path; npx finds it in the project
function command(): string {
  return process.env.npm_lifecycle_event ? 'npx holdfast' : 'holdfast'
}
