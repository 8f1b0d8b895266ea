import { expect, test } from 'vitest'
import { parseSteps, partsOf } from './exact-json.ts'
import { RawJson, scanSteps } from './raw-json.ts'

function endOf(text: string, from = 0): number {
  const steps = scanSteps(text, from)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

test('a text is read over if JSON.parse takes it, and given up if not', () => {
  const good = [
    '{}',
    '[]',
    '[1,-0.5,1e9,true,false,null,"",[],{}]',
    '{"a":{"b":[{"c":"\\"\\\\\\n"}]}}',
    '[ 1 , { "a" : 2 } ]',
    '[\r\n\t1,\n{"a":\n2}]',
  ]
  for (const text of good) expect([text, endOf(`x${text},`, 1)]).toEqual([text, text.length + 1])
  const malformed = ['[', '{', '[1', '[1,]', '[,1]', '{"a"}', '{"a":}', '{"a":1,}', '{a:1}', '[01]', '[1 2]', '["a]']
  for (const text of [...malformed, '[1}', '{"a":1]', '[+1]', '[.5]', '[nul]', '["\\x"]', '["\t"]', '{1:2}', '[NaN]']) {
    expect(() => JSON.parse(text)).toThrow()
    expect([text, endOf(text)]).toEqual([text, -1])
  }
})

test('text that would not be stored unchanged is left to the parser', () => {
  const odd = ['[1234567890123456]', '{"__proto__":1}', '["\\u0000"]', '{"\\u005f_proto__":1}']
  for (const text of odd) expect([text, endOf(text)]).toEqual([text, -1])
  expect(endOf('['.repeat(200) + ']'.repeat(200))).toBe(400)
  expect(endOf('['.repeat(201) + ']'.repeat(201))).toBe(-1)
})

test('random changes to a text never make it pass where JSON.parse refuses it', () => {
  const text = '{"a":[1,-2.5e3,{"b":"c\\n\\"d","e":[true,false,null,{}]}],"f":{"g":"h"},"i":[[],[[]]]}'
  const characters = '{}[]",:\\ 0123-+.eEtn\n'
  let state = 1
  const random = (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  let passed = 0
  for (let turn = 0; turn < 20_000; turn++) {
    const at = random(text.length)
    const changed = text.slice(0, at) + characters[random(characters.length)] + text.slice(at + random(3))
    const end = endOf(changed)
    if (end < 0) continue
    passed += 1
    expect(() => JSON.parse(changed.slice(0, end))).not.toThrow()
  }
  expect(passed).toBeGreaterThan(500)
})

function parsed(text: string): unknown {
  const steps = parseSteps(Buffer.from(text), 'body', { leavesInputs: true })
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

test('a field of meta that is called input is a part of meta', () => {
  const value = parsed('{"meta":{"input":[2],\n"a":1}}') as { meta: unknown }
  expect(value).toEqual({ meta: { input: [2], a: 1 } })
  expect(partsOf(value.meta)?.json).toBe('{"input":[2],"a":1}')
})

test('inputs stay text, and all else is made', () => {
  const text =
    '{"jobs":[{"kind":"a","input":{"b":[1]},"meta":{"input":[2]}},{"kind":"c","input":["ä€😀",\n2]},{"kind":"ö","input":["\\u0041"]}]}'
  const value = parsed(text) as { jobs: { input: unknown }[] }
  const raw = ['{"b":[1]}', '["ä€😀",\n2]'].map((json) => new RawJson(Buffer.from(json)))
  expect(value).toEqual({
    jobs: [
      { kind: 'a', input: raw[0], meta: { input: [2] } },
      { kind: 'c', input: raw[1] },
      { kind: 'ö', input: ['A'] },
    ],
  })
  expect(partsOf(value.jobs[1]?.input)?.json).toBe('["ä€😀",\n2]')
})

test('many inputs that are left raw take as many steps as one that is as long', () => {
  const input = JSON.stringify(Array.from({ length: 250 }, () => ({ a: 1 })))
  const text = `{"jobs":[${Array.from({ length: 100 }, () => `{"input":${input}}`).join(',')}]}`
  const steps = parseSteps(Buffer.from(text), 'body', { leavesInputs: true })
  let count = 0
  while (!steps.next().done) count += 1
  expect(count).toBeGreaterThanOrEqual(Math.floor(text.length / 20_000))
})
