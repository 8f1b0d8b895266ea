// A worker process of a storm: runs one kind, and is killed without warning.
import { setTimeout as wait } from 'node:timers/promises'
import { connect, defineJob } from 'holdfast'

const storm = defineJob('storm', {
  crashBudget: 1_000,
  stages: [
    {
      name: 'all',
      fanOut: async function* ({ input }) {
        for (let n = 0; n < input.items; n++) yield n
      },
      each: { retries: 0, run: ({ signal }, n) => wait(5 + (n % 7) * 10, n, { signal }) },
      async join(_ctx, summary, results) {
        let sum = 0
        for await (const { output } of results) sum += output
        return { summary, sum }
      },
    },
  ],
})

process.on('message', async (options) => {
  const hf = await connect({ jobs: [storm], ...options })
  await hf.work()
  process.send('works')
})
process.on('disconnect', () => process.exit())
process.send('ready')
