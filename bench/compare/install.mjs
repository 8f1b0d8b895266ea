// Installs the peers at the first run, into this folder, for this benchmark only.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const here = import.meta.dirname

/** Installs the peers if they are missing. Returns what went wrong, or undefined. */
export function installPeers(tell) {
  if (isInstalled()) return undefined
  tell('Installing the peers (npm ci in bench/compare) …')
  // a peer that requires a later Node is installed anyway: it may run all the same
  const flags = ['ci', '--ignore-scripts', '--engine-strict=false', '--no-audit', '--no-fund']
  const result = spawnSync('npm', flags, { cwd: here, encoding: 'utf8', shell: process.platform === 'win32' })
  if (result.status === 0) return undefined
  const lines = `${result.stderr ?? ''}${result.error?.message ?? ''}`.split('\n').filter((line) => /error/i.test(line))
  return lines[0] ?? 'npm ci failed'
}

/** The installed version of a peer. */
export function versionOf(name) {
  try {
    return JSON.parse(readFileSync(join(here, 'node_modules', name, 'package.json'), 'utf8')).version
  } catch {
    return undefined
  }
}

function isInstalled() {
  const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
  if (!existsSync(join(here, 'node_modules'))) return false
  return Object.entries(dependencies).every(([name, version]) => versionOf(name) === version)
}
