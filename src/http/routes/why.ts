import type { Why } from '../../engine/why.ts'
import { byCaller, mustHave, scopeFor } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { byId, id, state, time } from '../schemas/words.ts'
import { z } from '../zod.ts'

const verdict = z.object({ code: z.string(), sentence: z.string() })

const why = z
  .object({
    id,
    at: time,
    state: state.nullable(),
    verdict,
    orphan: z.string().nullable().openapi({ description: 'The class of orphan that it is, if it is one.' }),
    next: z
      .object({ what: z.string(), byAt: time.nullable() })
      .nullable()
      .openapi({ description: 'What will happen by itself, and by when.' }),
    disagreements: z.array(z.string()).openapi({ description: 'Where the sources contradict each other.' }),
    facts: z.record(z.string(), z.unknown()).openapi({ description: 'What every source of truth says.' }),
    repair: z.object({ name: z.string(), sentence: z.string() }).nullable(),
    snapshots: z
      .array(z.object({ at: time, attempt: z.number().int(), event: z.string(), verdict: verdict.nullable() }))
      .openapi({ description: 'What was to be said when attempts of it failed or lost their workers.' }),
  })
  .openapi('Why')

/** Why a job is where it is, and what helps. */
export const whyOperations = [
  operation({
    id: 'whyJob',
    method: 'get',
    path: '/v1/jobs/{id}/why',
    tag: 'jobs',
    summary: 'Say why a job is where it is',
    about:
      'What every source of truth says, where they disagree, a verdict in one sentence, what happens by itself and by when, and a repair.',
    scope: 'read',
    params: byId,
    answers: { 200: { about: 'The verdict and its reasons.', schema: why } },
    problems: ['job_not_found'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.why(params.id, scopeFor(caller)))),
  }),
  operation({
    id: 'mendJob',
    method: 'post',
    path: '/v1/jobs/{id}/mend',
    tag: 'jobs',
    summary: 'Make the repair of a verdict',
    about:
      'Through the same statements as everything else, so a repair that is no longer right does nothing. With `dryRun` it only says what it would do, like `why`; without it, the key needs the scope `operate`.',
    scope: 'read',
    params: byId,
    body: z.strictObject({ dryRun: z.boolean().optional() }),
    answers: {
      200: {
        about: 'What was done, and how it stands now.',
        schema: z
          .object({ repair: z.string().nullable(), sentence: z.string(), isApplied: z.boolean(), why })
          .openapi('Mended'),
      },
    },
    problems: ['job_not_found', 'move_illegal'],
    async handle({ hf, caller, params, body }) {
      if (body.dryRun !== true) mustHave(caller, 'operate', false)
      const mended = await hf.mend(params.id, {
        ...scopeFor(caller),
        ...byCaller(caller),
        dryRun: body.dryRun ?? false,
      })
      return json(200, { ...mended, why: show(mended.why) })
    },
  }),
]

/** The stack of a handler is for whoever runs it. */
function show(given: Why): object {
  return JSON.parse(JSON.stringify(given, (name, value) => (name === 'stack' ? undefined : value)))
}
