import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import { isName, nameRule } from '../job/names.ts'
import { encodeStorable } from '../job/storable.ts'
import { idOf, textOf } from '../job/validate-argument.ts'
import { noJob } from '../reads/gone.ts'
import { type SignalAnswer, sendSignal, signalsOfKind } from '../submit/signal.sql.ts'
import type { EngineParts } from './parts.ts'

/** What became of a signal. */
export interface Signalled {
  /** False if a signal of this name was sent before. The first one counts, and this one changed nothing. */
  isNew: boolean
  /** Whether the job waited for it and is due now. Otherwise it is kept until the job reaches the stage. */
  isAwaited: boolean
}

/** Options of a signal. */
export interface SignalOptions {
  /** Only a job of this tenant. */
  tenant?: string
  /** Who sends it; kept in the timeline. */
  by?: string
}

type Parts = Pick<EngineParts, 'store' | 'config' | 'metrics' | 'flow'>

/** Sends a signal to a job. Throws job_not_found, signal_unknown or signal_refused. */
export async function signalJob(
  { store, config, metrics, flow }: Parts,
  id: string,
  name: string,
  payload: unknown = null,
  options: SignalOptions = {},
): Promise<Signalled> {
  const jobId = idOf(id)
  if (!isName(name))
    throw new HoldfastError(
      'option_invalid',
      `${JSON.stringify(name) ?? 'undefined'} cannot name a signal; ${nameRule}.`,
    )
  const [tenant, by] = [textOf('tenant', options.tenant), textOf('by', options.by)]
  const json = encodePayload(await flow.signal({ id: jobId, name, payload }), config.maxOutputBytes)
  const [row] = await store.contend(sendSignal, { id: jobId, tenant, name, payload: json, by })
  const answer = row?.answer as SignalAnswer
  metrics.add('holdfast_signals_total', { outcome: answer })
  if (answer === 'none') throw await noJob(store, jobId, tenant)
  if (answer === 'unknown') throw await unknownSignal({ store }, jobId, name)
  if (answer === 'ended' || answer === 'late') throw refusal(jobId, name, answer)
  return { isNew: answer !== 'repeated', isAwaited: answer === 'awaited' }
}

function encodePayload(payload: unknown, mostBytes: number): string | null {
  if (payload === null || payload === undefined) return null
  const encoded = encodeStorable(payload, 'payload')
  if ('problem' in encoded)
    throw new HoldfastError('not_storable', `${encoded.path} ${encoded.problem}.`, { details: { ...encoded } })
  const bytes = Buffer.byteLength(encoded.json)
  if (bytes <= mostBytes) return encoded.json
  throw new HoldfastError(
    'input_too_large',
    `The payload of the signal is ${bytes} bytes; the limit is ${mostBytes} (setting maxOutputBytes). Store large data elsewhere and send a reference.`,
  )
}

function refusal(id: JobId, name: string, answer: 'ended' | 'late'): HoldfastError {
  const why = answer === 'ended' ? 'has ended' : 'waited for it until its timeout, and does not wait any more'
  return new HoldfastError('signal_refused', `Job ${id} was not sent the signal ${JSON.stringify(name)}: it ${why}.`)
}

async function unknownSignal({ store }: Pick<Parts, 'store'>, id: JobId, name: string): Promise<HoldfastError> {
  const [row] = await store.run(signalsOfKind, { id })
  const known = row?.signals.map((signal) => JSON.stringify(signal)).join(', ')
  return new HoldfastError(
    'signal_unknown',
    `Kind ${row?.kind} has no stage that waits for the signal ${JSON.stringify(name)}; ${known ? `it waits for ${known}` : 'it waits for no signal'}.`,
  )
}
