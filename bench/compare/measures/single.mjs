// Single submits: twenty callers in one process, each waiting for its own before the next.
const callers = 20

export const single = {
  name: 'single',
  figures: { single: { title: 'single submits, 20 callers', unit: 'jobs/s', better: 'more' } },
  async run({ client, server, scale }) {
    await submitFor(client, Math.min(300, scale.singleMs)) // connections and code get warm
    await server.quiesce()
    const startedMs = performance.now()
    const submitted = await submitFor(client, scale.singleMs)
    return { single: submitted / ((performance.now() - startedMs) / 1000) }
  },
}

async function submitFor(client, ms) {
  const untilMs = performance.now() + ms
  let submitted = 0
  const caller = async () => {
    while (performance.now() < untilMs) {
      await client.submit('noop', submitted)
      submitted += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return submitted
}
