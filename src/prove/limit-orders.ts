import type { Holdfast } from '../engine/engine.ts'

/** Carries out an order about limits. Each can be carried out twice, because a response can be lost. */
export async function carryOutOnLimits({ limits }: Holdfast, order: 'limit' | 'limit-remote'): Promise<string[]> {
  if (order === 'limit-remote') {
    await limits.set({ kind: 'remote-limited' }, { concurrency: 1 })
    return []
  }
  await limits.set({ queue: 'limited' }, { concurrency: 2 })
  await limits.set({ kind: 'limited', key: 'one' }, { concurrency: 1 })
  await limits.list()
  await limits.remove({ kind: 'limited', key: 'one' })
  await limits.remove({ queue: 'limited' })
  return []
}
