import type { Why } from '../../engine/why.ts'
import { byCaller, mustHave } from '../caller.ts'
import { json, operation } from '../operation.ts'
import { byId, id, state, time } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'

const verdict = z.object({ code: z.string(), sentence: z.string() })

const why = z
  .object({
    id,
    at: time,
    state: state.nullable(),
    verdict,
    orphan: z.string().nullable().openapi({ description: 'Orphan class of the job, if it is an orphan.' }),
    next: z
      .object({ what: z.string(), byAt: time.nullable() })
      .nullable()
      .openapi({ description: 'What happens next without intervention, and by when.' }),
    disagreements: z.array(z.string()).openapi({ description: 'Contradictions between the sources.' }),
    facts: z.record(z.string(), z.unknown()).openapi({ description: 'Facts from every source of truth.' }),
    repair: z.object({ name: z.string(), sentence: z.string() }).nullable(),
    snapshots: z
      .array(z.object({ at: time, attempt: z.number().int(), event: z.string(), verdict: verdict.nullable() }))
      .openapi({ description: 'Verdicts recorded when attempts failed or lost their workers.' }),
  })
  .openapi('Why')

/** Operations that diagnose and repair a job. */
export const whyOperations = [
  operation({
    id: 'whyJob',
    method: 'get',
    path: '/v1/jobs/{id}/why',
    tag: 'jobs',
    summary: 'Explain the state of a job',
    about:
      'Returns a one-sentence verdict, the facts from every source of truth, contradictions between them, what happens next and by when, and a possible repair.',
    scope: 'read',
    isScan: true,
    params: byId,
    answers: { 200: { about: 'The verdict and its reasons.', schema: why } },
    problems: ['job_not_found', 'job_gone'],
    handle: async ({ hf, caller, params }) => json(200, show(await hf.why(params.id, scopeFor(caller)))),
  }),
  operation({
    id: 'repairJob',
    method: 'post',
    path: '/v1/jobs/{id}/repair',
    tag: 'jobs',
    summary: 'Repair a job',
    about:
      'Applies the repair that `why` suggests. A repair uses the same guarded statements as normal operation, so an outdated repair does nothing. With `dryRun`, only returns what it would do; without it, the key needs the scope `operate`.',
    scope: 'read',
    isScan: true,
    params: byId,
    body: z.strictObject({ dryRun: z.boolean().optional() }),
    answers: {
      200: {
        about: 'What was done, and the verdict afterwards.',
        schema: z
          .object({ repair: z.string().nullable(), sentence: z.string(), isApplied: z.boolean(), why })
          .openapi('Repaired'),
      },
    },
    problems: ['job_not_found', 'job_gone', 'move_illegal'],
    async handle({ hf, caller, params, body }) {
      if (body.dryRun !== true) mustHave(caller, 'operate', false)
      const repaired = await hf.repair(params.id, {
        ...scopeFor(caller),
        ...byCaller(caller),
        dryRun: body.dryRun ?? false,
      })
      return json(200, { ...repaired, why: show(repaired.why) })
    },
  }),
]

/** A diagnosis without stacks, which are only for those who run the handlers. */
function show(why: Why): object {
  return JSON.parse(JSON.stringify(why, (name, value) => (name === 'stack' ? undefined : value)))
}
