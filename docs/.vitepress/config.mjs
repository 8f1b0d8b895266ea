// The site of these docs: `npm run docs` serves it, `npm run docs:build` writes it into docs/.vitepress/dist.
// DOCS_BASE is the path it is served under; DOCS_REPOSITORY is where links out of docs/ lead, such as https://example.com/holdfast/blob/main.
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { anchorOf, repositoryLinks } from './links.mjs'
import { filesUnder, sidebar } from './sidebar.mjs'

const docs = join(import.meta.dirname, '..')

export default defineConfig({
  title: 'Holdfast',
  description: 'A durable job engine for TypeScript on Postgres.',
  base: process.env.DOCS_BASE ?? '/',
  cacheDir: '../node_modules/.cache/vitepress',
  rewrites: (page) => page.replace(/README\.md$/, 'index.md'),
  // every other dead link is an error; these are addresses on the machine of the reader
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    anchor: { slugify: anchorOf },
    config: (md) => md.use(repositoryLinks, process.env.DOCS_REPOSITORY),
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Library', link: '/reference/library' },
      { text: 'Settings', link: '/reference/settings' },
      { text: 'Command line', link: '/reference/cli' },
    ],
    sidebar: sidebar(docs),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  // the index of the search is one file; it is loaded when somebody searches
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  // Pages link to data beside them, which is no part of the bundle.
  buildEnd({ outDir }) {
    for (const file of filesUnder(docs).filter((name) => name.endsWith('.json'))) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true })
      copyFileSync(join(docs, file), join(outDir, file))
    }
  },
})
