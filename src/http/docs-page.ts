/** The parts of an OpenAPI document that the page shows. */
interface Document {
  info: { title: string; version: string; description?: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, DocumentedOperation>>
  components: { schemas: Record<string, unknown> }
}

interface DocumentedOperation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema?: Schema }[]
  requestBody?: { content: Record<string, { schema: unknown }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
}

type Schema = { type?: string | string[]; enum?: string[]; description?: string }

/** The API reference as one page without scripts, generated from the document: nothing to load, nothing to run, and never out of date. */
export function docsPage(given: object): string {
  const document = given as Document
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ path, method, one })),
  )
  const sections = document.tags.map(({ name, description }) => {
    const own = all.filter(({ one }) => one.tags.includes(name))
    return own.length === 0
      ? ''
      : `<h2 id="${esc(name)}">${esc(name)}</h2><p>${esc(description)}</p>${own.map(operationHtml).join('')}`
  })
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `<details id="schema-${esc(name)}"><summary><code>${esc(name)}</code></summary><pre>${linked(JSON.stringify(schema, null, 2))}</pre></details>`,
  )
  const links = document.tags.map(({ name }) => `<a href="#${esc(name)}">${esc(name)}</a>`).join(' · ')
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${esc(document.info.title)} API</title><style>${style}</style></head><body>
<h1>${esc(document.info.title)} API <small>${esc(document.info.version)}</small></h1>
<p>${paragraphs(document.info.description ?? '')}</p>
<p>${links} · <a href="#schemas">schemas</a> · <a href="/openapi.json">openapi.json</a></p>
${sections.join('')}<h2 id="schemas">schemas</h2>${schemas.join('')}</body></html>`
}

function operationHtml({ path, method, one }: { path: string; method: string; one: DocumentedOperation }): string {
  const parameters = (one.parameters ?? []).map(
    ({ name, in: where, required, schema, description }) =>
      `<tr><td><code>${esc(name)}</code></td><td>${esc(where)}${required ? ', required' : ''}</td><td>${formatType(schema)}</td><td>${esc(description ?? schema?.description ?? '')}</td></tr>`,
  )
  const answers = Object.entries(one.responses).map(
    ([status, { description, content }]) =>
      `<tr><td><code>${esc(status)}</code></td><td>${paragraphs(description)}</td><td>${Object.values(content ?? {})
        .map(({ schema }) => formatSchema(schema))
        .join(' ')}</td></tr>`,
  )
  const body = Object.values(one.requestBody?.content ?? {})[0]
  return `<details id="${esc(one.operationId)}"><summary><b class="${esc(method)}">${esc(method.toUpperCase())}</b> <code>${esc(path)}</code> ${esc(one.summary)}</summary>
<p>${paragraphs(one.description ?? '')}</p>${parameters.length > 0 ? `<table><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>${parameters.join('')}</table>` : ''}
${body ? `<p>Body: ${formatSchema(body.schema)}</p>` : ''}<table><tr><th>status</th><th>meaning</th><th>body</th></tr>${answers.join('')}</table>
<pre>${esc(curlOf(path, method, body !== undefined))}</pre></details>`
}

function curlOf(path: string, method: string, hasBody: boolean): string {
  const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`
  const body = hasBody ? ` \\\n  -H 'content-type: application/json' -d '{ … }'` : ''
  return `curl${verb} "$HOLDFAST_API${path}" -H "authorization: Bearer $HOLDFAST_KEY"${body}`
}

function formatType(schema: Schema | undefined): string {
  if (schema?.enum) return esc(schema.enum.join(' | '))
  return esc([schema?.type ?? 'any'].flat().join(' | '))
}

function formatSchema(schema: unknown): string {
  const ref = (schema as { $ref?: string }).$ref
  if (!ref) return `<pre>${linked(JSON.stringify(schema, null, 2))}</pre>`
  const name = ref.split('/').at(-1) as string
  return `<a href="#schema-${esc(name)}"><code>${esc(name)}</code></a>`
}

function linked(json: string): string {
  return esc(json).replace(/#\/components\/schemas\/(\w+)/g, (whole, name) => `<a href="#schema-${name}">${whole}</a>`)
}

function paragraphs(text: string): string {
  return esc(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\n\n/g, '</p><p>')
    .replace(/\n/g, '<br>')
}

function esc(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f4f4;padding:.75rem;overflow:auto;border-radius:4px}
details{border:1px solid #ddd;border-radius:4px;margin:.4rem 0;padding:.4rem .75rem}summary{cursor:pointer}
table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{text-align:left;vertical-align:top;border-bottom:1px solid #eee;padding:.25rem .5rem .25rem 0}
b{display:inline-block;min-width:4rem}.get{color:#0a6}.post{color:#06c}.patch{color:#a60}.delete{color:#c22}small{color:#666}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}pre{background:#1c1c1c}details{border-color:#333}td,th{border-color:#2a2a2a}a{color:#7ab7ff}}`
