// Writes the library reference, docs/reference/library.md and the pages in its folder, from the types and doc comments of the package.
// With --check it writes nothing and says what is stale.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { libraryPages, withoutComment } from '../library/pages.mjs'
import { root } from '../setup.mjs'

const isCheck = process.argv.includes('--check')
const folder = 'docs/reference/library'
const pages = libraryPages()

for (const place of withoutComment()) fail(place)
for (const [page, text] of pages) {
  const path = join(root, page)
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
  change(page, 'wrote', () => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  })
}
for (const page of written().filter((name) => !pages.has(name))) change(page, 'removed', () => rmSync(join(root, page)))

function written() {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder)).map((name) => `${folder}/${name}`)
}

function change(page, verb, make) {
  if (isCheck) return fail(`${page} is stale; run npm run generate.`)
  make()
  console.log(`${verb} ${page}`)
}

function fail(sentence) {
  console.log(sentence)
  process.exitCode = 1
}
