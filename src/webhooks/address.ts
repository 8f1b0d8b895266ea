// The creator of a webhook chooses where this process connects to. Without a policy, that is a way into the networks around it: databases,
// admin pages, the metadata service of the cloud. So an address is allowed if it is public, or if the operator has listed it. It is judged by
// what it means, regardless of how it is written. A name does not tell where it leads, so names are judged twice: here as such, and at each
// connection by the addresses that they resolve to.
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import ipaddr from 'ipaddr.js'
import { HoldfastError } from '../errors/errors.ts'

/** The verdict of the policy: on the allow-list, public, or refused, with the sort of address that it is. */
export type Verdict = { kind: 'listed' } | { kind: 'public' } | { kind: 'refused'; sort: string }

/** Decides where webhooks may go. */
export interface AddressPolicy {
  /** Judges an IP address, and the name that resolved to it: a name on the allow-list allows its addresses. */
  check(address: string, name?: string): Verdict
  /** Judges the host of a URL before a lookup. The addresses of a name that is `public` are still to be checked. */
  checkHost(host: string): Verdict
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

const listed: Verdict = { kind: 'listed' }
const open: Verdict = { kind: 'public' }

const sorts: Record<string, string> = {
  private: 'private',
  loopback: 'loopback',
  linkLocal: 'link-local',
  uniqueLocal: 'unique-local',
  carrierGradeNat: 'carrier-grade NAT',
  multicast: 'multicast',
  broadcast: 'broadcast',
  unspecified: 'unspecified',
}

/** Addresses where clouds give credentials to any client. One of them looks public. */
const metadata = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
].map((text) => ipaddr.parse(text).toNormalizedString())

const globalUnicast = ipaddr.IPv6.parse('2000::')
const nat64 = ipaddr.IPv6.parse('64:ff9b::')

/** Makes a policy that allows only public addresses and those on the list: CIDRs, single addresses, or host names. */
export function makeAddressPolicy({ allow }: { allow: string[] }): AddressPolicy {
  const entries = allow.map(entryOf)
  const ranges = entries.filter((entry) => typeof entry !== 'string')
  const names = new Set(entries.filter((entry) => typeof entry === 'string'))
  const isListed = (address: Address) => ranges.some((range) => covers(range, address))
  const check = (text: string, name?: string) => {
    const address = addressOf(text)
    if (!address) return refused('unreadable')
    const isVouchedFor = name !== undefined && names.has(plainName(name)) && !isMetadata(address)
    if (isVouchedFor || formsOf(address).some(isListed)) return listed
    const sort = sortOf(address)
    return sort === undefined ? open : refused(sort)
  }
  return {
    check,
    checkHost(host) {
      const name = plainName(host)
      if (names.has(name)) return listed
      if (addressOf(name)) return check(name)
      // these always mean this machine (RFC 6761), so there is no need to look them up
      if (/(^|\.)localhost$/.test(name))
        return ['127.0.0.1', '::1'].map((one) => check(one)).find(isGood) ?? check('::1')
      return open
    },
  }
}

function isGood(verdict: Verdict): boolean {
  return verdict.kind !== 'refused'
}

function refused(sort: string): Verdict {
  return { kind: 'refused', sort }
}

/** A host without the brackets and the trailing dot that it may have in a URL. */
function plainName(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.+$/, '')
}

function addressOf(text: string): Address | undefined {
  const plain = isIP(text) === 6 ? inHex(text) : text
  // `process` turns ::ffff:127.0.0.1 into 127.0.0.1, to which the system would connect
  return ipaddr.isValid(plain) ? ipaddr.process(plain) : undefined
}

/** An IPv6 address without dots and zone: the library takes ::10.0.0.1 for ::ffff:10.0.0.1, to which the system would not connect. */
function inHex(text: string): string {
  return new URL(`http://[${text.replace(/%.*/, '')}]/`).hostname.slice(1, -1)
}

/** The address, and the one that a NAT64 translator would turn it into. */
function formsOf(address: Address): Address[] {
  if (!isIPv6(address) || !address.match(nat64, 96)) return [address]
  return [address, ipaddr.fromByteArray(address.toByteArray().slice(12))]
}

/** The sort of an address that is not public; undefined if it is public. */
function sortOf(address: Address): string | undefined {
  if (isMetadata(address)) return 'cloud metadata'
  const meant = formsOf(address).at(-1)
  if (meant && meant !== address) return sortOf(meant)
  const range = address.range()
  // most of IPv6 is unassigned, and the library calls it unicast; tunnels (6to4, Teredo, IPv4-compatible) embed an IPv4 address, and nobody
  // receives webhooks behind one, so all are refused
  const isPublic = range === 'unicast' && (!isIPv6(address) || address.match(globalUnicast, 3))
  return isPublic ? undefined : (sorts[range] ?? 'reserved')
}

function isMetadata(address: Address): boolean {
  return formsOf(address).some((form) => metadata.includes(form.toNormalizedString()))
}

function isIPv6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6'
}

function covers([base, bits]: Range, address: Address): boolean {
  // a range such as fc00::/7 is not meant to allow the metadata service inside it
  if (isMetadata(address) && bits < widthOf(base)) return false
  if (isIPv6(address)) return isIPv6(base) && address.match(base, bits)
  return !isIPv6(base) && address.match(base, bits)
}

function widthOf(address: Address): number {
  return isIPv6(address) ? 128 : 32
}

/** Parses an entry of the allow-list into a range or a name. */
function entryOf(entry: string): Range | string {
  const [, text = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
  if (isIP(text) && !text.includes('%')) return rangeOf(entry, text, bits)
  const name = domainToASCII(text).replace(/\.$/, '')
  const isName = /^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/.test(name)
  // URL parsers take a host that ends in a number for an address, so 10.0.0 or 0x7f.1 can only be a mistake
  if (bits !== undefined || !isName || /(^|\.)(\d+|0x[0-9a-f]*)$/.test(name))
    throw malformed(entry, 'Use a CIDR such as 10.0.0.0/8, an IP address, or a host name without scheme and port')
  return name
}

function rangeOf(entry: string, text: string, given: string | undefined): Range {
  const written = ipaddr.parse(text)
  const base = ipaddr.process(text)
  const bits = given === undefined ? widthOf(base) : Number(given) - (widthOf(written) - widthOf(base))
  if (bits < 0 || bits > widthOf(base)) throw malformed(entry, `Use a prefix length from 0 to ${widthOf(written)}`)
  const kind = isIPv6(base) ? ipaddr.IPv6 : ipaddr.IPv4
  const first = kind.networkAddressFromCIDR(`${base}/${bits}`)
  if (first.toString() !== base.toString())
    throw malformed(entry, `Its range begins at ${first}; write ${first}/${bits}`)
  return [base, bits]
}

function malformed(entry: string, advice: string): HoldfastError {
  return new HoldfastError(
    'config_invalid',
    `The allow-list for webhooks has a malformed entry, ${JSON.stringify(String(entry).slice(0, 100))}. ${advice}.`,
  )
}
