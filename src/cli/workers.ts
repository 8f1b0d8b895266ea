import { randomUUID } from 'node:crypto'
import type { Holdfast } from '../engine/engine.ts'
import { environmentOf } from './flags.ts'
import { pathOf } from './load-jobs.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'
import { supervisorVariable } from './work-child.ts'

/** What the workers of a module need. */
export interface WorkersOptions extends Pick<SupervisorOptions, 'onLine' | 'onError' | 'observer'> {
  hf: Holdfast
  module: string
  /** Whether the database is embedded in this process and ends with it. */
  isDatabaseOurs: boolean
}

// after its drain, a worker aborts what is left, gives it back and closes its connections
const goodbyeMs = 10_000

/** Makes the supervisor for the workers of a module. Jobs that a process held when it exited are given back at once. */
export function makeWorkers({ hf, module, isDatabaseOurs, ...rest }: WorkersOptions): Supervisor {
  const { config, url } = hf
  const supervisor = randomUUID()
  return new Supervisor({
    ...rest,
    args: ['work-child', pathOf(module), ...(isDatabaseOurs ? ['--database-ends-too'] : [])],
    env: { ...process.env, ...environmentOf({ ...config, url }), [supervisorVariable]: supervisor },
    processes: config.processes,
    livenessMs: config.livenessMs,
    patienceMs: config.drainMs + goodbyeMs,
    onChildExit: (pid, exit) => hf.reclaim({ supervisor, pid, exit: exit.replace(/^was /, '') }),
  })
}
