import type { Operation } from './operation.ts'
import { bulkOperations } from './routes/bulk.ts'
import { deliveryOperations } from './routes/deliveries.ts'
import { detailOperations } from './routes/details.ts'
import { eventOperations } from './routes/events.ts'
import { groupOperations } from './routes/groups.ts'
import { jobOperations } from './routes/jobs.ts'
import { keyOperations } from './routes/keys.ts'
import { kindOperations } from './routes/kinds.ts'
import { limitOperations } from './routes/limits.ts'
import { operateOperations } from './routes/operate.ts'
import { remoteOperations } from './routes/remote.ts'
import { scheduleOperations } from './routes/schedules.ts'
import { signalOperations } from './routes/signals.ts'
import { submitOperations } from './routes/submit.ts'
import { webhookOperations } from './routes/webhooks.ts'
import { whyOperations } from './routes/why.ts'

/** Every operation of the HTTP API. */
export const operations: readonly Operation[] = [
  ...submitOperations,
  ...jobOperations,
  ...detailOperations,
  ...signalOperations,
  ...bulkOperations,
  ...whyOperations,
  ...eventOperations,
  ...webhookOperations,
  ...deliveryOperations,
  ...operateOperations,
  ...scheduleOperations,
  ...limitOperations,
  ...kindOperations,
  ...remoteOperations,
  ...groupOperations,
  ...keyOperations,
]
