// One embedded Postgres, and on it a fresh database with a fresh `holdfast serve` for each attack.
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

export async function openGround() {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-neighbors-'))
  const host = await connect({ embedded: dir, logLevel: 'error' })
  let count = 0

  async function serve(env = {}) {
    count += 1
    const url = new URL(host.url)
    await onServer(host.url, `create database neighbors_${count}`)
    url.pathname = `/neighbors_${count}`
    const hf = await connect({ url: url.href, migrate: true, logLevel: 'error' })
    const child = await startServer({ HOLDFAST_URL: url.href, HOLDFAST_WEBHOOK_ALLOW: '127.0.0.1', ...env })
    const keyOf = async (tenant, ...scopes) => (await hf.keys.create({ name: tenant ?? 'all', tenant, scopes })).key
    return {
      url: child.url,
      hf,
      keyOf,
      keys: {
        all: await keyOf(null, 'admin'),
        attacker: await keyOf('attacker', 'submit', 'read', 'work', 'operate'),
        // of a tenant that has nothing at all
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

async function startServer(env) {
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, program, 'serve', '--http-port', '0'], {
    env: { ...process.env, HOLDFAST_LOG_LEVEL: 'fatal', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
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
