import type { BulkObserver } from '../bulk/carry-on.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'

/** Reports on bulk operations that this process carries on. */
export function bulkObserver({ log, metrics }: Pick<EngineParts, 'log' | 'metrics'>): BulkObserver {
  return {
    paged({ operation }, { done, skipped }) {
      if (done > 0) metrics.add('holdfast_bulk_jobs_total', { operation, outcome: 'done' }, done)
      if (skipped > 0) metrics.add('holdfast_bulk_jobs_total', { operation, outcome: 'skipped' }, skipped)
    },
    finished: ({ id, operation }) => log.info({ bulk: id, operation }, 'finished a bulk operation'),
    failed({ id, operation }, error) {
      metrics.add('holdfast_bulk_failures_total', { operation })
      logError(log, 'bulk operation', error, { bulk: id, operation })
    },
  }
}
