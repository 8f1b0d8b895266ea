import { byCaller } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { anything, id, name } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'

const signalled = z
  .object({
    isNew: z
      .boolean()
      .openapi({ description: 'False if a signal of this name was sent before. The first one counts.' }),
    isAwaited: z
      .boolean()
      .openapi({ description: 'Whether the job waited for it. Otherwise it is kept until the job reaches the stage.' }),
  })
  .openapi('Signalled')

/** Operations that send signals to jobs. */
export const signalOperations = [
  operation({
    id: 'signalJob',
    method: 'post',
    path: '/v1/jobs/{id}/signals/{name}',
    tag: 'jobs',
    summary: 'Send a signal to a job',
    about:
      'The payload is the output of the stage that waits for the signal. Safe to send again: the first one counts.',
    scope: 'submit',
    params: z.strictObject({ id, name }),
    body: z.strictObject({ payload: anything.optional() }),
    bodySize: 'input',
    answers: { 200: { about: 'What became of the signal.', schema: signalled } },
    problems: ['job_not_found', 'job_gone', 'signal_unknown', 'signal_refused', 'input_too_large', 'not_storable'],
    async handle({ hf, caller, params, body }) {
      const options = { ...scopeFor(caller), ...byCaller(caller) }
      return json(200, await hf.signal(params.id, params.name, body.payload ?? null, options))
    },
  }),
]
