// The Postgres server that all contenders share. Each run has its own database there.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { removeEmbedded, startEmbedded } from '../../dist/embedded/embedded.js'

/** A connection, as a function that runs a query and returns its rows. */
export async function asker(url) {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  const ask = async (text, values) => (await client.query(text, values)).rows
  ask.end = () => client.end()
  return ask
}

/** The server at the URL, or a temporary embedded one. */
export async function startServer(given) {
  const own = given ? undefined : await startOwn()
  const url = given ?? own.url
  const ask = await asker(url)
  const prefix = `holdfast_bench_${process.pid}`
  const existing = new Set()
  let made = 0
  const urlOf = (name) => Object.assign(new URL(url), { pathname: `/${name}` }).href
  async function create(name, template) {
    await ask(`create database ${name} template ${template}`)
    existing.add(name)
    return name
  }
  async function drop(name) {
    await ask(`drop database if exists ${name} with (force)`)
    existing.delete(name)
  }
  return {
    urlOf,
    create: (template = 'template0') => create(`${prefix}_${++made}`, template),
    drop,
    /** Its version, and the settings that make commits durable. */
    async about() {
      const [row] = await ask(
        `select current_setting('server_version') as version, current_setting('fsync') as fsync,
                current_setting('synchronous_commit') as synchronous_commit, current_setting('full_page_writes') as full_page_writes`,
      )
      return { ...row, isOwn: !given, isDurable: row.fsync === 'on' && row.synchronous_commit !== 'off' }
    },
    async stop() {
      for (const name of existing) await drop(name).catch(() => {})
      await ask.end()
      await own?.stop()
    },
  }
}

async function startOwn() {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
  const postgres = await startEmbedded({ dir })
  return {
    url: postgres.url,
    async stop() {
      await postgres.stop()
      await removeEmbedded(dir).catch(() => {})
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Measurements on a database, independent of the contender. */
export async function openDatabase(url) {
  const ask = await asker(url)
  const [{ pid }] = await ask('select pg_backend_pid() as pid')
  return {
    /** Updates statistics and writes a checkpoint, so that no run pays for the one before. */
    async quiesce() {
      await ask('analyze')
      await ask('checkpoint').catch(() => {}) // only a superuser may
    },
    async run(texts) {
      for (const text of texts) await ask(text)
    },
    async bytes() {
      await ask('vacuum')
      return Number((await ask('select pg_database_size(current_database()) as bytes'))[0].bytes)
    },
    cpuSeconds: () => cpuOfServer(pid),
    close: () => ask.end(),
  }
}

/** CPU seconds of the whole server so far, from /proc; null if it does not run on this machine, or there is no /proc. */
function cpuOfServer(backend) {
  const postmaster = statOf(backend)?.parent
  if (!postmaster || !statOf(postmaster)?.name.startsWith('postgres')) return null
  const children = pids()
    .map(statOf)
    .filter((stat) => stat?.parent === postmaster)
  const { own, reaped } = statOf(postmaster)
  return own + reaped + children.reduce((sum, child) => sum + child.own, 0)
}

/** CPU seconds of one process. */
export function cpuOfProcess(pid) {
  return statOf(pid)?.own ?? null
}

function pids() {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
}

// in clock ticks of 10 ms on every Linux that Node runs on
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    const [, parent, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [user, system, reapedUser, reapedSystem] = rest.slice(9, 13).map((ticks) => Number(ticks) / 100)
    return { name, parent: Number(parent), own: user + system, reaped: reapedUser + reapedSystem }
  } catch {
    return undefined
  }
}
