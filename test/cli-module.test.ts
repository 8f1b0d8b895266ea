import { createServer } from 'node:net'
import { defineJob } from 'holdfast'
import { describe, onTestFinished } from 'vitest'
import { call, library, moduleOf, run } from './cli/command.ts'
import { expect, test } from './fixtures.ts'

const fanningOut = `
  import { defineJob } from ${JSON.stringify(library)}
  export const page = defineJob('page', { run: ({ input }) => input.toUpperCase() })
  export const book = defineJob('book', {
    stages: [{ name: 'pages', fanOut: (_ctx, input) => input.pages, each: page, join: (_ctx, summary) => summary.succeeded }],
  })
  export const letter = defineJob('letter', { stages: [{ name: 'lines', fanOut: () => ['a', 'b'], each: () => null }] })`

const defines = `import { defineJob } from ${JSON.stringify(library)}\n`

test('work runs the kinds of a module that fan out, and submit finds them in it', async ({ hf, url }) => {
  const module = await moduleOf(fanningOut)
  const env = { HOLDFAST_URL: url }
  const work = run(['work', module, '--processes', '1'], { env })
  await work.says(/Worker process \d+ is ready/)
  const book = await hf.submit(defineJob('book', { run: () => null }), { pages: ['a', 'b', 'c'] } as never)
  expect(await book.result({ timeout: 20_000 })).toMatchObject({ state: 'succeeded', output: 3 })
  const { stdout, stderr } = await call(['submit', 'letter', '{}', '--module', module, '--wait', '20s'], { env })
  expect({ result: JSON.parse(stdout), stderr }).toMatchObject({ result: { total: 2, succeeded: 2 } })
})

test('dev on a busy port says which one it took instead, and refuses a port that was asked for', async ({ url }) => {
  const module = await moduleOf(fanningOut)
  const busy = createServer().listen(7420, '127.0.0.1')
  onTestFinished(() => void busy.close())
  // somebody else may have it already, which is as good
  await new Promise((resolve) => busy.once('listening', resolve).once('error', resolve))
  const dev = run(['dev', module, '--processes', '1'], { env: { HOLDFAST_URL: url } })
  const [, port] = await dev.says(/Port 7420 is in use; the API listens on port (\d+) instead\./)
  await dev.says(new RegExp(`api +http://127\\.0\\.0\\.1:${port} `))
  const asked = await call(['dev', module, '--processes', '1', '--http-port', '7420'], { env: { HOLDFAST_URL: url } })
  expect(asked).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Another program is listening on 127\.0\.0\.1:7420/),
  })
}, 60_000)

test('serve knows the kinds of a module that fan out', async ({ url }) => {
  const module = await moduleOf(
    `${defines} export const letter = defineJob('letter', { stages: [{ name: 'lines', fanOut: () => [], each: () => null }] })`,
  )
  const serve = run(['serve', module, '--http-port', '0'], { env: { HOLDFAST_URL: url } })
  await serve.says(/Ready: the database is reachable/)
})

describe('an export that looks like a job and is none is refused by its name', () => {
  const modules: [what: string, code: string, why: RegExp][] = [
    [
      'a definition that never went through defineJob',
      `${defines} export const mail = defineJob('mail', { run() {} }); export const report = { kind: 'report', run() {} }`,
      /the export report looks like a job but was not made by defineJob; write defineJob\("report", \{ run, … \}\)\./,
    ],
    [
      'a definition without a kind',
      `${defines} export default defineJob('mail', { run() {} }); export const report = { input: {}, stages: [{ name: 'a', run() {} }] }`,
      /the export report looks like a job but was not made by defineJob; write defineJob\("…", \{ input, stages, … \}\)\./,
    ],
    [
      'an element of a list',
      `${defines} export default [defineJob('mail', { run() {} }), undefined]`,
      /the export default\[1\] is undefined; every element of a job list must come from defineJob\./,
    ],
    [
      'a promise of a job',
      `${defines} export const mail = Promise.resolve(defineJob('mail', { run() {} })); export const b = defineJob('b', { run() {} })`,
      /the export mail is a promise; await it in the module \(`export const mail = await …`\)\./,
    ],
  ]
  test.for(modules)('%s', async ([, code, why], { url }) => {
    const { stderr } = await call(['submit', 'mail', '{}', '--module', await moduleOf(code)], {
      env: { HOLDFAST_URL: url },
    })
    expect(stderr).toMatch(/^error module_invalid: Cannot use the module .*jobs\.mjs: /)
    expect(stderr).toMatch(why)
  })
})

test('jobs are found in lists and in plain objects, and whatever else a module exports is left alone', async ({
  url,
  hf,
}) => {
  const module = await moduleOf(`${defines}
    const a = defineJob('a', { run() {} }), b = defineJob('b', { run() {} }), c = defineJob('c', { run() {} })
    export const limits = { kind: 'none', most: 3 }, names = ['x', 'y'], helper = () => 1, nothing = null
    export const list = [a], record = { b }
    export default { c }`)
  const env = { HOLDFAST_URL: url }
  for (const kind of ['a', 'b', 'c'])
    expect((await call(['submit', kind, '{}', '--module', module], { env })).stderr).toMatch(`Submitted ${kind} as`)
  expect((await hf.list()).length).toBe(3)
})
