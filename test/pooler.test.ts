import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect, defineJob, migrate } from 'holdfast'
import { describe, onTestFinished } from 'vitest'
import { expect, quick, test, until } from './fixtures.ts'
import { makePooler } from './pooler.ts'

const echo = defineJob('echo', { run: ({ input }) => input })

/** Keeps what is logged. */
function recorder() {
  const lines: { level: string; message: string; facts: object }[] = []
  const at = (level: string) => (facts: object, message: string) => void lines.push({ level, message, facts })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

describe('through a transaction pooler without `pooled`', () => {
  const poolers: [what: string, options: { isDisguised: boolean }][] = [
    ['it is noticed at the start', { isDisguised: false }],
    ['it is noticed by what goes wrong, if nothing shows at the start', { isDisguised: true }],
  ]
  test.for(poolers)('%s: the work gets done, and a warning says what to set', async ([, options], { url, query }) => {
    const pooler = await makePooler(url, options)
    const log = recorder()
    const hf = await connect({ ...quick, url: pooler.url, jobs: [echo], log, heartbeatMs: 100 })
    expect(hf.config.pooled).toBe(!options.isDisguised)
    const working = await hf.work()
    const handles = []
    // in several rounds, and by several at once, so that every backend meets every statement
    for (let round = 0; round < 5; round++)
      handles.push(...(await Promise.all([1, 2, 3, 4].map((input) => hf.submit(echo, input)))))
    for (const handle of handles) expect(await handle.result({ timeout: 30_000 })).toMatchObject({ state: 'succeeded' })
    await until(async () => {
      const [session] = await query('select locked_on from holdfast.session where id = $1', [working.sessionId()])
      return session?.locked_on === null
    }, 'the session relies on its lease alone')
    const warnings = log.lines.filter(({ message }) => /transaction pooler/.test(message))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ level: 'warn', message: expect.stringContaining('HOLDFAST_POOLED=true') })
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([])
    await hf.close()
  })
})

test('migrations refuse a transaction pooler and say what to use', async ({ url }) => {
  const pooler = await makePooler(url)
  await expect(migrate(pooler.url)).rejects.toMatchObject({
    code: 'database_unsupported',
    message: expect.stringMatching(/transaction pooler.*directly against the server/),
  })
})

/** A server that accepts connections like Postgres, and answers no query. */
async function silentServer(): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    const welcome = Buffer.from('520000000800000000' + '4b0000000c0000000100000001' + '5a0000000549', 'hex')
    socket.once('data', () => socket.write(welcome))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `postgres://me@127.0.0.1:${(server.address() as AddressInfo).port}/any?connect_timeout=1`
}

test('a server that accepts connections and answers nothing does not hang the start', async () => {
  const url = await silentServer()
  await expect(connect({ ...quick, url })).rejects.toMatchObject({ code: 'database_timeout' })
  await expect(migrate(url)).rejects.toMatchObject({ code: 'database_timeout' })
})
