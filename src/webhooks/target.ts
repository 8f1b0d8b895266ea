import { HoldfastError } from '../errors/errors.ts'
import type { AddressPolicy } from './address.ts'

const maxLength = 2_000

/**
 * The URL of a webhook, if one may be sent there. It must be https, so that nobody on the way reads or changes events;
 * plain http is for hosts on the allow-list, which are in networks of your own.
 */
export function checkWebhookUrl(text: string, policy: AddressPolicy): URL {
  const url = parsed(text)
  if (!/^https?:$/.test(url.protocol))
    throw invalid(`A webhook URL must begin with https://, and this one begins with ${url.protocol.slice(0, 40)}`)
  if (url.username || url.password)
    throw invalid('A webhook URL may not hold a user or a password; send an authorization header instead')
  const verdict = policy.checkHost(url.hostname)
  if (verdict.kind === 'refused')
    throw refused(
      `Webhooks may not be sent to ${url.hostname}: that address is ${verdict.sort}, and not on the allow-list`,
    )
  if (url.protocol === 'http:' && verdict.kind !== 'listed')
    throw refused(`Webhooks to ${url.hostname} must use https; plain http is only for hosts on the allow-list`)
  return url
}

function parsed(text: unknown): URL {
  if (typeof text !== 'string') throw invalid('A webhook URL must be a text')
  if (text.length > maxLength)
    throw invalid(`A webhook URL may have ${maxLength} characters, and this one has ${text.length}`)
  // the parser drops them silently, and then the URL is not the one that everybody reads
  if (/[\s\p{Cc}]/u.test(text)) throw invalid('A webhook URL may not hold spaces, line breaks or control characters')
  if (!URL.canParse(text)) throw invalid('That is not a complete URL such as https://example.com/hooks')
  return new URL(text)
}

function invalid(sentence: string): HoldfastError {
  return new HoldfastError('webhook_url_invalid', `${sentence}.`)
}

function refused(sentence: string): HoldfastError {
  return new HoldfastError('webhook_url_refused', `${sentence}.`)
}
