import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

/** The scripts that write what is derived from code. Each writes its files, or with --check only compares them. */
export function generators() {
  const folder = join(root, 'scripts', 'generate')
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .sort()
    .map((name) => `scripts/generate/${name}`)
}
