import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'

/** Finds the addresses of a name in the hosts file; none if it is not listed. */
export type FindHost = (name: string) => Promise<string[]>

const systemHosts =
  process.platform === 'win32'
    ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts')
    : '/etc/hosts'
const loopback = ['127.0.0.1', '::1']

/** Reads the hosts file, and again whenever it has changed. Names under localhost always mean this machine (RFC 6761). */
export function makeHosts(path = systemHosts): FindHost {
  let known = new Map<string, string[]>()
  let version = ''
  return async (name) => {
    const latest = await versionOf(path)
    if (latest !== version) known = latest === '' ? new Map() : parseHosts(await readFile(path, 'utf8').catch(() => ''))
    version = latest
    const plain = name.toLowerCase().replace(/\.$/, '')
    return known.get(plain) ?? (/(^|\.)localhost$/.test(plain) ? loopback : [])
  }
}

/** A value that changes with the file; empty if there is none. */
async function versionOf(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return found ? `${found.mtimeMs} ${found.size}` : ''
}

/** The names of a hosts file, with their addresses in the order of the file. */
export function parseHosts(text: string): Map<string, string[]> {
  const known = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const plain = name.toLowerCase()
      known.set(plain, [...(known.get(plain) ?? []), address])
    }
  }
  return known
}

/** The search domains in the text of a resolv.conf. */
export function parseSearch(text: string): string[] {
  // the last line counts, as for the rest of the system
  const [, domains = ''] = [...text.matchAll(/^[ \t]*(?:search|domain)[ \t]+(.*)$/gm)].at(-1) ?? []
  return domains.split(/\s+/).filter((domain) => domain !== '' && domain !== '.')
}
