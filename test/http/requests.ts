import fc from 'fast-check'
import { authsBeside, contentTypes, methods, moreQuery, oddBodies, oddHeaders, suffixes } from './oddities.ts'
import { type JsonSchema, jsonOf, makeValues, oddTexts, type Pool, recordOf, type Values } from './values.ts'
import type { WireRequest } from './wire.ts'

/** As much of the OpenAPI document as the tests look at. */
export interface ApiDocument {
  paths: Record<string, Record<string, DocumentedOperation>>
  components: { schemas: Record<string, JsonSchema> }
  tags: { name: string }[]
}

/** One operation of the document. */
export interface DocumentedOperation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: JsonSchema
}

/** Where an operation is found. */
export interface Spot {
  method: string
  path: string
  one: DocumentedOperation
}

/** All operations of the document. */
export function spotsOf(document: ApiDocument): Spot[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ method: method.toUpperCase(), path, one })),
  )
}

/** Requests to one operation, made of what the document says of it. */
export interface Requests {
  /** Requests that fit. */
  fitting: fc.Arbitrary<WireRequest>
  /** Requests of every kind: fitting, nearly so, and nonsense. */
  any: fc.Arbitrary<WireRequest>
}

/** Makes requests to an operation, with a key. */
export function requestsTo(document: ApiDocument, { method, path, one }: Spot, pool: Pool, key: string): Requests {
  const values = makeValues(document.components.schemas, pool)
  const all = (one.parameters ?? []).map((one) => ({ ...one, as: nameOf(path, one) }))
  const schema = one.requestBody?.content['application/json']?.schema
  const auth = ['authorization', `Bearer ${key}`] as const
  const fittingTexts = textsOf(all, ({ schema, as }) => values.fitting(schema, as))

  const fitting = fc
    .tuple(fittingTexts, schema ? values.fitting(schema, 'body').map(jsonOf) : fc.constant(undefined))
    .map(([given, json]): WireRequest => {
      const body = json === undefined ? undefined : Buffer.from(json)
      const type = body ? [['content-type', 'application/json'] as const] : []
      return {
        method,
        target: `${fill(path, all, given)}${queryOf(all, given)}`,
        headers: [auth, ...type, ...headersOf(all, given)],
        body,
      }
    })

  const spoiledTexts = textsOf(all, ({ schema, as }) =>
    fc.oneof(
      { weight: 8, arbitrary: values.fitting(schema, as) },
      { weight: 1, arbitrary: fc.constantFrom(...oddTexts) },
    ),
  )
  const any = fc
    .record({
      given: spoiledTexts,
      method: mostly(method, fc.constantFrom(...methods)),
      suffix: mostly('', fc.constantFrom(...suffixes)),
      more: mostly('', fc.constantFrom(...moreQuery)),
      isTwice: mostly(false, fc.constant(true)),
      auth: mostly<readonly (readonly [string, string])[]>([auth], fc.constantFrom(...authsBeside(key))),
      headers: mostly<readonly (readonly [string, string])[]>(
        [],
        fc.array(fc.constantFrom(...oddHeaders), { maxLength: 4 }),
      ),
      body: bodyFor(values, schema),
      type: mostly<string | null>('application/json', fc.constantFrom(...contentTypes)),
      framing: mostly<'length' | 'chunked' | 'short'>('length', fc.constantFrom('chunked', 'chunked', 'short')),
    })
    .map(({ given, suffix, more, isTwice, auth, headers, body, type, framing, ...rest }): WireRequest => {
      const query = queryOf(all, given)
      const asked = isTwice && query !== '' ? `${query}&${query.slice(1)}` : query
      return {
        ...rest,
        target: `${fill(path, all, given)}${suffix}${asked}${more && `${asked === '' ? '?' : '&'}${more}`}`,
        headers: [
          ...auth,
          ...(body && type !== null ? [['content-type', type] as const] : []),
          ...headersOf(all, given),
          ...headers,
        ],
        body,
        framing,
      }
    })
  return { fitting, any }
}

const ownersOfIds = { jobs: 'job', webhooks: 'webhook', deliveries: 'delivery', keys: 'apiKey', sessions: 'session' }

/** What a parameter means: an id belongs to the resource of its path, and a cursor to its list. */
function nameOf(path: string, { name, in: where }: Parameter): string {
  const [, , room = ''] = path.split('/')
  if (where === 'path' && name === 'id') return ownersOfIds[room as keyof typeof ownersOfIds] ?? name
  if (where === 'path' && name === 'name') return room === 'queues' ? 'queue' : 'group'
  if (['cursor', 'after', 'last-event-id'].includes(name)) return `places of ${path.replace('/stream', '')}`
  return name
}

type Named = Parameter & { as: string }
type Texts = Record<string, unknown>

function textsOf(all: Named[], toValue: (one: Named) => fc.Arbitrary<unknown>): fc.Arbitrary<Texts> {
  const fields = Object.fromEntries(all.map((one) => [`${one.in} ${one.name}`, toValue(one)]))
  return recordOf(
    fields,
    all.filter(({ required }) => required).map((one) => `${one.in} ${one.name}`),
  )
}

function fill(path: string, all: Named[], given: Texts): string {
  return all
    .filter(({ in: where }) => where === 'path')
    .reduce((filled, { name }) => filled.replace(`{${name}}`, () => encoded(given[`path ${name}`])), path)
}

function queryOf(all: Named[], given: Texts): string {
  const asked = all.filter((one) => one.in === 'query' && given[`query ${one.name}`] !== undefined)
  return asked.length === 0 ? '' : `?${asked.map(({ name }) => `${name}=${encoded(given[`query ${name}`])}`).join('&')}`
}

function headersOf(all: Named[], given: Texts): [string, string][] {
  return all
    .filter((one) => one.in === 'header' && given[`header ${one.name}`] !== undefined)
    .map(({ name }) => [name, String(given[`header ${name}`])])
}

function encoded(value: unknown): string {
  return encodeURIComponent(String(value).toWellFormed())
}

function mostly<T>(usual: T, rare: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare })
}

function bodyFor(values: Values, schema: JsonSchema | undefined): fc.Arbitrary<Buffer | undefined> {
  const odd = fc.constantFrom(...oddBodies)
  if (!schema) return mostly<Buffer | undefined>(undefined, odd)
  const text = (json: string) => Buffer.from(json)
  return fc.oneof(
    { weight: 5, arbitrary: values.fitting(schema, 'body').map(jsonOf).map(text) },
    { weight: 5, arbitrary: values.odd(schema, 'body').map(jsonOf).map(text) },
    { weight: 1, arbitrary: odd },
    // cut off in the middle
    { weight: 1, arbitrary: values.fitting(schema, 'body').map((one) => text(jsonOf(one).slice(0, -1))) },
  )
}
