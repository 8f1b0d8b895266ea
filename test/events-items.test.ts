import { defineJob, type LogEvent } from 'holdfast'
import { expect, test, until } from './http/door.ts'

const some = defineJob('some', {
  stages: [
    {
      name: 'all',
      fanOut: () => ['good', 'bad'],
      key: (name) => name,
      tolerate: { count: 1 },
      each: {
        retries: 0,
        run: (_, name) => {
          if (name === 'bad') throw new Error('It broke.')
        },
      },
    },
  ],
})
const plain = defineJob('plain', {
  retries: 0,
  run: () => {
    throw new Error('It broke.')
  },
})

test('a group hears of the items of fan-outs only if it asks, and then whose they are', async ({ open, serve }) => {
  const hf = await open({ jobs: [some, plain] })
  const { client } = await serve(hf)
  const heard: Record<string, LogEvent[]> = { few: [], all: [] }
  for (const group of ['few', 'all'])
    await hf.events.subscribe(
      group,
      { types: 'job.failed', from: 'beginning', items: group === 'all' },
      (event) => void heard[group]?.push(event),
    )
  await hf.work()
  const parent = await hf.submit(some, null)
  await parent.result()
  const single = await hf.submit(plain, null)
  await expect(single.result()).rejects.toMatchObject({ code: 'job_failed' })
  await until(() => heard.few?.length === 1 && heard.all?.length === 2, 'both groups have heard')
  expect(heard.few).toMatchObject([{ jobId: single.id, item: null }])
  const marker = { parent: parent.id, key: 'bad', position: 1 }
  expect(heard.all).toMatchObject([
    { kind: 'some', item: marker },
    { jobId: single.id, item: null },
  ])
  expect(await hf.events.groups()).toMatchObject([
    { name: 'all', items: true },
    { name: 'few', items: false },
  ])

  const watched = async (options: object) => {
    const events: LogEvent[] = []
    for await (const event of hf.events.watch({ types: 'job.failed', after: 0, follow: false, ...options }))
      events.push(event)
    return events
  }
  expect(await watched({})).toMatchObject([{ jobId: single.id }])
  expect(await watched({ items: true })).toMatchObject([{ item: marker }, { jobId: single.id }])
  const itemId = heard.all?.[0]?.jobId as string
  expect(await watched({ job: itemId })).toMatchObject([{ jobId: itemId, item: marker }])

  const listed = async (query: object) => (await client.listEvents({ query: { types: 'job.failed', ...query } })).data
  expect(await listed({})).toMatchObject({ events: [{ job: single.id, item: null }] })
  expect(await listed({ items: true })).toMatchObject({ events: [{ item: marker }, { job: single.id }] })
})
