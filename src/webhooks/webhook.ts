import { HoldfastError } from '../errors/errors.ts'
import { type EventType, typesOf } from '../job/event-type.ts'
import { allMoves, announces, isFinal, leadsTo } from '../job/machine.ts'
import type { AddressPolicy } from './address.ts'
import { checkHeaders } from './headers.ts'
import { checkSecret, freshSecret, seal } from './secret.ts'
import { checkWebhookUrl } from './target.ts'

/** A webhook, as somebody asks for it. */
export interface GivenWebhook {
  /** Where to: https, or any host of the setting `webhookAllow`. */
  url: string
  /** Which events: `'job.failed'`, `'job.*'`, several in a list. Default: those that end a job. */
  types?: string | readonly string[]
  /** The signing secret, `whsec_…`. */
  secret?: string
  /** Sent with every delivery. */
  headers?: Record<string, string>
}

/** A webhook that was checked, as it is stored. */
export interface StoredWebhook {
  url: string
  origin: string
  types: string[]
  headers: string
  /** Sealed. */
  secret: string
}

/** What checking needs. */
export interface WebhookRules {
  policy: AddressPolicy
  key: Buffer | null
}

/** The events that end a job. */
export const finalTypes: readonly EventType[] = allMoves
  .filter((move) => leadsTo(move).every(isFinal))
  .map(announces)
  .filter((type) => type !== null)

/** Checks a webhook, and answers it as it is stored, with its secret as it is shown this once. */
export function checkWebhook(
  { policy, key }: WebhookRules,
  { url, types, secret, headers = {} }: GivenWebhook,
): StoredWebhook & { shown: string } {
  const target = checkWebhookUrl(url, policy)
  const shown = secret === undefined ? freshSecret() : checkSecret(secret)
  return {
    url: target.href,
    origin: target.origin,
    types: checkTypes(types),
    headers: JSON.stringify(checkHeaders(headers)),
    secret: seal(shown, key),
    shown,
  }
}

/** Checks the webhook of a job. Its secret is the caller's: one that we made would be shown to nobody. */
export function checkJobWebhook(rules: WebhookRules, webhook: GivenWebhook): StoredWebhook & { shown: string } {
  if (typeof webhook !== 'object' || webhook === null)
    throw new HoldfastError('option_invalid', 'The option webhook must be an object with a url and a secret.')
  return checkWebhook(rules, { ...webhook, secret: checkSecret(webhook.secret) })
}

/** The types that were asked for, one by one. */
export function checkTypes(types: string | readonly string[] | undefined): string[] {
  if (types === undefined) return [...finalTypes]
  const found = typesOf([types].flat())
  if ('types' in found) return found.types
  throw new HoldfastError(
    'event_type_unknown',
    `There is no event of type ${JSON.stringify(found.unknown)}; the reference lists all (docs/reference/events.md), and job.* means those of jobs.`,
  )
}
