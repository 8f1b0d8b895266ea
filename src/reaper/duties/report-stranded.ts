import { type Duty, report } from '../duty.ts'
import { strandedKinds } from '../session.sql.ts'

/** Reports kinds with due jobs that no running worker handles. */
export const reportStranded: Duty = {
  name: 'reportStranded',
  everyMs: 60_000,
  run: async (store) => report({ stranded: await store.run(strandedKinds, {}) }),
}
