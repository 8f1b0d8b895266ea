import { HoldfastError } from '../errors/errors.ts'
import { type EventType, mustBeTypes } from '../job/event-type.ts'
import { allMoves, announces, isEnding } from '../job/machine.ts'
import type { AddressPolicy } from './address.ts'
import { checkHeaders } from './headers.ts'
import { checkSecret, freshSecret, seal } from './secret.ts'
import { checkWebhookUrl } from './target.ts'

/** A webhook to create. */
export interface GivenWebhook {
  /** The URL to send to: https, or any host of the setting `webhookAllow`. */
  url: string
  /** The event types to send: `'job.failed'`, `'job.*'`, or a list. Default: those that end a job. */
  types?: string | readonly string[]
  /** The signing secret, `whsec_…`. */
  secret?: string
  /** Headers to send with every delivery. */
  headers?: Record<string, string>
}

/** A checked webhook, as it is stored. */
export interface StoredWebhook {
  url: string
  origin: string
  types: string[]
  headers: string
  /** Encrypted, if there is a secret key. */
  secret: string
}

/** The rules that webhooks are checked by. */
export interface WebhookRules {
  policy: AddressPolicy
  key: Buffer | null
}

/** The events that end a job. */
export const finalTypes: readonly EventType[] = allMoves
  .filter(isEnding)
  .map(announces)
  .filter((type) => type !== null)

/** Checks a webhook. Returns it as it is stored, with its secret, which is shown only this once. */
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

/** Checks the webhook of a job. The caller must provide the secret: a generated one would never be shown. */
export function checkJobWebhook(rules: WebhookRules, webhook: GivenWebhook): StoredWebhook & { shown: string } {
  if (typeof webhook !== 'object' || webhook === null)
    throw new HoldfastError('option_invalid', 'The option webhook must be an object with a url and a secret.')
  return checkWebhook(rules, { ...webhook, secret: checkSecret(webhook.secret) })
}

/** The event types of a webhook. */
export function checkTypes(types: string | readonly string[] | undefined): string[] {
  return types === undefined ? [...finalTypes] : mustBeTypes(types)
}
