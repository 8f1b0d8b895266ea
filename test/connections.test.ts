import { test, until } from './fixtures.ts'
import { startWorker } from './processes/worker.ts'

const held = `select from pg_stat_activity where datname = current_database() and application_name = 'holdfast'`

test('an idle worker that leads comes down to three connections, and goes on from there', async ({
  url,
  query,
  pool,
}) => {
  const worker = await startWorker({
    url,
    logLevel: 'silent',
    sweepMs: 1_000,
    leaderRenewMs: 1_000,
    leaderLeaseMs: 10_000,
  })
  await until(
    async () => (await query('select from holdfast.leader where lease_until > now()')).length === 1,
    'it leads',
  )
  // one for its heartbeat, one that listens, one for all the rest; what its start took is given up after ten seconds
  const ledAtMs = performance.now()
  const isDown = async () => (await query(held)).length === 3 && performance.now() - ledAtMs > 12_000
  await until(isDown, 'three connections are left', 70_000)
  const at = `now(), now(), 3, 2, 'queued', 'patient', 'default', 'default', 'null'`
  const columns = 'id, run_at, submitted_at, crash_budget, priority, state, kind, queue, tenant, input'
  const { rows } = await pool.query(
    `insert into holdfast.live_job (${columns}) values (gen_random_uuid(), ${at}) returning id`,
  )
  await worker.told(({ started }) => started === rows[0].id)
}, 90_000)
