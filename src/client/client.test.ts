import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const folder = new URL('./', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))

test('the client needs nothing but what browsers have: no module of Node, no package, no global of Node', () => {
  expect(files).toContain('client.ts')
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), 'utf8')
    const imported = [...text.matchAll(/from '([^']+)'/g)].map(([, from]) => from as string)
    expect([name, imported.filter((from) => !from.startsWith('./'))]).toEqual([name, []])
    if (name !== 'schema.ts')
      expect([name, text.match(/\b(process|Buffer|__dirname|require|setImmediate)\b/)]).toEqual([name, null])
  }
})
