import { messageOf } from '../errors/errors.ts'
import { RefusedNameError } from './lookup.ts'
import { UnresolvedNameError } from './resolver.ts'

/** The same for a name that does not exist and for one with internal addresses: the difference would reveal your network. */
const leadsNowhere = 'The host name does not resolve to an address that webhooks may be sent to.'
const isUnanswered = 'The host name could not be looked up: no name server answered in time.'

const sentences: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was closed before a response arrived.',
  ECONNABORTED: 'The connection was closed before a response arrived.',
  EPIPE: 'The connection was closed before a response arrived.',
  UND_ERR_SOCKET: 'The connection was closed before a response arrived.',
  ETIMEDOUT: 'No connection could be made in time.',
  UND_ERR_CONNECT_TIMEOUT: 'No connection could be made in time.',
  UND_ERR_HEADERS_TIMEOUT: 'The receiver did not respond in time.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the response are too large.',
  EHOSTUNREACH: 'The host cannot be reached from here.',
  ENETUNREACH: 'The network of the host cannot be reached from here.',
  EADDRNOTAVAIL: 'The network of the host cannot be reached from here.',
}

/** Why a request failed without a response, in a sentence for the operator of the receiver. */
export function sentenceOf(error: unknown): string {
  if (error instanceof RefusedNameError) return leadsNowhere
  if (error instanceof UnresolvedNameError) return error.isUnanswered ? isUnanswered : leadsNowhere
  const code = codeOf(error)
  const known = sentences[code]
  if (known) return known
  const message = messageOf(error).replace(/\.$/, '')
  if (isCertificate(code)) return `The TLS certificate is not valid: ${message}.`
  if (isTls(code)) return 'The TLS handshake failed: the two sides could not agree on how to connect.'
  if (error instanceof Error && error.name === 'HTTPParserError') return 'The response is not valid HTTP.'
  return `The request failed: ${message}.`
}

/** Whether the request itself is malformed, so that a retry can't help. */
export function isMalformed(error: unknown): boolean {
  return codeOf(error) === 'UND_ERR_INVALID_ARG'
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

function isCertificate(code: string): boolean {
  return /CERT|^UNABLE_TO_|^CRL_|^INVALID_CA$|^INVALID_PURPOSE$|^HOSTNAME_MISMATCH$|^PATH_LENGTH_EXCEEDED$/.test(code)
}

function isTls(code: string): boolean {
  return code === 'EPROTO' || /^ERR_(SSL|TLS)_/.test(code)
}
