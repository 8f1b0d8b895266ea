import {
  type AnyJob,
  connect,
  defineJob,
  type Handle,
  type InputOf,
  type OutputOf,
  type OutputsOf,
  type Result,
} from 'holdfast'
import * as v from 'valibot'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'

// What is tested here is tested by tsc, in `npm run check`: nothing below is run but the definitions.
const run = () => {}
const read = defineJob('read', {
  input: z.object({ page: z.coerce.number<string>(), size: z.number().default(10) }),
  run: ({ input }) => ({ at: new Date(), pages: [input.page], skip: () => 1 }),
})
const twoStages = defineJob('two', {
  input: v.object({ name: v.string() }),
  stages: [
    { name: 'extract', run: ({ input }) => ({ words: input.name.split(' ') }) },
    { name: 'count', run: ({ outputs }) => outputs.extract.words.length },
  ],
})
const withOptional = defineJob('optional', {
  stages: [
    { name: 'extract', run: () => 'text' },
    { name: 'locate', optional: true, run: async () => [1, 2] },
  ],
})
const silent = defineJob('silent', { run })

test('what is submitted is what the schema takes, not what it makes of it', () => {
  expectTypeOf<InputOf<typeof read>>().toEqualTypeOf<{ page: string; size?: number | undefined }>()
  expectTypeOf<InputOf<typeof twoStages>>().toEqualTypeOf<{ name: string }>()
  expectTypeOf<InputOf<typeof silent>>().toBeUnknown()
})

test('a handler sees its input as the schema makes it, and the outputs of the stages before it', () => {
  defineJob('seen', {
    input: z.object({ at: z.string().transform((text) => new Date(text)) }),
    stages: [
      {
        name: 'a',
        run: ({ input, outputs, stage, attempt, signal }) => {
          expectTypeOf(input).toEqualTypeOf<{ at: Date }>()
          expectTypeOf(outputs).toBeUnknown()
          expectTypeOf(stage).toBeString()
          expectTypeOf(attempt).toBeNumber()
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
          return { when: input.at }
        },
      },
      {
        name: 'b',
        run: ({ outputs }) => {
          expectTypeOf(outputs.a).toEqualTypeOf<{ when: string }>()
          // @ts-expect-error a stage does not see its own output
          outputs.b
          return 7
        },
      },
      {
        name: 'c',
        run: ({ outputs }) => {
          expectTypeOf(outputs.a.when).toBeString()
          expectTypeOf(outputs.b).toBeNumber()
          // @ts-expect-error there is no stage of that name
          outputs.d
        },
      },
    ],
  })
})

test('a result is what comes back from storage: dates are texts, methods are gone, nothing is null', () => {
  expectTypeOf<OutputOf<typeof read>>().toEqualTypeOf<{ at: string; pages: number[] }>()
  expectTypeOf<OutputOf<typeof twoStages>>().toBeNumber()
  expectTypeOf<OutputsOf<typeof twoStages>['extract']>().toEqualTypeOf<{ words: string[] }>()
  expectTypeOf<OutputOf<typeof withOptional>>().toEqualTypeOf<number[]>()
  expectTypeOf<OutputOf<typeof silent>>().toBeNull()
})

test('what is undefined in an output is missing in its result, and null in a list', () => {
  const odd = defineJob('odd', {
    run: (): {
      u: undefined
      maybe?: Date
      either: number | undefined
      list: (string | undefined)[]
      any: unknown
    } => ({
      u: undefined,
      either: 1,
      list: [undefined],
      any: 1,
    }),
  })
  expectTypeOf<OutputOf<typeof odd>>().toEqualTypeOf<{
    maybe?: string
    either?: number
    list: (string | null)[]
    any: unknown
  }>()
})

test('a result may be partial only if its kind has an optional stage', () => {
  expectTypeOf<Result<typeof read>['state']>().toEqualTypeOf<'succeeded'>()
  expectTypeOf<Result<typeof twoStages>['state']>().toEqualTypeOf<'succeeded'>()
  expectTypeOf<Result<typeof withOptional>['state']>().toEqualTypeOf<'succeeded' | 'partial'>()
  type Partial_ = Extract<Result<typeof withOptional>, { state: 'partial' }>
  expectTypeOf<Partial_['output']>().toBeNull()
  expectTypeOf<Partial_['outputs']['extract']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Extract<Result<typeof withOptional>, { state: 'succeeded' }>['output']>().toEqualTypeOf<number[]>()
})

test('a wrong input is a compile error', () => {
  async function misuse(hf: Awaited<ReturnType<typeof connect>>) {
    // @ts-expect-error page must be a text
    await hf.submit(read, { page: 7 })
    // @ts-expect-error page is missing
    await hf.submit(read, {})
    // @ts-expect-error there is no such field
    await hf.submit(twoStages, { name: 'x', extra: 1 })
    // @ts-expect-error a kind is what defineJob returns
    await hf.submit('read', { page: '7' })
    // @ts-expect-error the second one lacks its input
    await hf.submitMany(read, [{ input: { page: '1' } }, { key: 'k' }])
    // @ts-expect-error there is no such state
    await hf.list({ state: 'done' })
    // @ts-expect-error there is no such option
    await hf.submit(silent, null, { delay: 5 })
  }
  expectTypeOf(misuse).toBeFunction()
})

test('a handle carries its kind, so that its result is typed', () => {
  async function use(hf: Awaited<ReturnType<typeof connect>>) {
    const handle = await hf.submit(twoStages, { name: 'x' })
    expectTypeOf(handle).toEqualTypeOf<Handle<typeof twoStages>>()
    const result = await handle.result()
    expectTypeOf(result.output).toBeNumber()
    // @ts-expect-error the output is a number
    result.output.trim()
    const again = await hf.handle(handle.id, read).result()
    expectTypeOf(again.output.at).toBeString()
  }
  expectTypeOf(use).toBeFunction()
})

test('any kinds fit together in one list', () => {
  const jobs: AnyJob[] = [read, twoStages, withOptional, silent]
  expectTypeOf(jobs).toBeArray()
  expectTypeOf(connect).parameter(0).toHaveProperty('jobs')
})

test('a wrong definition is a compile error', () => {
  expectTypeOf(defineJob).toBeFunction()
  function misuse() {
    // @ts-expect-error neither run nor stages
    defineJob('x', {})
    // @ts-expect-error a stage needs a function
    defineJob('x', { stages: [{ name: 'a' }] })
    // @ts-expect-error an input is a Standard Schema
    defineJob('x', { input: { type: 'string' }, run })
    // @ts-expect-error a time-out is a number
    defineJob('x', { timeoutMs: '5s', run })
  }
  expectTypeOf(misuse).toBeFunction()
})

test('a compile error about a definition points at the field that is wrong', () => {
  function misuse() {
    defineJob('x', {
      // @ts-expect-error a number of retries is a number
      retries: '3',
      run,
    })
    defineJob('x', {
      // @ts-expect-error there is no such option
      retrys: 3,
      run,
    })
    defineJob('x', {
      stages: [
        {
          name: 'a',
          // @ts-expect-error a time-out is a number
          timeoutMs: '5s',
          run,
        },
        {
          name: 'b',
          run,
        },
      ],
    })
    defineJob('x', {
      stages: [
        { name: 'a', run },
        {
          name: 'b',
          fanOut: () => [1, 2],
          each: run,
          // @ts-expect-error a threshold is a number of items, { count } or { share }
          tolerate: 'one',
        },
      ],
    })
    defineJob('x', {
      stages: [
        {
          name: 'b',
          fanOut: () => [1, 2],
          each: {
            // @ts-expect-error there is no such option
            retrys: 1,
            run,
          },
        },
      ],
    })
  }
  expectTypeOf(misuse).toBeFunction()
})

test('a fan-out may tolerate a plain number of failed items', () => {
  const book = defineJob('book', {
    input: z.object({ pages: z.array(z.string()) }),
    stages: [
      {
        name: 'pages',
        fanOut: (_ctx, input) => input.pages,
        each: (_ctx, page) => page.length,
        tolerate: 1,
        join: (_ctx, summary) => summary.succeeded,
      },
    ],
  })
  expectTypeOf<OutputOf<typeof book>>().toBeNumber()
})
