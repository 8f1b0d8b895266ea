// A worker process of a storm: knows one kind, and is killed without a warning.
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
      each: { retries: 0, run: ({ signal }, n) => wait(30 + (n % 7) * 40, n, { signal }) },
      async join(_ctx, summary, results) {
        let sum = 0
        for await (const { output } of results) sum += output
        return { summary, sum }
      },
    },
  ],
})

const hf = await connect({ url: process.argv[2], jobs: [storm], ...JSON.parse(process.argv[3]) })
await hf.work()
process.send?.('ready')
