import { expect, test } from 'vitest'
import { makeAddressPolicy } from './address.ts'
import { checkWebhookUrl } from './target.ts'

const strict = makeAddressPolicy({ allow: [] })
const own = makeAddressPolicy({ allow: ['127.0.0.0/8', 'hooks.internal'] })

test('an https URL with a public host passes, as it is', () => {
  for (const url of ['https://example.com/hooks?a=b', 'https://example.com:8443/', 'https://8.8.8.8/'])
    expect(checkWebhookUrl(url, strict).href).toBe(url)
})

test.each([
  ['decimal', '2130706433'],
  ['hex', '0x7f000001'],
  ['octal', '0177.0.0.1'],
  ['short', '127.1'],
  ['dotted', '127.0.0.1'],
  ['with a dot at its end', '127.0.0.1.'],
  ['percent-encoded', '%31%32%37.0.0.1'],
  ['in full-width digits', '１２７.0.0.1'],
  ['with ideographic dots', '127。0。0。1'],
  ['mixed', '0x7f.1'],
  ['zero', '0'],
  ['IPv6', '[::1]'],
  ['mapped', '[::ffff:127.0.0.1]'],
  ['compatible', '[::127.0.0.1]'],
  ['NAT64', '[64:ff9b::7f00:1]'],
  ['metadata', '169.254.169.254'],
  ['metadata over IPv6', '[fd00:ec2::254]'],
  ['metadata in decimal', '2852039166'],
  ['a name', 'localhost'],
  ['a name with a dot', 'localhost.'],
  ['a name below', 'a.localhost'],
  ['capital letters', 'LocalHost'],
])('a URL is judged by the address that it means: %s', (_, host) => {
  expect(() => checkWebhookUrl(`https://${host}/`, strict)).toThrow(
    expect.objectContaining({ code: 'webhook_url_refused' }),
  )
})

test('a URL on the allow-list passes in every form', () => {
  for (const host of ['2130706433', '0x7f000001', '0177.0.0.1', '127.1', 'localhost', '[::ffff:127.0.0.1]'])
    expect(checkWebhookUrl(`https://${host}/`, own).protocol).toBe('https:')
})

test('plain http is only for hosts on the allow-list', () => {
  for (const host of ['127.0.0.1:8080', 'localhost', 'hooks.internal', 'HOOKS.internal.'])
    expect(checkWebhookUrl(`http://${host}/`, own).protocol).toBe('http:')
  for (const host of ['example.com', '8.8.8.8', 'a.hooks.internal'])
    expect(() => checkWebhookUrl(`http://${host}/`, own)).toThrow(
      expect.objectContaining({ code: 'webhook_url_refused' }),
    )
})

test.each([
  '',
  'example.com/hooks',
  '/hooks',
  'https://',
  'ftp://example.com/',
  'file:///etc/passwd',
  'data:text/plain,a',
  'javascript:alert(1)',
  'https://user@example.com/',
  'https://user:password@example.com/',
  'https://:password@example.com/',
  'https://exa mple.com/',
  'https://exam\nple.com/',
  ' https://example.com/',
  'https://example.com/\0',
  'https://[fe80::1%25eth0]/',
  'https://[fe80::1%eth0]/',
  'https://256.256.256.256/',
  'https://example.com:99999/',
  `https://example.com/${'a'.repeat(2_000)}`,
])('what is no URL for a webhook is refused: %j', (url) => {
  expect(() => checkWebhookUrl(url, strict)).toThrow(expect.objectContaining({ code: 'webhook_url_invalid' }))
})

test('no message repeats a password', () => {
  expect(() => checkWebhookUrl('https://user:hunter2@example.com/', strict)).toThrow(/^(?!.*hunter2)/s)
})
