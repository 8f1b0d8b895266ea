import fc from 'fast-check'

/** As much of JSON Schema as our document speaks. */
export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  items?: JsonSchema
  minItems?: number
  maxItems?: number
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
}

/** What fitting values are taken from, so that requests find something. */
export interface Pool {
  /** Texts by what they stand for: `job`, `webhook`, `delivery`, `key`, `session`, `kind`, `queue`, `group`, `tenant`, `url`, and places in lists. */
  [what: string]: readonly (string | number)[]
}

/** Makes values for schemas of one document. */
export interface Values {
  /** Values that fit the schema. */
  fitting(schema: JsonSchema, name: string): fc.Arbitrary<unknown>
  /** Values that fit but for one place, and some that do not fit at all. */
  odd(schema: JsonSchema, name: string): fc.Arbitrary<unknown>
}

/** Makes the values of a document, given what its references lead to. */
export function makeValues(schemas: Record<string, JsonSchema>, pool: Pool): Values {
  function fitting(schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    if (schema.$ref) return fitting(schemas[schema.$ref.split('/').at(-1) as string] as JsonSchema, name)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return fc.oneof(...choices.map((one) => fitting(one, name)))
    if (schema.allOf)
      return fc.tuple(...schema.allOf.map((one) => fitting(one, name))).map((all) => Object.assign({}, ...all))
    if (schema.const !== undefined) return fc.constant(schema.const)
    if (schema.enum) return fc.constantFrom(...schema.enum)
    const types = [schema.type ?? 'any'].flat()
    return fc.oneof(...types.map((type) => ofType(type, schema, name)))
  }

  function ofType(type: string, schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    if (type === 'null') return fc.constant(null)
    if (type === 'boolean') return fc.boolean()
    if (type === 'string') return textFor(schema, name)
    if (type === 'integer' || type === 'number') return numberFor(schema, name, type)
    if (type === 'array') {
      const { items = {}, minItems = 0, maxItems = 3 } = schema
      return fc.array(fitting(items, name), {
        minLength: minItems,
        maxLength: Math.max(minItems, Math.min(maxItems, 3)),
      })
    }
    if (type === 'object') return objectFor(schema)
    return fc.jsonValue({ maxDepth: 2 })
  }

  function textFor({ format, pattern, minLength = 0, maxLength = 1_000 }: JsonSchema, name: string) {
    const known = pool[name]
    if (known) return fc.constantFrom(...known.map(String))
    if (format === 'uuid') return fc.constantFrom(...Object.values(pool).flat().filter(isUuid).map(String))
    if (format === 'date-time') return fc.constantFrom(...times)
    if (pattern) return fc.stringMatching(new RegExp(pattern))
    if (name in texts) return fc.constantFrom(...(texts[name] as string[]))
    return fc.string({ minLength, maxLength: Math.min(maxLength, 20) })
  }

  function numberFor({ minimum, maximum, exclusiveMinimum }: JsonSchema, name: string, type: string) {
    const known = pool[name]
    if (known) return fc.constantFrom(...known)
    const min = exclusiveMinimum === undefined ? (minimum ?? -1_000) : exclusiveMinimum + 1
    const max = maximum ?? Number.MAX_SAFE_INTEGER
    const near = fc.constantFrom(min, max, Math.min(max, min + 1))
    return type === 'integer'
      ? fc.oneof(near, fc.integer({ min, max: Math.min(max, min + 100) }))
      : fc.oneof(near, fc.double({ min, max, noNaN: true }))
  }

  function objectFor({ properties = {}, required = [], additionalProperties }: JsonSchema) {
    const fields = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, fitting(one, name)]))
    const declared = recordOf(fields, required)
    if (typeof additionalProperties !== 'object' || Object.keys(properties).length > 0) return declared
    return fc.dictionary(fc.constantFrom('a', 'x-some', 'B 1', 'é'), fitting(additionalProperties, 'value'), {
      maxKeys: 2,
    })
  }

  return {
    fitting,
    odd: (schema, name) =>
      fc.oneof(
        { weight: 4, arbitrary: fc.tuple(fitting(schema, name), fc.nat(), junk, howToSpoil).map(spoil) },
        { weight: 1, arbitrary: junk },
      ),
  }
}

/** Objects with these fields. Those that need not be there mostly are not: each is one more reason to be refused. */
export function recordOf(
  fields: Record<string, fc.Arbitrary<unknown>>,
  required: readonly string[],
): fc.Arbitrary<Record<string, unknown>> {
  const given = Object.entries(fields).map(([name, value]) => [
    name,
    required.includes(name)
      ? value
      : fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value }),
  ])
  return fc
    .record(Object.fromEntries(given) as Record<string, fc.Arbitrary<unknown>>)
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)))
}

function isUuid(text: unknown): boolean {
  return typeof text === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

const times = [
  '2026-01-31T12:00:00.000Z',
  '2031-12-31T23:59:59+14:00',
  '1970-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00+23:59',
  '9999-12-31T23:59:59.999-23:59',
]

/** Texts that mean something, by the field that they are sent in. */
const texts: Record<string, string[]> = {
  prefer: ['wait=0', 'wait=1', 'wait=99999', 'respond-async, wait="0"', 'wait=99999999999999999999', 'return=minimal'],
  types: ['job.*', 'job.failed', 'job.submitted'],
  state: ['queued', 'running,failed', 'succeeded'],
  secret: [`whsec_${Buffer.alloc(32, 7).toString('base64')}`],
  traceparent: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00-0-0-0'],
  'if-none-match': ['*', 'W/"x", "y"', '"'],
  'idempotency-key': ['one', 'two', ' ', 'é'],
}

/** Values that JSON can say and JavaScript cannot: put into the text by `jsonOf`. */
const raws: Record<string, string> = {
  '@@deep@@': `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  '@@deeper@@': `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
  '@@huge number@@': '1e400',
  '@@many digits@@': '9'.repeat(400),
  '@@minus zero@@': '-0',
  '@@proto@@': '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}}}',
  '@@twice@@': '{"kind":"echo","kind":"other"}',
  '@@half a character@@': '"\\ud800"',
  '@@NUL@@': '"a\\u0000b"',
  '@@half a name@@': '{"\\ud800":1,"\\u0000":2}',
}

/** The JSON text of a value made here. */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.includes('@@') ? text.replace(/"(@@[\w ]+@@)"/g, (whole, name) => raws[name] ?? whole) : text
}

/** Texts that nobody asks for. */
export const oddTexts = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\u202e\ufeff',
  '🦆'.repeat(50),
  'x'.repeat(5_000),
  '__proto__',
  'constructor',
  'NaN',
  '1e400',
  '-0',
  '-1',
  '9'.repeat(30),
  '0x10',
  'null',
  'true',
  "'; drop table holdfast.job; --",
  '../../etc/passwd',
  '<script>alert(1)</script>',
  '2026-02-30T25:61:61Z',
  '+275760-09-13T00:00:00.000Z',
  '99999-01-01T00:00:00Z',
  'job.',
  'job.submitted,constructor,,',
  'whsec_',
  'http://169.254.169.254/',
  'https://user:pass@127.0.0.1:0/\0',
]

const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 0.5, 1e308, 2 ** 53, [], {}, [[]], '@@deep@@'),
  fc.constantFrom(...oddTexts, ...Object.keys(raws)),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom<unknown>('y'.repeat(70_000), Array(3_000).fill(null), Array(300).fill({ a: 'z' })),
  fc.jsonValue({ maxDepth: 3 }),
)

const howToSpoil = fc.constantFrom('replace' as const, 'replace' as const, 'remove' as const, 'add' as const)

/** Spoils one place of a value. */
function spoil([value, at, other, how]: [unknown, number, unknown, 'replace' | 'remove' | 'add']): unknown {
  const copy = structuredClone(value)
  const places = placesIn(copy)
  const place = places[at % Math.max(1, places.length)]
  if (!place) return other
  const holder = place.holder as Record<string, unknown>
  if (how === 'replace') holder[place.name] = other
  else if (how === 'add') holder[`${place.name}x`] = other
  else delete holder[place.name]
  return copy
}

function placesIn(value: unknown): { holder: object; name: string }[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [{ holder: value, name }, ...placesIn(inner)])
}
