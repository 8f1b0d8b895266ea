// Loaded into every thread of a process with --import. In the heartbeat thread it does the harm that the file names, once or each time it checks.
import { readFileSync, rmSync } from 'node:fs'
import { isMainThread, workerData } from 'node:worker_threads'

const harms = {
  throw: () => {
    throw new Error('sabotaged')
  },
  reject: () => void Promise.reject(new Error('sabotaged')),
  exhaust: () => {
    const kept = []
    for (;;) kept.push(new Array(1_000_000).fill(Math.random()))
  },
  exit: () => process.exit(0),
  hang: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
}

const path = process.env.SABOTAGE
if (!isMainThread && path && workerData?.heartbeatMs) setInterval(check, 20).unref()

function check() {
  let order
  try {
    order = readFileSync(path, 'utf8')
  } catch {
    return
  }
  const [harm, howOften] = order.split(' ')
  if (howOften === 'once') rmSync(path, { force: true })
  harms[harm]?.()
}
