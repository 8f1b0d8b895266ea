import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { defineJob } from 'holdfast'
import { describe } from 'vitest'
import { ask, call } from './cli/command.ts'
import { expect, test } from './fixtures.ts'

const compare = fileURLToPath(new URL('../bench/compare/compare.mjs', import.meta.url))
const run = promisify(execFile)
const own = `select count(*)::int as count from pg_database where datname like 'holdfast_bench_%'`
const noop = defineJob('noop', { run: () => undefined })

describe('holdfast bench', { timeout: 120_000 }, () => {
  test('gives every figure, and leaves no trace on the server', async ({ url, query }) => {
    const report = await ask<{ figures: Record<string, { median: number }> }>([
      'bench',
      '--url',
      url,
      ...['--jobs', '50', '--rounds', '1'],
    ])
    expect(Object.keys(report.figures)).toEqual(['bulk', 'drain', 'single', 'pickup50', 'pickup95', 'pickup99'])
    for (const { median } of Object.values(report.figures)) expect(median).toBeGreaterThan(0)
    expect(report).toMatchObject({
      holdfast: expect.stringMatching(/^\d/),
      cpu: expect.any(String),
      figures: { bulk: { isNoisy: false } },
    })
    expect(
      await query(
        'select from holdfast.job_status where finished_at is null union all select from holdfast.job_status where finished_at is not null',
      ),
    ).toEqual([])
    expect(await query(own)).toEqual([{ count: 0 }])
  })

  test('refuses a database with jobs in it', async ({ url, hf }) => {
    await hf.submit(noop, null)
    const { code, stderr } = await call(['bench', '--url', url, '--jobs', '50'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error bench_refused: The database already holds jobs/),
    })
  })

  test('refuses a number that is none', async () => {
    const { code, stderr } = await call(['bench', '--jobs', '0'])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('--jobs takes a number from 1') })
  })
})

describe('the comparison', { timeout: 120_000 }, () => {
  // without the peers, so that no test needs a registry
  test('runs each measure, and says what it ran on', async ({ url }) => {
    const small = ['--quick', '--jobs', '50', '--rows', '100', '--seconds', '1', '--cap', '20']
    const { stdout } = await run(process.execPath, [
      compare,
      ...small,
      ...['--contenders', 'holdfast', '--url', url, '--json'],
    ])
    const { figures, leftOut, versions, postgres } = JSON.parse(stdout)
    expect(leftOut).toEqual([])
    expect(versions.holdfast).toMatch(/^\d/)
    expect(postgres.isDurable).toBe(false) // the tests' server is not; figures from it are marked as worthless
    const measured = [
      'drain1',
      'drain2',
      'bulk',
      'single',
      'pickup50',
      'recovery',
      'loaded',
      'oldSnapshot',
      'mixedSubmit',
      'mixedRead',
    ]
    for (const name of measured) expect(figures[name].holdfast.rounds).toHaveLength(1)
  })

  test('refuses a measure that it does not know', async () => {
    const refused = run(process.execPath, [compare, '--only', 'drian'])
    await expect(refused).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('--only knows no "drian"') })
  })
})
