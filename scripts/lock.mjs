// The locks must install on every machine: they name no registry, and hold the binaries of every platform.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

const violations = ['package-lock.json', 'bench/compare/package-lock.json'].flatMap(violationsOf)
for (const violation of violations) console.log(violation)
process.exitCode = violations.length === 0 ? 0 : 1

function violationsOf(lock) {
  const { packages } = JSON.parse(readFileSync(join(root, lock), 'utf8'))
  return Object.entries(packages).flatMap(([path, entry]) => [
    ...(entry.resolved
      ? [`${lock} ${path} records where it was downloaded; reinstall with this project's .npmrc.`]
      : []),
    ...Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => !packages[`${path}/node_modules/${name}`] && !packages[`node_modules/${name}`])
      .map((name) => `${lock} ${path} lacks ${name}, so npm ci breaks on its platform; pin a version that has it.`),
  ])
}
