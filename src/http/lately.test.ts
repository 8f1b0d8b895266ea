import { expect, test, vi } from 'vitest'
import { lately } from './lately.ts'

test('what was true a moment ago still counts, until that time is over', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
  let isNow = false
  const isLately = lately(() => isNow, 100)
  expect(isLately()).toBe(false)
  isNow = true
  expect(isLately()).toBe(true)
  isNow = false
  now.mockReturnValue(1_099)
  expect(isLately()).toBe(true)
  now.mockReturnValue(1_100)
  expect(isLately()).toBe(false)
  now.mockRestore()
})
