// The keeper: a process between the engine and Postgres, so that Postgres never outlives the engine.
//
// It runs one server and ends with it. Its standard input is a pipe that nobody but the engine's process holds open, and
// that says nothing: when it closes, by stop() or by kill -9, the engine is gone and the server is shut down. It lives
// in a session of its own and ignores what a terminal or an init system sends to everyone, since the engine must be able
// to drain its jobs before the database goes.

import { spawn } from 'node:child_process'
import { copyFileSync, fstatSync, ftruncateSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { environment, identity } from './cluster.ts'
import type { Order } from './launch.ts'
import { fastMs, immediateMs } from './leftovers.ts'
import { keepBeating } from './lock.ts'

const readyPollMs = 20
const logCheckMs = 10_000
const logFd = 2 // our standard error is the log, so that a keeper that fails tells it there
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

// No server of this folder lives, or the folder would not be ours; but the pid of the last one may by now be a
// stranger's, and Postgres would wait for that one to end. It trusts a file with its parent's pid. The file itself must
// stay: by its shared memory key Postgres makes sure that no backend of the last server is still at work.
function takeOverPidFile(path: string): void {
  try {
    const [, ...rest] = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, [process.pid, ...rest].join('\n'), { flag: 'r+' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function announceReady(pidFile: string, pid: number | undefined): void {
  process.stdout.on('error', () => {}) // the owner is gone, which the pipe tells
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

// Copied and cut instead of renamed, since Postgres keeps the file open.
function limitLog(path: string): void {
  if (fstatSync(logFd).size < logBytes) return
  try {
    copyFileSync(path, `${path}.1`)
  } catch {
    // No space for a copy: then it is all the more needed that the log gives its own back.
  }
  ftruncateSync(logFd)
}
