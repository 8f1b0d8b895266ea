import { isConnectionError } from '#holdfast/postgres/connection'
import { heldRows } from '#holdfast/transitions/held-rows.sql'
import { expect, gate, test, until } from './fixtures.ts'

test('a transaction that falls silent while it holds jobs is ended by the server, so that others can have them', async ({
  given,
  store,
  query,
}) => {
  const { id: job, leaseId: id } = await given.running()
  const needs = [{ id: job, leaseId: id, barrier: 'none' as const }]
  const locked = gate()
  const goOn = gate()
  const silent = store.transaction(
    async (runner) => {
      await runner.run(heldRows, { needs })
      locked.open()
      await goOn.promise
      await runner.run(heldRows, { needs })
    },
    { lockMs: 100 },
  )
  silent.catch(() => {})
  await locked.promise
  const free = 'select from holdfast.lease where id = $1 for update skip locked'
  expect(await query(free, [id])).toHaveLength(0)
  await until(async () => (await query(free, [id])).length === 1, 'the server lets go of the job').finally(goOn.open)
  const error = await silent.catch((one) => one)
  expect(isConnectionError(error), String(error)).toBe(true)
})
