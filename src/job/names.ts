/** What a name looks like. */
export const nameShape = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$/

/** Whether a value can name a kind, a queue, a stage, a tenant or a group. */
export function isName(word: unknown): word is string {
  return typeof word === 'string' && nameShape.test(word)
}

/** Whether a value can be a priority: 1 is served first, 4 last. */
export function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 4
}

/** All priorities; the first is served first. */
export const priorities = [1, 2, 3, 4] as const

/** What a name consists of, as part of a sentence. */
export const nameForm = 'up to 100 letters, digits and any of _ . : -'

/** What a name must look like, as the end of a sentence. */
export const nameRule = `use ${nameForm}, beginning with a letter or digit`
