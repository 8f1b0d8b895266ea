import { defineJob } from 'holdfast'
import { expect, test } from './fixtures.ts'

/** What the driver warned of in this process: it does so once, when a connection is given more than it can carry. */
const warned: string[] = []
process.on('warning', ({ name, message }) => void warned.push(`${name}: ${message}`))

/** Resolves once warnings of this turn of the event loop have been told. */
const told = () => new Promise((resolve) => setImmediate(resolve))

const megabyte = 'x'.repeat(1_000_000)
const kind = defineJob('heavy', { run: () => {} })

test('heavy slices of a bulk submit are never left to the queue of the driver', async ({ hf, pool }) => {
  // one statement carries 16 MiB, and the driver warns of the third that it is given at once
  const heavy = Array.from({ length: 50 }, () => ({ input: megabyte as unknown }))
  expect(await hf.submitMany(kind, heavy)).toHaveLength(50)
  await told()
  expect(warned).toEqual([])
  // the warning is one that this process would tell
  const client = await pool.connect()
  await Promise.all([client.query('select 1'), client.query('select 1'), client.query('select 1')])
  client.release()
  await told()
  expect(warned).toEqual([expect.stringContaining('already executing a query')])
}, 60_000)
