import { loop, type Service } from '../service/service.ts'
import { isWanted, makePlanner, type PlannerParts } from './planner.ts'
import { makeSender, type SenderParts } from './sender.ts'

/** What plans and sends. */
export type WebhookParts = Omit<PlannerParts, 'onPlanned' | 'onTrouble'> & SenderParts

/** Webhooks of one process: nothing but a look now and then until somebody wants the first one, then a planner and a sender. */
export interface WebhookService extends Service {
  /** Says that somebody may have wanted the first one. */
  wake(): void
}

/** Makes the webhooks of a process. */
export function makeWebhookService(parts: WebhookParts): WebhookService {
  const sender = makeSender(parts)
  const planner = makePlanner({ ...parts, onPlanned: sender.wake, onTrouble: parts.news.trouble })

  const waiting = loop({
    async turn() {
      if (!(await isWanted(parts.store))) return parts.pollMs
      await sender.start()
      await planner.start()
      // not awaited: a loop that stops waits for this very turn
      void waiting.stop()
      return 0
    },
    onError: parts.news.trouble,
  })

  return {
    start: () => waiting.start(),
    wake: () => waiting.wake(),
    async stop() {
      await waiting.stop()
      // what is planned last can still be sent by others
      await planner.stop()
      await sender.stop()
    },
  }
}
