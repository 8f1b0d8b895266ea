import { defineJob } from 'holdfast'
import { expect, test, until } from './http/door.ts'

const noop = defineJob('noop', { run: () => null })

test('a tenant that reads many lists at once occupies one connection, and leaves the others to others', async ({
  open,
  serve,
  pool,
  query,
}) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const [greedy, other] = [await as('greedy', 'read'), await as('other', 'read', 'submit')]
  const { id } = (await other.submitJob({ body: { kind: 'noop' } })).data as { id: string }
  const areRead = async (count: number) => {
    const [row] = await query(`select count(*)::int as count from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%endpoint.list%' and pid <> pg_backend_pid()`)
    return row?.count === count
  }
  const holder = await pool.connect()
  await holder.query('begin; lock table holdfast.endpoint')
  const lists = Array.from({ length: 20 }, () => greedy.listWebhooks())
  await until(() => areRead(1))
  // as many as the pool has connections would have kept everybody waiting
  expect((await other.getJob({ path: { id } })).data).toMatchObject({ id })
  const second = other.listWebhooks()
  await until(() => areRead(2))
  await holder.query('commit')
  holder.release()
  await Promise.all([...lists, second])
})
