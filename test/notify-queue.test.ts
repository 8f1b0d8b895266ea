import { connect, defineJob } from 'holdfast'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { startEmbedded } from '#holdfast/embedded/embedded'
import { migrate } from '#holdfast/schema/migrate'
import { newFolder, stopLater } from './embedded/given.ts'
import { expect, gate, quick, test, until } from './fixtures.ts'

async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client(url)
  made.on('error', () => {})
  await made.connect()
  onTestFinished(() => made.end().catch(() => {}))
  return made
}

/** Sends notifications until the queue of the server has no place for another one. */
async function fillQueue(on: pg.Client): Promise<void> {
  for (const bytes of [7_000, 100])
    for (let isFull = false; !isFull; )
      await on
        .query(`select pg_notify('noise', repeat('a', ${bytes}) || n) from generate_series(1, 9) as n`)
        .catch((error) => {
          expect(error).toMatchObject({ code: '54000' })
          isFull = true
        })
}

test('a listener that does not read, until the queue of notifications is full, stops no submit and fails no job', async () => {
  const settings = { max_notify_queue_pages: '64' }
  const { url } = stopLater(await startEmbedded({ dir: await newFolder(), durable: false, settings }))
  await migrate(url)
  const started = gate()
  const finish = gate()
  const staged = defineJob('staged', {
    stages: [
      {
        name: 'one',
        retries: 0,
        async run() {
          started.open()
          await finish.promise
        },
      },
      { name: 'two', run: () => 'done' },
    ],
  })
  const hf = await connect({ url, ...quick, jobs: [staged] })
  onTestFinished(() => hf.close())
  await hf.events.subscribe('all', {}, () => {})
  await hf.work()
  const first = await hf.submit(staged, null)
  await started.promise
  const deaf = await client(url)
  await deaf.query('listen noise')
  await deaf.query('begin')
  await deaf.query('select')
  const noisy = await client(url)
  await fillQueue(noisy)
  const isWakeWanted = 'select from holdfast.session where wants_wake'
  await until(async () => (await noisy.query(isWakeWanted)).rowCount === 1, 'the worker wants to be woken')
  finish.open()
  const second = await hf.submit(staged, null)
  for (const handle of [first, second])
    expect(await handle.result({ timeout: 20_000 })).toMatchObject({ state: 'succeeded', output: 'done' })
}, 120_000)
