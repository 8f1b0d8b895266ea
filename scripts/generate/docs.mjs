// Writes the derived parts of README.md, CONTRIBUTING.md and docs/: the text between <!-- begin:name --> and <!-- end:name -->.
// With --check it writes nothing and lists stale pages.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sections } from '../sections.mjs'
import { root } from '../setup.mjs'

const isCheck = process.argv.includes('--check')
const marked = /(<!-- begin:([\w-]+) -->\n)[\s\S]*?(<!-- end:\2 -->)/g
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .sort(),
]
const written = new Map()

for (const page of pages) {
  const text = readFileSync(join(root, page), 'utf8')
  const wanted = await filled(page, text)
  if (wanted === text) continue
  if (!isCheck) writeFileSync(join(root, page), wanted)
  console.log(isCheck ? `${page} is stale; run npm run generate.` : `wrote ${page}`)
  if (isCheck) process.exitCode = 1
}

async function filled(page, text) {
  const names = [...text.matchAll(marked)].map(([, , name]) => name)
  for (const name of names) if (!written.has(name)) written.set(name, await sectionOf(page, name))
  return text.replace(marked, (_, begin, name, end) => `${begin}${written.get(name)}\n${end}`)
}

async function sectionOf(page, name) {
  const write = sections[name]
  if (!write) throw new Error(`${page} asks for the section "${name}", which scripts/sections.mjs does not know.`)
  return write()
}
