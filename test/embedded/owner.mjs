// A process that owns an embedded Postgres, for tests that kill it. It writes everything that happens as a line of JSON.
import { startEmbedded } from '#holdfast/embedded/embedded'

const [dir, manner] = process.argv.slice(2)
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

process.on('SIGINT', () => tell({ signal: 'SIGINT' }))
try {
  const embedded = await startEmbedded({ dir, durable: false, log: (log) => tell({ log }) })
  tell({ ready: { url: embedded.url, dir: embedded.dir } })
  if (manner !== 'forgetful') {
    process.stdin.once('data', async () => {
      await embedded.stop()
      process.exit(0)
    })
  }
} catch (error) {
  tell({ failed: { code: error.code, message: error.message } })
  process.exit(1)
}
