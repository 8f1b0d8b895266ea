import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** What can be done to a heartbeat thread: see sabotage.mjs. */
export type Harm = 'throw' | 'reject' | 'exhaust' | 'exit' | 'hang'

/** A hand inside the heartbeat threads of processes that are started with its environment. */
export interface Sabotage {
  env: Record<string, string>
  /** Does harm to the heartbeat thread that looks first, or to each from now on. */
  harm(harm: Harm, howOften?: 'once' | 'always'): Promise<void>
  /** Does no more harm. */
  relent(): Promise<void>
}

/** Prepares to do harm; what is left of it goes with the test. */
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
