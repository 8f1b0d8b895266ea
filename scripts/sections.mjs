// The parts of the docs that are derived from code, by the name that a page asks for them with.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rooms as allRooms, groups } from './rooms.mjs'
import { root } from './setup.mjs'

const built = (path) => import(new URL(`../dist/${path}.js`, import.meta.url).href)

/** Every section: its name, and how to write it. */
export const sections = {
  hello,
  rooms,
  'room-order': roomOrder,
  ladder,
  bounds,
  orphans,
  verdicts,
  repairs,
  settings,
  errors,
  diagram,
  machine,
  events,
  metrics,
  invariants,
  faults,
  cli,
  operations,
}

function hello() {
  return fenced('js', readFileSync(join(root, 'examples', 'hello.mjs'), 'utf8'))
}

function rooms() {
  return table(
    ['room', 'what it holds'],
    allRooms.flatMap((group) => Object.entries(group).map(([name, holds]) => [code(name), holds])),
  )
}

function roomOrder() {
  return fenced('text', groups.map((group) => group.join(' ')).join('\n◂ '))
}

async function operations() {
  const { operations: all } = await built('http/operations')
  return table(
    ['operation', 'request', 'scope', 'what it does'],
    all.map((one) => [
      code(one.id),
      code(`${one.method.toUpperCase()} ${one.path}`),
      one.isForAll ? `${one.scope}, all tenants` : one.scope,
      [`${one.summary}.`, one.about].filter(Boolean).join(' '),
    ]),
  )
}

async function ladder() {
  return table(
    ['what happens', 'how it is detected', 'its jobs move again within'],
    (await rungs()).map((one) => [one.when, one.rung, within(one)]),
  )
}

async function bounds() {
  return table(
    ['rung', 'when', 'bound', 'at default settings'],
    (await rungs()).map((one) => [one.rung, one.when, code(one.made), within(one)]),
  )
}

async function rungs() {
  const [{ ladder }, { readConfig }] = await Promise.all([built('reaper/recovery-bound'), built('config/config')])
  return ladder(readConfig({}, {}))
}

async function orphans() {
  return (await built('reaper/orphans')).orphanTable()
}

async function verdicts() {
  return (await built('why/verdict')).verdictTable()
}

async function repairs() {
  const { repairs } = await built('why/repair')
  return table(
    ['repair', 'what it does'],
    Object.entries(repairs).map(([name, { does }]) => [code(name), does]),
  )
}

async function settings() {
  const { settingNames, settingOf, envNameOf, flagOf } = await built('config/settings')
  return table(
    ['setting', 'environment', 'flag', 'default', 'range', 'meaning'],
    settingNames.map((name) => {
      const setting = settingOf(name)
      const standard = [setting.default ?? []].flat().join(',')
      return [
        code(name),
        code(envNameOf(name)),
        code(flagOf(name)),
        standard === '' ? '–' : code(standard),
        rangeOf(setting),
        setting.about,
      ]
    }),
  )
}

function rangeOf({ type, min, max }) {
  if (type === 'whole' || type === 'duration') return `${min} – ${max}`
  return { flag: 'true, false', list: 'names', text: 'text' }[type]
}

async function errors() {
  const { errorCodes } = await built('errors/errors')
  return table(
    ['code', 'status', 'meaning'],
    Object.entries(errorCodes).map(([name, { status, meaning }]) => [code(name), status, meaning]),
  )
}

async function diagram() {
  return fenced('mermaid', (await built('job/diagram')).machineDiagram())
}

async function machine() {
  return (await built('job/diagram')).machineTables()
}

async function events() {
  const { allMoves, moves } = await built('job/machine')
  const told = allMoves.filter((name) => moves[name].announces !== null)
  return table(
    ['event', 'move', 'by', 'the job becomes'],
    told.map((name) => [code(moves[name].announces), name, moves[name].by, moves[name].to.map(code).join(' or ')]),
  )
}

async function faults() {
  const { faults } = await built('prove/faults')
  return table(
    ['fault', 'what it does', 'bounded by'],
    Object.entries(faults).map(([name, { does, rung }]) => [code(name), does, rung]),
  )
}

async function metrics() {
  return (await built('metrics/metric-table')).metricsTable()
}

async function invariants() {
  return (await built('audit/audit')).invariants.map((name) => `- ${code(name)}`).join('\n')
}

function cli() {
  const overview = help()
  return [fenced('text', overview), ...commandsIn(overview).flatMap((name) => helpPages([name]))].join('\n\n')
}

/** The page of a command, and those of the commands in it. */
function helpPages(command) {
  const text = help(...command)
  const page = `${'#'.repeat(command.length + 1)} holdfast ${command.join(' ')}\n\n${fenced('text', text)}`
  return [page, ...commandsIn(text).flatMap((name) => helpPages([...command, name]))]
}

function commandsIn(text) {
  const [, list = ''] = /^Commands:\n((?: .*\n)+)/m.exec(text) ?? []
  return [...list.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name).filter((name) => name !== 'help')
}

function help(...command) {
  const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '' }
  const main = join(root, 'dist', 'cli', 'main.js')
  const ask = (flag) => spawnSync(process.execPath, [main, ...command, flag], { encoding: 'utf8', env })
  const short = ask('--help')
  const { status, stdout, stderr } = short.stdout?.includes('--help-all') ? ask('--help-all') : short
  if (status !== 0) throw new Error(`holdfast ${command.join(' ')} --help failed: ${stderr}`)
  return stdout
}

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}

function fenced(language, text) {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``
}

function code(word) {
  return `\`${word}\``
}

// Each stage has its own timeout, so the last rung counts from there.
function within({ made, boundMs }) {
  return `${made.startsWith('timeout') ? 'timeout + ' : ''}${boundMs / 1000} s`
}
