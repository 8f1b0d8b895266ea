import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { loadJobs } from './load-jobs.ts'

/** The module of the kind that `holdfast dev` runs when it is given none. */
export const sampleModule = fileURLToPath(new URL('../../examples/extract.mjs', import.meta.url))

const documents = new URL('../../examples/documents/', import.meta.url)
// the one whose first attempt fails: a restart shows a retry
const shownAgain = 'receipt-2002.txt'

/** What became of the sample's documents at this start. */
export interface SampleNews {
  submitted: string[]
  /** Those that an earlier start had submitted: their keys led to the same jobs. */
  known: string[]
}

/**
 * Submits each document that ships with Holdfast, once for a database: its key makes every later start find the same
 * job. So that there is something to see then, too, one of them is submitted afresh.
 */
export async function submitSample(hf: Holdfast): Promise<SampleNews> {
  const [extract] = (await loadJobs(sampleModule)) as [AnyJob]
  const names = (await readdir(documents)).filter((name) => name.endsWith('.txt')).sort()
  if (names.length === 0) throw new HoldfastError('module_invalid', 'The documents of the sample are missing.')
  const news: SampleNews = { submitted: [], known: [] }
  for (const name of names) {
    const { isNew } = await hf.submit(extract, { document: name } as never, { key: `sample:${name}` })
    news[isNew ? 'submitted' : 'known'].push(name)
  }
  if (news.submitted.length > 0) return news
  await hf.submit(extract, { document: shownAgain } as never)
  return { ...news, submitted: [shownAgain] }
}
