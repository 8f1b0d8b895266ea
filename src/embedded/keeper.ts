// The keeper: a process between the engine and Postgres, so that Postgres never outlives the engine.
//
// It runs one server and ends with it. Its standard input is a pipe that only the engine's process holds open, and that carries no data: when it
// closes, after stop() or kill -9, the engine is gone and the keeper shuts the server down. The keeper has its own session and ignores signals
// that a terminal or an init system sends to all processes, because the engine must be able to drain its jobs before the database stops.

import { spawn } from 'node:child_process'
import { copyFileSync, fstatSync, ftruncateSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { environment, identity } from './cluster.ts'
import type { Order } from './launch.ts'
import { fastMs, immediateMs } from './leftovers.ts'
import { keepBeating } from './lock.ts'

const readyPollMs = 20
const logCheckMs = 10_000
const logFd = 2 // our standard error is the log, so that a keeper that fails writes its error there
const logBytes = 8 * 1024 * 1024

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})
keep(JSON.parse(process.argv[3] ?? '') as Order)

function keep(order: Order): void {
  const pidFile = join(order.cluster, 'postmaster.pid')
  takeOverPidFile(pidFile)
  const server = spawn(order.postgres, order.args, {
    ...identity(order),
    cwd: '/',
    env: environment,
    stdio: ['ignore', logFd, logFd],
  })
  server.once('error', (error) => {
    writeSync(logFd, `${error.message}\n`)
    process.exit(1)
  })
  server.once('exit', () => process.exit(0))
  const stop = () => shutDown((signal) => server.kill(signal))
  process.stdin.once('end', stop).once('close', stop).once('error', stop).resume()
  announceReady(pidFile, server.pid)
  limitLog(order.log)
  setInterval(() => limitLog(order.log), logCheckMs)
  keepBeating(order.lock)
}

let isStopping = false

function shutDown(kill: (signal: NodeJS.Signals) => void): void {
  if (isStopping) return
  isStopping = true
  kill('SIGINT')
  setTimeout(() => kill('SIGQUIT'), fastMs)
  setTimeout(() => kill('SIGKILL'), fastMs + immediateMs)
}

// No server of this folder is running, or the folder would not be ours. But the pid of the last server may belong to another process by now, and
// Postgres would refuse to start. It accepts a file with the pid of its parent. The file itself must stay: with its shared memory key, Postgres
// makes sure that no backend of the last server is still running.
function takeOverPidFile(path: string): void {
  try {
    const [, ...rest] = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, [process.pid, ...rest].join('\n'), { flag: 'r+' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function announceReady(pidFile: string, pid: number | undefined): void {
  process.stdout.on('error', () => {}) // the owner is gone: its pipe to our standard input has closed
  const timer = setInterval(() => {
    if (!isReady(pidFile, pid)) return
    clearInterval(timer)
    process.stdout.write(`ready ${pid}\n`)
  }, readyPollMs)
}

function isReady(pidFile: string, pid: number | undefined): boolean {
  try {
    const lines = readFileSync(pidFile, 'utf8').split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  } catch {
    return false // not written yet
  }
}

// copied and truncated instead of renamed, because Postgres keeps the file open
function limitLog(path: string): void {
  if (fstatSync(logFd).size < logBytes) return
  try {
    copyFileSync(path, `${path}.1`)
  } catch {
    // no space for a copy, so it is all the more important to free the space of the log
  }
  ftruncateSync(logFd)
}
