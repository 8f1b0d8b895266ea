import { connect, defineJob } from 'holdfast'

const greet = defineJob('greet', { run: ({ input }) => `Hello, ${input.name}!` })

// An embedded Postgres in a local folder. Pass `url` instead to use your own.
const hf = await connect({ embedded: '.holdfast-hello', jobs: [greet], logLevel: 'warn' })
await hf.work()
const job = await hf.submit(greet, { name: 'world' })
const { output } = await job.result({ timeout: 10_000 })
console.log(output) // Hello, world!
await hf.close()
