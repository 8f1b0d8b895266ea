import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type JobId, parseJobId } from '../job/id.ts'

const lookBack = 1_000
const shortLength = 8

/** The end of an id, which tells jobs apart; its beginning is the time, much the same for all of a day. */
export function shortId(id: string): string {
  return id.slice(-shortLength)
}

/** The id that a word means: a whole one, or the end of one among the latest jobs. */
export async function pickJob(hf: Holdfast, word: string): Promise<JobId> {
  const whole = parseJobId(word)
  if (whole) return whole
  if (!/^[0-9a-f]{6,12}$/i.test(word))
    throw new HoldfastError(
      'id_invalid',
      `${JSON.stringify(word)} is not a job id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057, or its last ${shortLength} letters.`,
    )
  const isMeant = ({ id }: { id: string }) => id.endsWith(word.toLowerCase())
  const jobs = (await hf.page({ limit: lookBack })).jobs.filter(isMeant)
  // items are looked through only if no job is meant: one fan-out may have thousands
  const all = jobs.length > 0 ? jobs : (await hf.page({ limit: lookBack, items: true })).jobs.filter(isMeant)
  const [first, second] = all
  if (!first)
    throw new HoldfastError(
      'job_not_found',
      `None of the latest ${lookBack} jobs has an id that ends with ${word}; give the whole id.`,
    )
  if (second)
    throw new HoldfastError('id_invalid', `Several jobs have ids that end with ${word}; give more letters of it.`)
  return first.id
}
