import { dayMs } from '../errors/duration.ts'
import type { Setting } from './setting.ts'

/** The settings of webhooks. */
export const webhookSettings = {
  webhooks: {
    type: 'flag',
    default: true,
    about: 'Whether this process plans and sends webhooks while it runs a worker or reaper.',
  },
  webhookTimeoutMs: {
    type: 'whole',
    default: 15_000,
    min: 100,
    max: 300_000,
    about: 'How long a webhook request may take, from the DNS lookup to the end of the response.',
  },
  webhookMaxBytes: {
    type: 'whole',
    default: 262_144,
    min: 1_024,
    max: 16_777_216,
    about: 'Maximum body size of a webhook; a result that does not fit is replaced by a link.',
  },
  webhookGiveUpMs: {
    type: 'whole',
    default: dayMs,
    min: 100,
    max: 30 * dayMs,
    about: 'How long a webhook is retried before it becomes a dead letter.',
  },
  webhookBackoffBaseMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: dayMs,
    about: 'Delay before the first retry of a webhook; it triples with each failure, up to four hours.',
  },
  webhookAllow: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Comma-separated hosts, addresses and CIDRs that webhooks may reach even if they are not public, or over plain http.',
  },
  webhookEndpoints: {
    type: 'whole',
    default: 100,
    min: 1,
    max: 10_000,
    about: 'Maximum number of webhook endpoints per tenant.',
  },
  webhookInFlight: {
    type: 'whole',
    default: 256,
    min: 1,
    max: 512,
    about:
      'Webhooks of one tenant that one process sends concurrently, including tests. A process sends at most 512 in total, and a tenant never gets more than what is still free.',
  },
  webhookTests: {
    type: 'whole',
    default: 4,
    min: 1,
    max: 100,
    about: 'Webhook tests of one tenant that one process runs concurrently.',
  },
  webhookLookups: {
    type: 'whole',
    default: 16,
    min: 1,
    max: 512,
    about: 'Host names that one process looks up concurrently for the webhooks of one tenant; others wait.',
  },
  webhookLookupMs: {
    type: 'whole',
    default: 5_000,
    min: 100,
    max: 60_000,
    about: 'How long a DNS lookup for a webhook may take before it is cancelled.',
  },
  webhookNameServers: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Comma-separated name servers that resolve webhook hosts, as IP or IP:port. Empty: those of the system. The hosts file takes precedence.',
  },
  secretKey: {
    type: 'text',
    default: undefined,
    about: 'Key that encrypts webhook secrets: 32 bytes as base64 or hex. Unset: secrets are stored in plain text.',
  },
  publicUrl: {
    type: 'text',
    default: undefined,
    about: 'Base URL of the Holdfast API for links in webhooks.',
  },
  deliveryRetentionMs: {
    type: 'whole',
    default: 7 * dayMs,
    min: 3_600_000,
    max: 3_650 * dayMs,
    about: 'How long webhook deliveries are kept after they end.',
  },
} as const satisfies Record<string, Setting>
