import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { parseJobId } from '../job/id.ts'

const lookBack = 1_000

/** Resolves an argument to an endpoint: a complete id, or the end of one. Whether a complete id exists is left to the caller. */
export async function pickEndpoint(hf: Holdfast, word: string): Promise<string> {
  return parseJobId(word) ?? endsWith(word, await allEndpoints(hf), 'endpoint')
}

async function allEndpoints(hf: Holdfast): Promise<{ id: string }[]> {
  const all: { id: string }[] = []
  let page: { id: string }[]
  do {
    const last = all.at(-1)
    page = await hf.webhooks.list({ limit: lookBack, ...(last && { before: last.id }) })
    all.push(...page)
  } while (page.length === lookBack)
  return all
}

/** Resolves an argument to a delivery: a complete id, or the end of one among the latest. */
export async function pickDelivery(hf: Holdfast, word: string): Promise<string> {
  return parseJobId(word) ?? endsWith(word, await hf.webhooks.deliveries({ limit: lookBack }), 'delivery')
}

const nouns = { endpoint: ['webhook endpoint', 'endpoints'], delivery: ['delivery', 'deliveries'] } as const

function endsWith(word: string, all: readonly { id: string }[], noun: keyof typeof nouns): string {
  const [singular, plural] = nouns[noun]
  const isEnd = /^[0-9a-f]{6,12}$/i.test(word)
  const [first, second] = isEnd ? all.filter(({ id }) => id.endsWith(word.toLowerCase())) : []
  if (first && !second) return first.id
  if (second)
    throw new HoldfastError('id_invalid', `Several ${plural} have ids that end with ${word}; give more characters.`)
  throw new HoldfastError(`${noun}_not_found`, `There is no ${singular} ${JSON.stringify(word)}.`)
}
