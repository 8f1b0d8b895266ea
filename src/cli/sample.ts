import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { loadJobs } from './load-jobs.ts'

/** The module that `holdfast dev` runs by default. */
export const sampleModule = fileURLToPath(new URL('../../examples/extract.mjs', import.meta.url))

const documents = new URL('../../examples/documents/', import.meta.url)
// its first attempt fails, so a restart shows a retry
const shownAgain = 'receipt-2002.txt'

/** What happened to the documents of the sample at this start. */
export interface SampleObserver {
  submitted: string[]
  /** Documents that an earlier start had submitted: their keys returned the same jobs. */
  known: string[]
}

/**
 * Submits each document that ships with Holdfast, once per database: with its key, every later start finds the same job. One of them is always
 * submitted again, so that there is something to see.
 */
export async function submitSample(hf: Holdfast): Promise<SampleObserver> {
  const [extract] = (await loadJobs(sampleModule)) as [AnyJob]
  const names = (await readdir(documents)).filter((name) => name.endsWith('.txt')).sort()
  if (names.length === 0) throw new HoldfastError('module_invalid', 'The sample documents are missing.')
  const observer: SampleObserver = { submitted: [], known: [] }
  for (const name of names) {
    const { isNew } = await hf.submit(extract, { document: name } as never, { key: `sample:${name}` })
    observer[isNew ? 'submitted' : 'known'].push(name)
  }
  if (observer.submitted.length > 0) return observer
  await hf.submit(extract, { document: shownAgain } as never)
  return { ...observer, submitted: [shownAgain] }
}
