// The kinds of a proof, except that one of them returns the token of another run, as if the write of a lost attempt had been accepted.
import { proverKinds as soundKinds } from '../../dist/prove/kinds.js'

export function proverKinds(report) {
  const kinds = soundKinds(report)
  const [stage] = kinds.patient.stages
  const run = async (ctx) => ({ ...(await stage.run(ctx)), token: 'of-another-run' })
  return { ...kinds, patient: { ...kinds.patient, stages: [{ ...stage, run }] } }
}
