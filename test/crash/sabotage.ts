import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** What can be done to a heartbeat thread: see sabotage.mjs. */
export type Harm = 'throw' | 'reject' | 'exhaust' | 'exit' | 'hang'

/** Breaks the heartbeat threads of processes that are started with its environment. */
export interface Sabotage {
  env: Record<string, string>
  /** Breaks the next heartbeat thread that checks, or every one from now on. */
  harm(harm: Harm, howOften?: 'once' | 'always'): Promise<void>
  /** Breaks no more threads. */
  relent(): Promise<void>
}

/** Prepares a sabotage for the duration of the test. */
export async function makeSabotage(): Promise<Sabotage> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-sabotage-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'harm')
  return {
    env: { NODE_OPTIONS: `--import ${new URL('sabotage.mjs', import.meta.url).href}`, SABOTAGE: path },
    harm: (harm, howOften = 'once') => writeFile(path, `${harm} ${howOften}`),
    relent: () => rm(path, { force: true }),
  }
}
