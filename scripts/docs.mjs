// `npm run docs` serves the docs as a site and follows changes; `npm run docs:build` writes the site into docs/.vitepress/dist.
import { follow } from './follow.mjs'
import { install, main } from './setup.mjs'

await main(() => {
  install()
  const [command = 'dev', ...options] = process.argv.slice(2)
  return follow(['node_modules/vitepress/bin/vitepress.js', command, 'docs', ...options])
})
