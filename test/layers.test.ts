import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findViolations } from '../scripts/layers.mjs'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'holdfast-layers-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function check(files: Record<string, string>): string[] {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, 'src', name)), { recursive: true })
    writeFileSync(join(root, 'src', name), text)
  }
  return findViolations(root)
}

test('a tree that keeps the rules passes', () => {
  const lines = check({
    'index.ts': `export { connect } from './engine/engine.ts'`,
    'engine/engine.ts': `import { open } from '../postgres/store.ts'\nexport const connect = open`,
    'postgres/store.ts': `import { claim } from './job.sql.ts'\nimport pg from 'pg'\nexport const open = [claim, pg]`,
    'postgres/job.sql.ts': 'export const claim = `select 1 from job`',
    'postgres/migrate.ts': `export const folder = new URL('../../migrations/', import.meta.url)`,
    'postgres/store.test.ts': `const text = 'select 1'`,
    'cli/main.ts': `export const help = ['Select the jobs of one tenant', 'select a tenant', 'update it', 'with care']`,
  })
  expect(lines).toEqual([])
})

const violations: [name: string, files: Record<string, string>, line: string][] = [
  [
    'an import to the right',
    { 'postgres/store.ts': `\nimport { run } from '../worker/worker.ts'` },
    'src/postgres/store.ts:2 postgres may not import worker, which is to its right.',
  ],
  [
    'an import of a stranger',
    { 'submit/submit.ts': `import type { Bus } from '../settle/settle.ts'` },
    "src/submit/submit.ts:1 submit and settle are in the same group, and rooms of a group don't import each other.",
  ],
  [
    'a re-export to the right',
    { 'errors/errors.ts': `export * from '../job/job.ts'` },
    'src/errors/errors.ts:1 errors may not import job, which is to its right.',
  ],
  [
    'a dynamic import to the right',
    { 'job/job.ts': `export const later = () => import('../engine/engine.ts')` },
    'src/job/job.ts:1 job may not import engine, which is to its right.',
  ],
  [
    'an import through the package name',
    { 'job/job.ts': `import { open } from '#holdfast/postgres/store'` },
    'src/job/job.ts:1 job may not import postgres, which is to its right.',
  ],
  [
    'a thread of another room',
    { 'job/job.ts': `export const file = new URL('../worker/beat.js', import.meta.url)` },
    'src/job/job.ts:1 job may not import worker, which is to its right.',
  ],
  [
    'an import from outside',
    { 'job/job.ts': `import { given } from '../../test/given.ts'` },
    'src/job/job.ts:1 Code in src/ imports nothing outside of src/.',
  ],
  [
    'a loose file',
    { 'loose.ts': '' },
    'src/loose.ts:1 Only index.ts lies directly in src/; move the file into a room.',
  ],
  [
    'an unknown room',
    { 'attic/attic.ts': '' },
    'src/attic/attic.ts:1 "attic" is not a room; add it to scripts/rooms.mjs, or move the file into a room.',
  ],
  ...[
    '`\n  select id from job`',
    "'SELECT 1'",
    '`insert into job values (1)`',
    'sql`update $' + '{table} set state = 1`',
    '`-- job.drop\ndelete from job`',
    '`with mine as (select 1) select 2`',
  ].map((text): [string, Record<string, string>, string] => [
    `the SQL ${text}`,
    { 'postgres/store.ts': `export const text = ${text}` },
    'src/postgres/store.ts:1 SQL lives in *.sql.ts files only.',
  ]),
  [
    'a long file',
    { 'job/job.ts': 'export {}\n'.repeat(301) },
    'src/job/job.ts:301 301 lines are too many for one file; split it by noun.',
  ],
  [
    'a drawer',
    { 'job/utils/text.ts': '' },
    'src/job/utils/text.ts:1 "utils" is a drawer; name the file after the one thing it holds.',
  ],
  [
    'a types file',
    { 'job/types.ts': '' },
    'src/job/types.ts:1 Types live beside the code that they describe, not in a types file.',
  ],
  [
    'an index in a room',
    { 'job/index.ts': '' },
    'src/job/index.ts:1 The only index.ts is src/index.ts; a room is entered by its own name.',
  ],
  ['a name in camel case', { 'job/jobState.ts': '' }, 'src/job/jobState.ts:1 "jobState.ts" is not kebab-case.'],
  [
    'an any in a type',
    { 'job/job.ts': 'export let x: any' },
    'src/job/job.ts:1 No any: take unknown at the edge and parse it once.',
  ],
  [
    'a cast to any',
    { 'job/job.ts': 'export const x = 1 as any' },
    'src/job/job.ts:1 No any: take unknown at the edge and parse it once.',
  ],
]

test.each(violations)('%s is reported', (_, files, line) => {
  expect(check(files)).toEqual([line])
})

test('tests and generated files may be long', () => {
  const long = 'export {}\n'.repeat(301)
  expect(check({ 'job/job.test.ts': long, 'job/table.ts': `// @generated\n${long}` })).toEqual([])
})

test('the command fails if there is a violation, and says where', () => {
  check({ 'loose.ts': '' })
  const script = fileURLToPath(new URL('../scripts/layers.mjs', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, [script, root], { encoding: 'utf8' })
  expect(stdout).toMatch(/^src\/loose\.ts:1 Only index\.ts/)
  expect(status).toBe(1)
})
