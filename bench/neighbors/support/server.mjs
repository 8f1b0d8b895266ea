// One embedded Postgres, with a fresh database and a fresh `holdfast serve` for each attack.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { connect } from 'holdfast'
import pg from 'pg'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))
const heapMb = 512

/** Starts Postgres. `profileDir` is where each server writes a CPU profile when it stops. */
export async function openTestServers({ profileDir } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-neighbors-'))
  const host = await connect({ embedded: dir, logLevel: 'error' })
  let count = 0

  async function serve(env = {}) {
    count += 1
    const url = new URL(host.url)
    await onServer(host.url, `create database neighbors_${count}`)
    url.pathname = `/neighbors_${count}`
    const hf = await connect({ url: url.href, migrate: true, logLevel: 'error' })
    const settings = { HOLDFAST_URL: url.href, HOLDFAST_WEBHOOK_ALLOW: '127.0.0.1', ...env }
    const child = await startServer(settings, profileDir)
    const keyOf = async (tenant, ...scopes) => (await hf.keys.create({ name: tenant ?? 'all', tenant, scopes })).key
    return {
      url: child.url,
      hf,
      keyOf,
      keys: {
        all: await keyOf(null, 'admin'),
        attacker: await keyOf('attacker', 'submit', 'read', 'work', 'operate'),
        // of a tenant without any data
        empty: await keyOf('empty', 'read'),
      },
      query: (text) => onServer(url.href, text),
      hasEnded: child.hasEnded,
      async stop() {
        await child.stop()
        await hf.close()
        await onServer(host.url, `drop database neighbors_${count} with (force)`)
      },
    }
  }

  return {
    serve,
    async close() {
      await host.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function onServer(url, text) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

async function startServer(env, profileDir) {
  const profiling = profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []
  const node = [`--max-old-space-size=${heapMb}`, ...profiling]
  const child = spawn(process.execPath, [...node, program, 'serve', '--http-port', '0'], {
    env: { ...process.env, HOLDFAST_LOG_LEVEL: 'fatal', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    // its own session, as each connection of Postgres has: Linux shares the CPU among sessions first
    detached: true,
  })
  const exited = once(child, 'exit')
  const url = await new Promise((resolve, reject) => {
    exited.then(() => reject(new Error('The server ended before it listened.')))
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /Serving at (http:\S+?),/.exec(line)
      if (found) resolve(found[1])
    })
  })
  while (!(await fetch(`${url}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 50))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  return {
    url,
    hasEnded,
    async stop() {
      if (hasEnded()) return
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(late)
    },
  }
}
