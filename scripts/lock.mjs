// The lock must install on every machine: it names no registry, and holds the binaries of every platform.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
const violations = Object.entries(packages).flatMap(([path, entry]) => [
  ...(entry.resolved ? [`${path} records where it was downloaded; reinstall with this project's .npmrc.`] : []),
  ...Object.keys(entry.optionalDependencies ?? {})
    .filter((name) => !packages[`${path}/node_modules/${name}`] && !packages[`node_modules/${name}`])
    .map((name) => `${path} lacks ${name}, so npm ci breaks on its platform; pin a version that has it.`),
])
for (const violation of violations) console.log(`package-lock.json ${violation}`)
process.exitCode = violations.length === 0 ? 0 : 1
