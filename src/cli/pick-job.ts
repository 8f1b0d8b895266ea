import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type JobId, parseJobId } from '../job/id.ts'

const lookBack = 1_000
const shortLength = 8

/** The end of an id, which identifies a job. Its beginning is a timestamp, which is similar for all jobs of a day. */
export function shortId(id: string): string {
  return id.slice(-shortLength)
}

/** Resolves an argument to a job id: a complete id, or the end of one among the latest jobs. */
export async function pickJob(hf: Holdfast, word: string): Promise<JobId> {
  const whole = parseJobId(word)
  if (whole) return whole
  if (!/^[0-9a-f]{6,12}$/i.test(word))
    throw new HoldfastError(
      'id_invalid',
      `${JSON.stringify(word)} is not a job id. Pass an id such as 01890a5d-ac96-774b-bcce-b302099a8057, or its last ${shortLength} characters.`,
    )
  const isMeant = ({ id }: { id: string }) => id.endsWith(word.toLowerCase())
  const jobs = (await hf.page({ limit: lookBack })).jobs.filter(isMeant)
  // items are searched only if no job matches: one fan-out may have thousands
  const all = jobs.length > 0 ? jobs : (await hf.page({ limit: lookBack, items: true })).jobs.filter(isMeant)
  const [first, second] = all
  if (!first)
    throw new HoldfastError(
      'job_not_found',
      `None of the latest ${lookBack} job ids ends with ${word}; give the full id.`,
    )
  if (second) throw new HoldfastError('id_invalid', `Several job ids end with ${word}; give more characters.`)
  return first.id
}
