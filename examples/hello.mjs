import { connect, defineJob } from 'holdfast'
import { z } from 'zod'

const greet = defineJob('greet', {
  input: z.object({ name: z.string() }),
  stages: [
    { name: 'compose', run: ({ input }) => `Hello, ${input.name}!` },
    { name: 'count', run: ({ outputs }) => ({ text: outputs.compose, letters: outputs.compose.length }) },
  ],
})

// An embedded Postgres in a local folder. Pass `url` instead to use your own.
const hf = await connect({ embedded: '.holdfast-hello', jobs: [greet], logLevel: 'warn' })
await hf.work()
const job = await hf.submit(greet, { name: 'world' })
const { output } = await job.result({ timeout: 10_000 })
console.log(output) // { text: 'Hello, world!', letters: 13 }
await hf.close()
