// Writes the OpenAPI document into docs/reference/, and the types and the table of operations that the client is made of into src/client/.
// With --check it writes nothing and says what is stale.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { apiDocument } from '../../dist/http/document.js'
import { root } from '../setup.mjs'

const isCheck = process.argv.includes('--check')
const document = apiDocument()
const mark = '/** @generated from the operations of src/http by `npm run generate`. */\n'
const types = astToString(await openapiTS(withoutProblems(document))).replace(
  'export interface components ',
  '/** The schemas of the HTTP API, by name. */\nexport interface components ',
)
write('docs/reference/openapi.json', `${JSON.stringify(document, null, 2)}\n`)
write('src/client/schema.ts', `${mark}${types}`)
write('src/client/operations.ts', `${mark}${operations()}`)

// every problem has one form, which the client knows without its being said for each status of each operation
function withoutProblems(whole) {
  const lean = structuredClone(whole)
  for (const methods of Object.values(lean.paths))
    for (const { responses } of Object.values(methods))
      for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status]
  return lean
}

function operations() {
  const rows = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `  ${operationId}: { method: '${method.toUpperCase()}', path: '${path}' },`,
    ),
  )
  return `\n/** Where each operation is. */\nexport const operations = {\n${rows.join('\n')}\n} as const\n`
}

function write(file, text) {
  const path = join(root, file)
  if (current(path) === text) return
  if (!isCheck) writeFileSync(path, text)
  console.log(isCheck ? `${file} is stale; run npm run generate.` : `wrote ${file}`)
  if (isCheck) process.exitCode = 1
}

function current(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
