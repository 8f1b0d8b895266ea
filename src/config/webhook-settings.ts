import type { Setting } from './setting.ts'

const day = 86_400_000

/** The settings of webhooks. */
export const webhookSettings = {
  webhooks: {
    type: 'flag',
    default: true,
    about: 'Whether this process plans and sends webhooks while it works or reaps.',
  },
  webhookTimeoutMs: {
    type: 'whole',
    default: 15_000,
    min: 100,
    max: 300_000,
    about: 'How long a receiver of a webhook may take, from the look-up of its name to the end of its answer.',
  },
  webhookMaxBytes: {
    type: 'whole',
    default: 262_144,
    min: 1_024,
    max: 16_777_216,
    about: 'Largest body of a webhook; a result that does not fit is replaced by a link.',
  },
  webhookGiveUpMs: {
    type: 'whole',
    default: day,
    min: 100,
    max: 30 * day,
    about: 'How long a webhook is tried before it becomes a dead letter.',
  },
  webhookBackoffBaseMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: day,
    about: 'Wait before a webhook is tried a second time; it triples with each failure, up to four hours.',
  },
  webhookAllow: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Hosts, addresses and CIDRs that webhooks may go to although they are not public, or by plain http; with commas between.',
  },
  webhookEndpoints: {
    type: 'whole',
    default: 100,
    min: 1,
    max: 10_000,
    about: 'Webhook endpoints that one tenant may have.',
  },
  webhookInFlight: {
    type: 'whole',
    default: 256,
    min: 1,
    max: 512,
    about:
      'Webhooks of one tenant that one process sends at once, tests included. It sends 512 in all, and a tenant never gets more than what is still free.',
  },
  webhookTests: {
    type: 'whole',
    default: 4,
    min: 1,
    max: 100,
    about: 'Webhook tests of one tenant that one process runs at once.',
  },
  webhookLookups: {
    type: 'whole',
    default: 16,
    min: 1,
    max: 512,
    about: 'Host names that one process looks up at once for the webhooks of one tenant; more wait their turn.',
  },
  webhookLookupMs: {
    type: 'whole',
    default: 5_000,
    min: 100,
    max: 60_000,
    about: 'How long the look-up of a host name for a webhook may take before it is cancelled.',
  },
  webhookNameServers: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Name servers that resolve the hosts of webhooks, as IP or IP:port, with commas between. Empty: those of the system. The hosts file comes first.',
  },
  secretKey: {
    type: 'text',
    default: undefined,
    about:
      'Key that the secrets of webhooks are stored under: 32 bytes as base64 or hex. Without it they are stored readable.',
  },
  publicUrl: {
    type: 'text',
    default: undefined,
    about: 'Where receivers of webhooks reach the API of Holdfast, for the links in them.',
  },
  deliveryRetentionMs: {
    type: 'whole',
    default: 7 * day,
    min: 3_600_000,
    max: 3_650 * day,
    about: 'How long webhook deliveries are kept after they ended.',
  },
} as const satisfies Record<string, Setting>
