/** The network of an address: a client with one IPv6 address has its whole /64 network. */
export function networkOf(address: string | null): string {
  if (address === null) return ''
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail = ''] = plain.split('::', 2)
  const groups = head.split(':').filter(Boolean)
  const rest = tail.split(':').filter(Boolean)
  const whole = [...groups, ...Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0'), ...rest]
  return `${whole.slice(0, 4).join(':')}::/64`
}
