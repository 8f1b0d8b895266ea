import { posix } from 'node:path'

/** How GitHub addresses a heading, so that a link with an anchor works there and here. */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * A plugin of markdown-it for links that leave docs/: the site has no such page. They lead into the repository if its address is known;
 * otherwise only their text is left.
 */
export function repositoryLinks(md, repository) {
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    for (const { children } of tokens) if (children) rewrite(children, env.realPath ?? env.path, repository)
  })
}

function rewrite(tokens, page, repository) {
  const left = []
  for (const token of tokens) {
    if (token.type === 'link_open') left.push(leaves(token, page, repository))
    const isText = left.at(-1) && !repository
    if (token.type === 'link_close') left.pop()
    if (isText && token.type.startsWith('link_')) Object.assign(token, { tag: 'span', attrs: null })
  }
}

/** Whether a link leaves docs/. Gives it the address that it has on the site. */
function leaves(token, page, repository) {
  const href = token.attrGet('href') ?? ''
  if (/^([a-z]+:|[#/])/.test(href)) return false
  // a folder is its README on GitHub, and its index here
  token.attrSet('href', href.replace(/(^|\/)README\.md/, '$1index.md'))
  const file = posix.join(posix.dirname(pathInDocs(page)), href)
  if (!file.startsWith('../')) return false
  if (repository) token.attrSet('href', `${repository}/${file.slice('../'.length)}`)
  return true
}

function pathInDocs(page) {
  const docs = `${posix.dirname(import.meta.dirname.replaceAll('\\', '/'))}/`
  return page.replaceAll('\\', '/').slice(docs.length)
}
