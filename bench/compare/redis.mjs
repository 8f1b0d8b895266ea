// Temporary Redis servers, if this machine has a redis-server: one that never waits for the disk, one that waits for each write.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { cpuOfProcess } from './postgres.mjs'

const startMs = 10_000

const modes = {
  none: ['--save', '', '--appendonly', 'no'],
  always: ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'],
}

/** The version of the redis-server in the PATH; undefined if there is none. */
export function redisVersion() {
  try {
    return /v=([\d.]+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}

/** Starts a server in a temporary folder. */
export async function startRedis(mode) {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-redis-'))
  const port = await freePort()
  const child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...modes[mode]], {
    stdio: 'ignore',
  })
  const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 100 })
  client.on('error', () => {})
  const trouble = await Promise.race([
    client.ping().then(() => undefined),
    new Promise((resolve) => child.once('error', ({ message }) => resolve(message))),
    new Promise((resolve) => child.once('exit', (code) => resolve(`it ended with code ${code}`))),
    new Promise((resolve) => setTimeout(resolve, startMs, 'it does not answer').unref()),
  ])
  if (trouble) {
    client.disconnect()
    child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
    throw new Error(`redis-server could not be started: ${trouble}`)
  }
  return {
    address: { port, pid: child.pid, dir, mode },
    empty: () => client.flushall('SYNC'),
    async stop() {
      await client.quit().catch(() => {})
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Measurements on a Redis server, independent of the contender. */
export function openRedis({ port, pid, dir, mode }) {
  const client = new Redis({ port })
  return {
    quiesce: async () => {},
    /** The append-only file after a rewrite; null where nothing is written. */
    async bytes() {
      if (mode === 'none') return null
      await client.bgrewriteaof()
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await client.info('persistence')))
        await new Promise((resolve) => setTimeout(resolve, 20))
      return sizeOf(join(dir, 'appendonlydir'))
    },
    cpuSeconds: () => cpuOfProcess(pid),
    close: () => client.quit(),
  }
}

function sizeOf(dir) {
  return readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0)
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
