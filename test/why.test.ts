import { defineJob, PermanentError } from 'holdfast'
import { afterAll } from 'vitest'
import { type OrphanName, orphans } from '#holdfast/reaper/orphans'
import { rules } from '#holdfast/why/verdict'
import { call } from './cli/command.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, type Fixtures, newDatabase, test, until } from './fixtures.ts'
import { clear, lead, type Made, orphansMade, othersMade, serving } from './why/made.ts'

// Every class of the catalogue and every other verdict, made and asked about. What is made how: see why/made.ts.

const tables = [
  'live_job',
  'finished_job',
  'barrier',
  'owned_barrier',
  'session',
  'queue',
  'delivery',
  'event',
  'stage_output',
]

/** All that a repair could change. */
function everything(query: Fixtures['query']) {
  const each = tables.map((name) => `(select json_agg(t order by t::text) from holdfast.${name} as t) as ${name}`)
  return query(`select ${each.join(', ')}`)
}

async function look({ hf, query }: Pick<Fixtures, 'hf' | 'query'>, id: string, made: Made) {
  const why = await hf.why(id)
  expect(why.verdict).toEqual({ code: made.code, sentence: expect.stringMatching(made.says) })
  if (made.but) expect(why.disagreements).toContainEqual(expect.stringMatching(made.but))
  if (made.next === null) expect(why.next).toBeNull()
  if (made.next) expect(why.next?.what).toMatch(made.next)
  if (why.next?.byAt) expect(why.next.byAt.getTime()).toBeGreaterThan(why.at.getTime())
  expect(why.repair?.name ?? null).toBe(made.repair ?? null)

  const before = await everything(query)
  const dry = await hf.mend(id, { dryRun: true })
  expect(dry).toMatchObject({ repair: made.repair ?? null, isApplied: false })
  expect(dry.sentence).toMatch(/^Nothing was changed/)
  expect(await everything(query)).toEqual(before)

  const mended = await hf.mend(id)
  expect(mended.isApplied).toBe(made.repair !== undefined)
  if (!made.repair) expect(await everything(query)).toEqual(before)
  else if (made.after) expect(mended.why.verdict.code).toBe(made.after)
  else expect(mended.why.verdict.code).not.toBe(made.code)
  return why
}

// one database for all classes: to copy one for each would take longer than all the rest
let shared: ReturnType<typeof newDatabase> | undefined
const onShared = test.extend({
  url: async ({ task: _task }, use) => {
    shared ??= newDatabase()
    await use((await shared).url)
  },
})
afterAll(async () => (await shared)?.drop())

for (const [name, made] of Object.entries(orphansMade) as [OrphanName, Made][])
  onShared(`why knows the orphan ${name}, and what moves it`, async ({ given, store, query, hf, pool }) => {
    await clear(query)
    await lead({ store })
    let undo: () => Promise<unknown> = async () => {}
    const id = await made.make({ given, store, query, hf, pool, later: (work) => (undo = work) })
    const why = await look({ hf, query }, id, made)
    expect(why.orphan).toBe(made.looksLike ?? name)
    await undo()
  })

test('every class of the catalogue has a verdict, and every verdict is made by these tests', () => {
  expect(Object.keys(orphansMade).sort()).toEqual(Object.keys(orphans).sort())
  for (const name of Object.keys(orphans) as OrphanName[]) {
    const fitting = rules.filter((rule) => rule.orphans.includes(name)).map(({ code }) => code)
    expect(fitting, name).toContain(orphansMade[name].code)
  }
  const made = new Set([...Object.values(orphansMade), ...othersMade].map(({ code }) => code))
  expect([...made].sort()).toEqual(rules.map(({ code }) => code).sort())
})

test('why has a verdict for every state that is no orphan', async ({ given, store, query, hf, pool }) => {
  await lead({ store })
  for (const made of othersMade) {
    const id = await made.make({ given, store, query, hf, pool, later: () => {} })
    await look({ hf, query }, id, made)
  }
})
