import type { ClaimedDelivery } from './claim.sql.ts'
import type { Post } from './post.ts'
import { unseal } from './secret.ts'
import { sign } from './sign.ts'

/** What to send, and where. Secrets are encrypted; there are two during a rotation. */
export interface Sending {
  id: string
  tenant: string
  url: string
  body: string
  headers: Record<string, string>
  secrets: string[]
  trace: string | null
}

/** How to sign. `atMs` is the database time in milliseconds since 1970, because receivers reject a time that is minutes off. */
export interface Signer {
  key: Buffer | null
  userAgent: string
  atMs: number
}

/** The request. It is signed each time it is sent, with the current time, over exactly the bytes that are sent. */
export function requestOf(sending: Sending, { key, userAgent, atMs }: Signer): Post {
  const timestamp = Math.floor(atMs / 1_000)
  const secrets = sending.secrets.map((secret) => unseal(secret, key))
  const { id, tenant, url, body } = sending
  const ours = {
    'content-type': 'application/json',
    'user-agent': userAgent,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign({ id, timestamp, body, secrets }),
    ...(sending.trace === null ? {} : { traceparent: sending.trace }),
  }
  // ours last, so that no stored header overrides them
  return { tenant, url, body, atMs, headers: { ...sending.headers, ...ours } }
}

/** What to send for a delivery; or why there is nowhere to send it. */
export function sendingOf(row: ClaimedDelivery): Sending | string {
  if (row.url === null || row.secret === null)
    return row.endpoint_id === null ? 'The webhook of this job is gone.' : 'The endpoint was removed.'
  return {
    id: row.event_id,
    tenant: row.tenant,
    url: row.url,
    body: row.body,
    headers: row.headers ?? {},
    secrets: [row.secret, row.old_secret].filter((secret) => secret !== null),
    trace: row.trace,
  }
}
