import type { ClaimedDelivery } from './claim.sql.ts'
import type { Post } from './post.ts'
import { unseal } from './secret.ts'
import { sign } from './sign.ts'

/** What is sent: to whom, what, and signed with what. Secrets are sealed, and two while one is replaced. */
export interface Sending {
  id: string
  tenant: string
  url: string
  body: string
  headers: Record<string, string>
  secrets: string[]
  trace: string | null
}

/** Who sends, and when: milliseconds since 1970 by the clock of the database, since receivers reject a time that is minutes off. */
export interface Signer {
  key: Buffer | null
  userAgent: string
  atMs: number
}

/** The request of a sending. Signed anew for each try, over exactly the bytes that are sent; the time is that of the try. */
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
  // ours last: nobody overrides them, whatever a row holds
  return { tenant, url, body, atMs, headers: { ...sending.headers, ...ours } }
}

/** The sending of a delivery; a sentence if there is nobody to send it to. */
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
