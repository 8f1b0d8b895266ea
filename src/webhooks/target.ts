import { HoldfastError } from '../errors/errors.ts'
import type { AddressPolicy } from './address.ts'

const maxLength = 2_000

/**
 * Checks the URL of a webhook. It must be https, so that nobody on the way can read or change events; plain http is for hosts on the
 * allow-list, which are in your own networks.
 */
export function checkWebhookUrl(text: string, policy: AddressPolicy): URL {
  const url = parsed(text)
  if (!/^https?:$/.test(url.protocol))
    throw invalid(`A webhook URL must begin with https://, but this one begins with ${url.protocol.slice(0, 40)}`)
  if (url.username || url.password)
    throw invalid('A webhook URL must not contain a user or a password; send an authorization header instead')
  const verdict = policy.checkHost(url.hostname)
  if (verdict.kind === 'refused')
    throw refused(
      `Webhooks to ${url.hostname} are not allowed: the address is ${verdict.sort} and not on the allow-list`,
    )
  if (url.protocol === 'http:' && verdict.kind !== 'listed')
    throw refused(`Webhooks to ${url.hostname} must use https; plain http is only for hosts on the allow-list`)
  return url
}

function parsed(text: unknown): URL {
  if (typeof text !== 'string') throw invalid('A webhook URL must be a string')
  if (text.length > maxLength)
    throw invalid(`A webhook URL may have at most ${maxLength} characters, but this one has ${text.length}`)
  // the parser silently drops them, and the URL would not be the one that people see
  if (/[\s\p{Cc}]/u.test(text))
    throw invalid('A webhook URL must not contain spaces, line breaks or control characters')
  if (!URL.canParse(text)) throw invalid('That is not a complete URL such as https://example.com/hooks')
  return new URL(text)
}

function invalid(sentence: string): HoldfastError {
  return new HoldfastError('webhook_url_invalid', `${sentence}.`)
}

function refused(sentence: string): HoldfastError {
  return new HoldfastError('webhook_url_refused', `${sentence}.`)
}
