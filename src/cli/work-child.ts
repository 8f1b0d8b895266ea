import type { Command } from 'commander'
import { readConfig } from '../config/config.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import type { Working } from '../engine/work.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { within } from '../service/service.ts'
import { type ChildLife, type ChildMessage, wornOutCode } from './child.ts'
import { codeOf } from './failure.ts'
import { loadJobs } from './load-jobs.ts'
import { loadOwners } from './load-owners.ts'

/** The environment variable that carries the name of a worker's supervisor. */
export const supervisorVariable = 'HOLDFAST_SUPERVISOR'

/** Adds the hidden command that runs one worker process under a supervisor. Its settings come from the environment. */
export function addWorkChild(program: Command): void {
  program
    .command('work-child', { hidden: true })
    .argument('<module>')
    .option('--database-ends-too', 'Whether the database stops with the supervisor, so that no job can be released.')
    .action((module: string, flags: { databaseEndsToo?: true }) => workUnderSupervisor(module, flags))
}

async function workUnderSupervisor(module: string, flags: { databaseEndsToo?: true }): Promise<void> {
  if (!process.send)
    throw new HoldfastError('option_invalid', 'This command is internal; use `holdfast work <module>`.')
  const ending = new AbortController()
  const ended = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve()))
  // Ctrl-C reaches every process of a terminal; the supervisor gets it too, and stops us with SIGTERM
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => ending.abort())
  process.on('disconnect', () => (flags.databaseEndsToo ? process.exit(1) : ending.abort()))
  // the reader of our output may be gone, or the disk full, but that is not a reason to drop jobs or to end, as other commands do
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {})
  const life: { now: () => ChildLife } = { now: () => ({ pulses: [], isHeld: false, allowedMs: 0 }) }
  // after a handler has blocked this thread, other messages wait behind the timer; handle them before reporting
  setInterval(() => setImmediate(() => tell({ type: 'alive', ...life.now() })), lifeMs)
  const started = await startWork(module)
  if (!started) process.exit(1) // even if something that the module opened would keep the process alive
  const { hf, working } = started
  life.now = () => ({ pulses: hf.pulses(), isHeld: working.isHeld(), allowedMs: working.allowedMs() })
  const failure = await Promise.race([ended, working.ended])
  if (failure) await leave(hf, failure)
  await hf.close()
  // a handler that ignores its signal would keep the process alive
  process.exit()
}

const lifeMs = 1_000

// what a failed worker could not give back by then is taken back by its supervisor
const longestGoodbyeMs = 5_000

/** Ends a process whose worker has failed, so that its supervisor replaces it. If handlers are unresponsive, the others may finish first. */
async function leave(hf: Holdfast, { code }: HoldfastError): Promise<never> {
  const isWornOut = code === 'handlers_unresponsive'
  await within(
    longestGoodbyeMs + (isWornOut ? hf.config.drainMs : 0),
    hf.close().catch(() => {}),
  )
  process.exit(isWornOut ? wornOutCode : 1)
}

interface Started {
  hf: Holdfast
  working: Working
}

async function startWork(module: string): Promise<Started | undefined> {
  let hf: Holdfast | undefined
  try {
    const jobs = await loadJobs(module)
    const owners = await loadOwners(readConfig({}), module)
    hf = await connect({ jobs, owners, supervisor: process.env[supervisorVariable] ?? '' })
    const working = await hf.work()
    await tell({ type: 'ready', session: working.sessionId() })
    return { hf, working }
  } catch (error) {
    await hf?.close()
    await tell({ type: 'failed', code: codeOf(error), message: messageOf(error) })
    return undefined
  }
}

function tell(message: ChildMessage): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected || !process.send) return resolve()
    process.send(message, undefined, undefined, () => resolve())
  })
}
