// The kinds of a proof, but one of them returns what another attempt returned: as if a zombie's write had been let in.
import { proverKinds as soundKinds } from '../../dist/prove/kinds.js'

export function proverKinds(tell) {
  const kinds = soundKinds(tell)
  const [stage] = kinds.patient.stages
  const run = async (ctx) => ({ ...(await stage.run(ctx)), token: 'of-another-run' })
  return { ...kinds, patient: { ...kinds.patient, stages: [{ ...stage, run }] } }
}
