import { defineJob } from 'holdfast'
import { z } from 'zod'
import { expect, gate, test, until } from './fixtures.ts'

const document = defineJob('document', {
  input: z.object({ name: z.string(), pages: z.number(), at: z.coerce.date().optional() }),
  stages: [
    {
      name: 'pages',
      fanOut: (_, { pages }) => Array.from({ length: pages }, (_, page) => ({ page })),
      each: async (ctx, { page }) => {
        const { id, input } = await ctx.parent()
        // each item has a copy of its own
        const name: string = input.name
        input.name = `changed by ${page}`
        return { id, name, page, isDate: input.at instanceof Date }
      },
      join: async (_ctx, _summary, results) => {
        const outputs = []
        for await (const { output } of results) outputs.push(output)
        return outputs
      },
    },
  ],
})

test("an item's handler can ask for its job's input, typed, and each has a copy of its own", async ({ open }) => {
  const hf = await open({ jobs: [document] })
  await hf.work()
  const at = new Date('2026-01-02T03:04:05Z').toISOString() as never
  const handles = await Promise.all(
    ['a'.repeat(2_000), 'small'].map((name) => hf.submit(document, { name, pages: 50, at })),
  )
  for (const [index, handle] of handles.entries()) {
    const name = index === 0 ? 'a'.repeat(2_000) : 'small'
    const { output } = await handle.result()
    expect(output).toEqual(Array.from({ length: 50 }, (_, page) => ({ id: handle.id, name, page, isDate: true })))
  }
})

test('an item that is redone after its job has ended still reaches the input', async ({ open }) => {
  let isBroken = true
  const once = defineJob('once', {
    input: z.object({ word: z.string() }),
    stages: [
      {
        name: 'all',
        tolerate: { count: 1 },
        fanOut: () => [1],
        each: {
          retries: 0,
          run: async (ctx) => {
            if (isBroken) throw new Error('It broke.')
            return (await ctx.parent()).input.word
          },
        },
      },
    ],
  })
  const hf = await open({ jobs: [once] })
  await hf.work()
  const handle = await hf.submit(once, { word: 'hello' })
  await handle.result()
  isBroken = false
  const [item] = await hf.items(handle.id)
  await hf.redo(item?.id as string)
  expect(await hf.handle(item?.id as string).result()).toMatchObject({ output: 'hello' })
})

test('an item that waits for its job’s input notices at once that it was aborted, although the database does not answer', async ({
  open,
  pool,
}) => {
  const started = gate<void>()
  const locked = gate<void>()
  const refused = gate<unknown>()
  const waiting = defineJob('waiting', {
    stages: [
      {
        name: 'all',
        fanOut: () => [1],
        each: {
          retries: 0,
          timeoutMs: 500,
          run: async (ctx) => {
            started.open()
            await locked.promise
            await ctx.parent().catch(refused.open)
          },
        },
        join: () => null,
      },
    ],
  })
  const hf = await open({ jobs: [waiting] })
  await hf.work()
  const stranger = await pool.connect()
  const { id } = await hf.submit(waiting, null)
  await started.promise
  await stranger.query('begin')
  await stranger.query('lock table holdfast.job in access exclusive mode')
  locked.open()
  const error = await Promise.race([refused.promise, until(() => false, 'the handler goes on', 4_000)])
  expect(error).toMatchObject({ message: expect.stringContaining('aborted') })
  await stranger.query('rollback')
  stranger.release()
  await until(async () => (await hf.get(id))?.finishedAt, 'the job ends')
})
