import { readFile } from 'node:fs/promises'
import { defineJob, PermanentError } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

/** The SQL of the docs, for jobs of any age. */
async function documentedCleanUp(): Promise<string> {
  const page = await readFile(new URL('../docs/operate/postgres.md', import.meta.url), 'utf8')
  const [, sql = ''] = /```sql\n(begin;\n[\s\S]*?)```/.exec(page) ?? []
  expect(sql).toContain("interval '90 days'")
  return sql.replace("interval '90 days'", "interval '0'")
}

test('the documented clean-up leaves nothing of the jobs that it deletes, and nothing that an audit complains of', async ({
  open,
  query,
}) => {
  const mail = defineJob('mail', { run: () => 'sent' })
  const bad = defineJob('bad', {
    run: ({ progress }) => {
      progress(1, 2)
      throw new PermanentError('no')
    },
  })
  const page = defineJob('page', { run: ({ input }) => input })
  const book = defineJob('book', {
    stages: [
      { name: 'pages', fanOut: () => [1, 2, 3], each: page },
      {
        name: 'lines',
        tolerate: 3,
        fanOut: () => [1, 2, 3],
        each: {
          retries: 0,
          run: () => {
            throw new Error('torn')
          },
        },
      },
    ],
  })
  const hf = await open({ jobs: [mail, bad, page, book], webhookAllow: ['127.0.0.1'] })
  await hf.webhooks.create({ url: 'http://127.0.0.1:9/', types: 'job.*' })
  await hf.work()
  const handles = await hf.submitMany(
    mail,
    Array.from({ length: 20 }, (_, n) => ({ input: 'x'.repeat(n * 100), key: `k${n}`, meta: { n } })),
  )
  await Promise.all(handles.map((handle) => handle.result()))
  await (await hf.submit(book, null)).result()
  await expect((await hf.submit(bad, null)).result()).rejects.toMatchObject({ code: 'job_failed' })
  const behind = `
    select from holdfast.event
    where seq > (select coalesce(min(seq), 0) from holdfast.event_cursor where group_name = 'webhooks')`
  await until(async () => (await query(behind)).length === 0, 'all webhooks are planned')
  expect((await hf.audit()).violations).toEqual([])

  await query(await documentedCleanUp())
  const left: Record<string, number> = {}
  for (const table of [
    'job',
    'outcome',
    'job_key',
    'job_payload',
    'stage_output',
    'job_progress',
    'barrier',
    'job_webhook',
    'snapshot',
  ])
    left[table] = Number((await query(`select count(*) as n from holdfast.${table}`))[0]?.n)
  expect(left).toEqual(Object.fromEntries(Object.keys(left).map((table) => [table, 0])))
  expect((await hf.audit()).violations).toEqual([])

  await Promise.all((await hf.submitMany(mail, [{ input: 1 }, { input: 2, key: 'k1' }])).map((job) => job.result()))
  expect((await hf.audit()).violations).toEqual([])
})
