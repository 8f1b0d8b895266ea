import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const dist = fileURLToPath(new URL('./dist/', import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^#holdfast\/(.*)$/, replacement: `${dist}$1.js` },
      { find: /^holdfast$/, replacement: `${dist}index.js` },
      { find: /^holdfast\/client$/, replacement: `${dist}client/client.js` },
      { find: /^holdfast\/http$/, replacement: `${dist}http/http.js` },
      { find: /^holdfast\/(kysely|drizzle)$/, replacement: `${dist}submit/$1.js` },
    ],
  },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Many tests wait for leases, so a small machine can run more of them than it has cores; many bring processes of their own, so
    // half of a big one is enough.
    maxWorkers: Math.max(3, Math.floor(availableParallelism() / 2)),
    // Built code is loaded by Node itself: worker threads and child processes must meet the very same files.
    server: { deps: { external: [/\/dist\//] } },
  },
})
