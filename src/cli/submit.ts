import type { Command } from 'commander'
import type { Handle } from '../engine/handle.ts'
import type { SubmitHow } from '../engine/submissions.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { withClient } from './client.ts'
import { findKind } from './find-kind.ts'
import { addExamples, addJson, addSettings, configOf, submitSettings } from './flags.ts'
import { parseLength, parseMoment, parseWhole } from './format-time.ts'
import { readInput } from './submit-input.ts'
import { complain, paint, print } from './terminal.ts'

interface Flags {
  key?: string
  tenant?: string
  delay?: string
  runAt?: string
  priority?: string
  unique?: string
  uniqueWhile?: string
  uniqueWindow?: string
  onConflict?: string
  webhook?: string
  webhookSecret?: string
  module?: string
  wait?: string | true
  json?: true
}

/** How a job ended; `failed` and `cancelled` jobs have no outputs. */
interface Ended {
  state: string
  output?: unknown
  outputs?: unknown
  error?: { code: string; message: string } | null
}

/** Adds `holdfast submit <kind> [json]`. */
export function addSubmit(program: Command): void {
  const command = program
    .command('submit')
    .description('Submit a job. The kind must be registered by a worker, or defined in --module.')
    .argument('<kind>', 'Kind of job.')
    .argument('[json]', 'Input: JSON, @file, or - for stdin.')
    .option('--key <text>', 'Idempotency key: the same key and input return the same job.')
    .option('--unique <key>', 'Unique key: no second job of the kind is submitted while one holds it.')
    .option('--unique-while <state>', 'How long the job holds the unique key: queued or live (default).')
    .option('--unique-window <time>', 'Hold the unique key for at least this long: 30, 90s, 5m, 2h.')
    .option('--on-conflict <way>', 'If another job holds the unique key: keep (default), replace or reschedule.')
    .option('--tenant <name>', 'Tenant that owns the job.')
    .option('--delay <time>', 'Delay the job by this long: 30, 90s, 5m, 2h.')
    .option('--run-at <moment>', 'Run no earlier than this: 2030-01-31T08:00:00Z.')
    .option('--priority <number>', '1 (first) to 4 (last).')
    .option('--webhook <url>', 'Webhook URL to notify when the job ends, signed with --webhook-secret.')
    .option('--webhook-secret <whsec>', 'Signing secret for --webhook (whsec_…).')
    .option(
      '--module <file>',
      'Module that defines the kind. The input is validated against its schema before submitting.',
    )
    .option('--wait [time]', 'Wait for the result, up to this long, and print it.')
    .action((kind: string, json: string | undefined, flags: Flags) => submit(kind, json, flags))
  addSettings(addJson(command), submitSettings)
  addExamples(command, [
    [`holdfast submit extract '{"document":"invoice-1001.txt"}' --wait`, 'wait and print the result'],
    ['holdfast submit report @input.json --key 2030-01 --delay 1h', 'once, in an hour'],
    ['cat input.json | holdfast submit report - --module jobs.mjs', 'validate the input first'],
  ])
}

async function submit(kind: string, json: string | undefined, flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const how = howOf(flags)
  const timeout = typeof flags.wait === 'string' ? parseLength('--wait', flags.wait) : undefined
  const input = await readInput(json)
  await withClient(config, async (hf) => {
    const job = await findKind(hf, kind, flags)
    const handle = await hf.submit(job, input as never, how)
    const { id, isNew, outcome } = handle
    if (!flags.json) tellSubmitted(kind, handle, how.unique !== undefined)
    const ended = flags.wait === undefined ? undefined : await endOf(handle, timeout)
    if (flags.json)
      print(
        JSON.stringify(
          { id, kind, isNew, ...(how.unique && { outcome }), ...(ended && { result: ended.result }) },
          null,
          2,
        ),
      )
    if (!flags.json && ended) tellEnded(ended.result)
    if (ended?.failure) throw ended.failure
  })
}

function howOf(flags: Flags): SubmitHow {
  const { key, tenant, delay, runAt, priority } = flags
  return {
    ...(key !== undefined && { key }),
    ...(tenant !== undefined && { tenant }),
    ...(delay !== undefined && { delayMs: parseLength('--delay', delay) }),
    ...(runAt !== undefined && { runAt: parseMoment('--run-at', runAt) }),
    ...(priority !== undefined && { priority: parseWhole('--priority', priority) }),
    ...uniqueOf(flags),
    ...webhookOf(flags),
  }
}

function uniqueOf({
  unique: key,
  uniqueWhile,
  uniqueWindow,
  onConflict,
}: Flags): Pick<SubmitHow, 'unique' | 'onConflict'> {
  const isUnique = key !== undefined || uniqueWhile !== undefined || uniqueWindow !== undefined
  return {
    ...(isUnique && {
      unique: {
        key: key as string,
        ...(uniqueWhile !== undefined && { while: uniqueWhile as 'queued' }),
        ...(uniqueWindow !== undefined && { windowMs: parseLength('--unique-window', uniqueWindow) }),
      },
    }),
    ...(onConflict !== undefined && { onConflict: onConflict as 'keep' }),
  }
}

function webhookOf({ webhook: url, webhookSecret: secret }: Flags): Pick<SubmitHow, 'webhook'> {
  if (url !== undefined && secret !== undefined) return { webhook: { url, secret } }
  if (url === undefined && secret === undefined) return {}
  throw new HoldfastError('option_invalid', '--webhook and --webhook-secret (whsec_…) must be used together.')
}

/** Waits for the job to end. A failed job is a valid result, but still makes the command fail. */
async function endOf(
  handle: Handle<AnyJob>,
  timeout: number | undefined,
): Promise<{ result: Ended; failure?: HoldfastError }> {
  try {
    return { result: await handle.result(timeout === undefined ? {} : { timeout }) }
  } catch (failure) {
    if (!(failure instanceof HoldfastError) || !failure.details?.error) throw failure
    const error = failure.details.error as { code: string; message: string }
    return { result: { state: failure.code === 'job_cancelled' ? 'cancelled' : 'failed', error }, failure }
  }
}

function tellSubmitted(kind: string, { id, isNew, outcome }: Handle<AnyJob>, isUnique: boolean): void {
  if (outcome === 'replaced') complain(`Submitted ${kind} as ${id}, in place of the job that held the unique key.`)
  else if (outcome === 'rescheduled') complain(`Rescheduled ${id}, which holds the unique key; submitted nothing.`)
  else if (isNew) complain(`Submitted ${kind} as ${id}.`)
  else if (isUnique) complain(`${id} holds the unique key; submitted nothing.`)
  else complain(`An earlier submit with this key already created ${id}.`)
}

function tellEnded({ state, output, outputs, error }: Ended): void {
  if (state === 'partial')
    complain(
      `${paint('yellow', 'partial', process.stderr)}: ${error?.message ?? 'some items failed; see `holdfast show`'}`,
    )
  if (state === 'succeeded') print(JSON.stringify(output, null, 2))
  if (state === 'partial') print(JSON.stringify(outputs, null, 2))
}
