import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { httpSettings } from '#holdfast/config/http-settings'
import { kindSettings } from '#holdfast/config/kind-settings'
import { envNameOf, settingNames, settings } from '#holdfast/config/settings'
import { webhookSettings } from '#holdfast/config/webhook-settings'
import { removeEmbedded } from '#holdfast/embedded/embedded'
import { errorCodes } from '#holdfast/errors/errors'
import { allMoves, allStates, announces } from '#holdfast/job/machine'
import { metricTable } from '#holdfast/metrics/metric-table'
import { orphans } from '#holdfast/reaper/orphans'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll('\\', '/')}`),
]

/** The first column of the table that begins with this head, without its backticks. */
function firstColumn(page: string, head: string): string[] {
  const [, table = ''] = read(page).split(`| ${head} |`)
  const rows = table.slice(table.indexOf('\n') + 1).split('\n')
  const end = rows.findIndex((row) => !row.startsWith('|'))
  return rows.slice(1, end).map((row) => (row.split('|')[1] as string).trim().replaceAll('`', ''))
}

test.for([
  ['docs/reference/settings.md', 'setting', settingNames],
  ['docs/reference/errors.md', 'code', Object.keys(errorCodes)],
  ['docs/reference/states.md', 'state', allStates],
  ['docs/reference/states.md', 'move', allMoves],
  ['docs/reference/events.md', 'event', allMoves.map(announces).filter((type) => type !== null)],
  ['docs/reference/metrics.md', 'metric', Object.keys(metricTable)],
  ['docs/recovery.md', 'class', Object.keys(orphans)],
] as const)('%s lists every %s of the code, and no other', ([page, head, names]) => {
  expect(firstColumn(page, head)).toEqual(names)
})

test('the architecture page lists every table of the schema, and no other', () => {
  // the default partition of the log is part of its parent; the runner of migrations creates `migration`; the other two are views
  const created = [...read('migrations/0001_schema.sql').matchAll(/^create table holdfast\.(\w+) (?!partition)/gm)]
  const tables = [...created.map(([, name]) => name), 'migration', 'event', 'job_status']
  const told = firstColumn('docs/architecture.md', 'table').flatMap((names) => names.split(', '))
  expect(told.toSorted()).toEqual(tables.toSorted())
})

test('every event is described with what its data holds', () => {
  const described = read('docs/reference/events.md').split('| event | `data` |')[1] ?? ''
  const told = [...described.matchAll(/`(job\.\w+)`/g)].map(([, type]) => type)
  expect(told).toEqual(expect.arrayContaining(allMoves.map(announces).filter((type) => type !== null)))
})

test('the page on security names every setting of the HTTP API, of kinds, of webhooks and of sizes', () => {
  const page = read('docs/operate/security.md')
  // these say where something is, and limit nothing
  const places = ['httpHost', 'httpPort', 'webhooks', 'publicUrl']
  const limits = [
    ...Object.keys({ ...httpSettings, ...kindSettings, ...webhookSettings }),
    ...settingNames.filter((name) => /^max.*Bytes$/.test(name)),
  ]
  expect(limits.filter((name) => !places.includes(name) && !page.includes(`\`${name}\``))).toEqual([])
})

test('every test that the catalogue of orphans names exists', () => {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.test.ts'),
  )
  const written = files.map((name) => read(`test/${name}`)).join('\n')
  expect(Object.values(orphans).filter((orphan) => !written.includes(`'${orphan.test}'`))).toEqual([])
})

test('the README names every command, and no other', () => {
  const [, overview = ''] = read('docs/reference/cli.md').split('Commands:\n')
  const commands = [...(overview.split('\n\n')[0] as string).matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)
  const [, table = ''] = read('README.md').split('| command |')
  const named = [...(table.split('\n\n')[0] as string).matchAll(/`holdfast ([a-z]+)/g)].map(([, name]) => name)
  expect(named.toSorted()).toEqual(commands.filter((name) => name !== 'help').toSorted())
})

/** How a heading is addressed. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')
}

function brokenLinks(page: string): string[] {
  const links = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string)
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? join(root, page) : resolve(root, dirname(page), path)
    if (!existsSync(target)) return true
    if (anchor === undefined) return false
    const headings = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, text]) =>
      anchorOf(text as string),
    )
    return !headings.includes(anchor)
  })
}

test.for(pages)('every link of %s leads somewhere', (page) => {
  expect(brokenLinks(page)).toEqual([])
})

function examplesOf(page: string, language: string): string[] {
  return [...read(page).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text as string)
}

test('the examples compile, all of a page together', { timeout: 120_000 }, () => {
  const modules = new Map(
    pages.map((page) => [
      join(root, `${page.replaceAll('/', '-')}.ts`),
      `${examplesOf(page, 'ts').join('\n')}\nexport {}`,
    ]),
  )
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => modules.has(path) || fileExists(path)
  host.readFile = (path) => modules.get(path) ?? readFile(path)
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = modules.get(path)
    return text === undefined
      ? getSourceFile(path, languageVersion, ...rest)
      : ts.createSourceFile(path, text, languageVersion)
  }
  const program = ts.createProgram([...modules.keys()], options, host)
  const problems = ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file?.text.slice(0, start).split('\n').length
    return `${file?.fileName.slice(root.length)}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
  expect(problems).toEqual([])
})

const deployFiles = readdirSync(join(root, 'examples/deploy')).map((name) => `examples/deploy/${name}`)

test.for(deployFiles)('the page on deploying shows %s as it is', (file) => {
  expect(read('docs/operate/deploying.md')).toContain(`\n${read(file)}\`\`\``)
})

test.for(deployFiles)('every command, flag and variable of Holdfast in %s exists', (file) => {
  const reference = read('docs/reference/cli.md')
  const lines = read(file).split('\n')
  const started = lines.flatMap((line) => line.match(/(?<=bin\/holdfast)[", ]+[a-z].*/) ?? [])
  for (const line of started) {
    const [command] = line.match(/[a-z]+/) as RegExpMatchArray
    const [, help = ''] = reference.split(`Usage: holdfast ${command} `)
    const flags = line.match(/--[a-z-]+/g) ?? []
    expect(flags.filter((flag) => !help.split('Usage:')[0]?.includes(`\n  ${flag} `))).toEqual([])
    expect(help).not.toBe('')
  }
  const variables = read(file).match(/\bHOLDFAST_[A-Z_]+/g) ?? []
  const known = settingNames.map(envNameOf)
  expect(variables.filter((name) => !known.includes(name))).toEqual([])
})

test('the deploy files leave a worker the time that its stop may take', () => {
  const drainMs = settings.drainMs.default
  const seconds = (drainMs + 10_000) / 1_000 + 5
  expect(read('examples/deploy/kubernetes.yaml')).toContain(`{ name: HOLDFAST_DRAIN_MS, value: '${drainMs}' }`)
  expect(read('examples/deploy/kubernetes.yaml')).toContain(`terminationGracePeriodSeconds: ${seconds}\n`)
  expect(read('examples/deploy/compose.yaml')).toContain(`stop_grace_period: ${seconds}s\n`)
  expect(read('examples/deploy/holdfast-work.service')).toContain(`TimeoutStopSec=${seconds}\n`)
})

test('the example of the README is the file in examples/, and prints what it says', async () => {
  const [shown] = examplesOf('README.md', 'js')
  expect(shown).toBe(read('examples/hello.mjs'))
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-hello-'))
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'examples/hello.mjs')], { cwd: folder })
    expect(shown).toContain(`console.log(output) // ${stdout.trim()}`)
  } finally {
    await removeEmbedded(join(folder, '.holdfast-hello'))
    await rm(folder, { recursive: true, force: true })
  }
})

test('the example of the page on fan-outs runs to its end, and prints what the page says', {
  timeout: 60_000,
}, async () => {
  const page = 'docs/learn/fan-out.md'
  const [example] = examplesOf(page, 'ts')
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-fan-out-'))
  try {
    const env = {
      ...process.env,
      HOLDFAST_URL: '',
      HOLDFAST_DATA_DIR: join(folder, 'data'),
      HOLDFAST_LOG_LEVEL: 'warn',
    }
    const asModule = ['--input-type=module', '--eval', `${example}\nawait hf.close()`]
    const { stdout } = await promisify(execFile)(process.execPath, asModule, { cwd: root, env, timeout: 50_000 })
    expect(read(page)).toContain(`It prints \`${stdout.trim()}\``)
  } finally {
    await removeEmbedded(join(folder, 'data'))
    await rm(folder, { recursive: true, force: true })
  }
})
