import { expect, test } from 'vitest'
import { Slices } from './slices.ts'

function* busy(turns: number, tell: () => void): Generator<undefined, number> {
  for (let turn = 0; turn < turns; turn++) {
    tell()
    const untilMs = performance.now() + 3
    while (performance.now() < untilMs);
    yield
  }
  return turns
}

test('owners take turns, regardless of who came first and how much each wants', async () => {
  const slices = new Slices()
  const order: string[] = []
  const tell = (owner: string) => () => order.push(owner)
  const many = [slices.run('a', busy(4, tell('a'))), slices.run('a', busy(4, tell('a')))]
  await slices.run('b', busy(2, tell('b')))
  expect(order.slice(0, 4)).toEqual(['a', 'b', 'a', 'b'])
  expect(await Promise.all(many)).toEqual([4, 4])
})

test('between two slices the event loop goes on', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  await new Slices().run(
    'a',
    busy(20, () => {}),
  )
  clearInterval(timer)
  expect(turns).toBeGreaterThan(5)
})

test('what steps throw is told to their owner, and the others go on', async () => {
  const slices = new Slices()
  const fail = () => {
    throw new SyntaxError('broken')
  }
  const broken = slices.run('a', busy(1, fail))
  const whole = slices.run(
    'a',
    busy(1, () => {}),
  )
  await expect(broken).rejects.toThrow('broken')
  expect(await whole).toBe(1)
})
