import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError } from '../errors/errors.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import type { ItemContext } from '../job/fan-out.ts'
import { type Context, observed, type Report } from './observed.ts'

/** The item that fails, in the fan-outs in which some do. */
export const badItem = 1

const itemMs = 150
const drawnMs = 15_000

/** Kinds that fan out: successful, with failed items, with too many of them, with a single item, nested, with a failing producer, and one to cancel. */
export function fanOutKinds(report: Report): AnyJob[] {
  const ok = observed(report, () => {})
  const join = async (ctx: Context, _summary: unknown, results: AsyncIterable<unknown>) => {
    for await (const _ of results);
    return ok(ctx)
  }
  const readParent = async (ctx: Context & Pick<ItemContext, 'parent'>) => {
    await ctx.parent()
    return ok(ctx)
  }
  const failing = (ctx: Context, item: number) =>
    observed(report, async ({ signal }) => {
      if (item === badItem) throw new PermanentError('This item always fails.')
      await sleep(itemMs, undefined, { signal })
    })(ctx)
  const drawn = observed(report, ({ signal }) => sleep(drawnMs, undefined, { signal }))
  const inner = defineJob('inner', { stages: [{ name: 'all', fanOut: items(2), each: ok, join }] })
  return [
    defineJob('wide', {
      stages: [
        { name: 'all', fanOut: items(6), each: readParent, join },
        { name: 'after', run: ok },
      ],
    }),
    defineJob('lone', { stages: [{ name: 'all', fanOut: items(1), each: ok, join }] }),
    defineJob('torn', { stages: [{ name: 'all', retries: 1, fanOut: failAfterLast, each: ok, join }] }),
    defineJob('flawed', { stages: [{ name: 'all', tolerate: { share: 0.5 }, fanOut: items(4), each: failing, join }] }),
    defineJob('over-threshold', { stages: [{ name: 'all', fanOut: items(20), each: failing, join }] }),
    defineJob('drawn', { stages: [{ name: 'all', fanOut: items(4), each: drawn, join }] }),
    inner,
    defineJob('nest', { stages: [{ name: 'all', fanOut: items(2), each: inner, join }] }),
  ]
}

function items(count: number) {
  return async function* () {
    for (let item = 0; item < count; item++) yield item
  }
}

async function* failAfterLast() {
  yield* items(3)()
  throw new Error('The producer fails after its last item, time and again.')
}
