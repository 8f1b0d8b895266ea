import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/**
 * The sidebar, made of docs/README.md: its bold words are the groups, and the pages that it links are the entries, under their own
 * titles. The pages of a folder that belongs to such a page stand below it. Fails for a page that would be in no group.
 */
export function sidebar(docs) {
  const pages = filesUnder(docs).filter((name) => name.endsWith('.md'))
  const seen = new Set(['README.md'])
  const groups = read(docs, 'README.md')
    .split(/^\*\*(?=\w)/m)
    .slice(1)
    .map((part) => ({
      text: part.slice(0, part.indexOf('**')),
      collapsed: false,
      items: linksIn(part, 'README.md').map((page) => entry(docs, pages, page, seen)),
    }))
  const lost = pages.filter((page) => !seen.has(page))
  if (lost.length > 0)
    throw new Error(
      `docs/README.md does not lead to ${lost.join(', ')}; link each there, or from the page of its folder.`,
    )
  return groups
}

/** Every file of the docs, by its path in them, without those of the site. */
export function filesUnder(docs) {
  return readdirSync(docs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(slashed(docs), slashed(join(entry.parentPath, entry.name))))
    .filter((name) => !name.startsWith('.'))
    .sort()
}

function entry(docs, pages, page, seen) {
  seen.add(page)
  const folder = page.endsWith('README.md') ? posix.dirname(page) : page.replace(/\.md$/, '')
  const linked = linksIn(read(docs, page), page).filter((other) => posix.dirname(other) === folder && other !== page)
  const below = [...new Set(linked)].filter((other) => pages.includes(other))
  const items = below.map((other) => entry(docs, pages, other, seen))
  const own = { text: titleOf(docs, page), link: `/${page.replace(/(README)?\.md$/, '')}` }
  return items.length > 0 ? { ...own, collapsed: true, items } : own
}

function linksIn(text, page) {
  return [...text.matchAll(/\]\(([^)#\s:]+\.md)[^)]*\)/g)].map(([, link]) => posix.join(posix.dirname(page), link))
}

function titleOf(docs, page) {
  return /^# (.*)$/m.exec(read(docs, page))[1]
}

function read(docs, page) {
  return readFileSync(join(docs, page), 'utf8')
}

function slashed(path) {
  return path.replaceAll('\\', '/')
}
