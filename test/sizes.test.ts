import { defineJob } from 'holdfast'
import { z } from 'zod'
import { expect, problem, test } from './http/door.ts'

const noop = defineJob('noop', { run: () => null })

test('a meta beyond its limit is refused, by the library and over HTTP', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { post } = await serve(hf, { jobs: [noop] })
  const meta = { note: 'x'.repeat(20_000) }
  await expect(hf.submit(noop, null, { meta })).rejects.toMatchObject({
    code: 'input_too_large',
    message: expect.stringContaining('maxMetaBytes'),
  })
  const told = await post('/v1/jobs', { kind: 'noop', meta })
  expect([told.status, (await problem(told)).detail]).toEqual([413, expect.stringContaining('16384')])
  await hf.submit(noop, null, { meta: { note: 'x'.repeat(16_000) } })
  const list = await post('/v1/jobs', { kind: 'noop', meta: [1] })
  expect([list.status, (await problem(list)).detail]).toEqual([
    422,
    expect.stringContaining('body.meta: must be an object'),
  ])
})

const text = (body: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

test('integers that would change and __proto__ are refused, with their place', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const cases: [body: string, path: string][] = [
    ['{"kind":"noop","input":{"id":12345678901234567890}}', 'body.input.id'],
    ['{"kind":"noop","input":[1,9007199254740993]}', 'body.input[1]'],
    ['{"kind":"noop","input":{"__proto__":{"isAdmin":true}}}', 'body.input.__proto__'],
    ['{"kind":"noop","meta":{"__proto__":1}}', 'body.meta.__proto__'],
    [`{"kind":"noop","input":["${'x'.repeat(70_000)}",{"id":12345678901234567890}]}`, 'body.input[1].id'],
  ]
  for (const [body, path] of cases) {
    const told = await call('/v1/jobs', text(body))
    const { code, details } = (await told.json()) as { code: string; details: unknown }
    expect([told.status, code, details]).toEqual([422, 'not_storable', expect.objectContaining({ path })])
  }
  const withProto = JSON.parse('{"a":{"__proto__":1}}')
  await expect(hf.submit(noop, withProto as never)).rejects.toMatchObject({
    code: 'not_storable',
    details: { path: 'input.a, key "__proto__"' },
  })
})

test('bodies in another charset or compressed are refused with 415', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const status = async (headers: Record<string, string>) =>
    (await call('/v1/jobs', text('{"kind":"noop"}', headers))).status
  expect(await status({ 'content-encoding': 'gzip' })).toBe(415)
  expect(await status({ 'content-encoding': 'identity' })).toBe(202)
  expect(await status({ 'content-type': 'application/json; charset=latin1' })).toBe(415)
  expect(await status({ 'content-type': 'application/json;charset="utf-16le"' })).toBe(415)
  expect(await status({ 'content-type': 'application/json; charset="UTF-8"' })).toBe(202)
})

test('a tenant has only so many bytes under way, and other tenants are not affected', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call, as } = await serve(hf, {
    jobs: [noop],
    needsKey: true,
    config: { ...hf.config, httpPort: 0, httpBodyBytes: 200_000 },
  })
  const [one, second, other] = [await as('a', 'submit'), await as('a', 'submit'), await as('b', 'submit')]
  const body = JSON.stringify({ kind: 'noop', input: 'x'.repeat(150_000) })
  let send: (() => void) | undefined
  const slow = call('/v1/jobs', {
    ...text(''),
    key: one.key,
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
    body: new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from(body.slice(0, 100)))
        await new Promise<void>((resolve) => {
          send = resolve
        })
        controller.enqueue(Buffer.from(body.slice(100)))
        controller.close()
      },
    }),
    duplex: 'half',
  } as RequestInit)
  const again = async (key: string) => (await call('/v1/jobs', { ...text(body), key })).status
  await expect.poll(() => again(second.key)).toBe(429)
  expect(await again(other.key)).toBe(202)
  send?.()
  expect((await slow).status).toBe(202)
  expect(await again(second.key)).toBe(202)
})

test('what came in a large body is stored as it was sent, and a key knows it again in any order', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const long = 'x'.repeat(70_000)
  const send = async (input: string) => {
    const told = await call('/v1/jobs', text(`{"kind":"noop","key":"k","input":${input}, "meta":{"a": 1.50}}`))
    return [told.status, (await told.json()) as { id?: string; code?: string }] as const
  }
  const [status, { id }] = await send(`{"b":[1.0,{"d":"\\u00e9"}],"a":"${long}"}`)
  expect(status).toBe(202)
  expect(await hf.get(id as string)).toMatchObject({ input: { a: long, b: [1, { d: 'é' }] }, meta: { a: 1.5 } })
  expect((await send(`{"a":"${long}","b":[1,{"d":"é"}]}`))[1].id).toBe(id)
  expect((await hf.submit(noop, { b: [1, { d: 'é' }], a: long } as never, { key: 'k' })).id).toBe(id)
  expect((await send(`{"a":"${long}",\r\n\t"b":[1,\n{"d":"é"}]}`))[1].id).toBe(id)
  expect((await send(`{"a":"${long}","b":[2,{"d":"é"}]}`))[1].code).toBe('key_conflict')
  for (const bad of ['"\\u0000"', '["\\ud800"]', `${'['.repeat(210)}${']'.repeat(210)}`])
    expect((await send(`{"a":"${long}","b":${bad}}`))[1].code).toBe('not_storable')
})

test('an input of a large body that nobody has to look into is stored as it was sent, alone and among others', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const large = `{"a":"${'ü'.repeat(40_000)}",\r\n\t"b":[1.50,{"d":"é€😀\\n\\"", "":[]}]}`
  const inputs = [large, '1', '["ß"]', 'null', large]
  const stored = async (ids: string[]) => (await Promise.all(ids.map((id) => hf.get(id)))).map((job) => job?.input)
  const one = await call('/v1/jobs', text(`{"kind":"noop","input":${large}}`))
  expect(await stored([((await one.json()) as { id: string }).id])).toEqual([JSON.parse(large)])
  const jobs = inputs.map((input) => `{"kind":"noop","input":${input}}`)
  const many = await call('/v1/jobs/batch', text(`\ufeff{"jobs":[${jobs.join(', ')}]}`))
  const { jobs: told } = (await many.json()) as { jobs: { id: string }[] }
  expect(await stored(told.map(({ id }) => id))).toEqual(inputs.map((input) => JSON.parse(input)))
})

test('a large input is checked by the schema of its kind, alone and in a batch', async ({ open, serve }) => {
  const listed = defineJob('listed', { input: z.object({ list: z.array(z.number()) }), run: () => null })
  const hf = await open({ jobs: [listed] })
  const { post } = await serve(hf, { jobs: [listed] })
  const list = Array.from({ length: 40_000 }, (_, index) => index)
  const stored = async (input: unknown) => {
    const told = await post('/v1/jobs/batch', { jobs: [{ kind: 'listed', input }] })
    return [told.status, (await told.json()) as { code?: string; jobs?: { id: string }[] }] as const
  }
  const [status, { jobs }] = await stored({ list })
  expect([status, (await hf.get(jobs?.[0]?.id as string))?.input]).toEqual([202, { list }])
  expect((await stored({ list: [...list, 'x'] }))[1].code).toBe('input_invalid')
  const alone = await post('/v1/jobs', { kind: 'listed', input: [...list, 'x'] })
  expect((await problem(alone)).code).toBe('input_invalid')
})

test('a batch says which of its jobs does not fit', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { post } = await serve(hf, { jobs: [noop] })
  const told = await post('/v1/jobs/batch', { jobs: [{ kind: 'noop' }, { kind: 'noop', priority: 9 }] })
  expect([told.status, (await problem(told)).detail]).toEqual([422, expect.stringContaining('body.jobs.1.priority')])
})
