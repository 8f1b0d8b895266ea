// Repeats one request over several connections, each waiting for its response before the next, and prints how many succeeded.
// Plain sockets, to cost as little as possible: it shares the machine with what it measures.
import { connect } from 'node:net'

const { host, port, path, key, body, connections, seconds } = JSON.parse(process.argv[2])
const payload = Buffer.from(
  `POST ${path} HTTP/1.1\r\nhost: ${host}:${port}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
)
let answered = 0
let failed = 0
let isOver = false
const started = process.hrtime.bigint()
await Promise.all(Array.from({ length: connections }, run))
const tookMs = Number(process.hrtime.bigint() - started) / 1e6
console.log(JSON.stringify({ answered, failed, perSecond: (answered * 1000) / tookMs }))

/** All responses have the same length, so after the first one of a connection only bytes are counted. */
function run() {
  return new Promise((resolve) => {
    const socket = connect(port, host).setNoDelay(true)
    let whole = 0
    let got = 0
    let isGood = true
    let head = ''
    socket.on('connect', () => socket.write(payload))
    socket.on('data', (part) => {
      if (got === 0) isGood = part.latin1Slice(9, 12) === '202'
      got += part.length
      if (whole === 0) {
        head += part.toString('latin1')
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) return
        whole = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      }
      if (got < whole) return
      if (isGood && got === whole) answered += 1
      else failed += 1
      got = 0
      if (isOver) socket.end()
      else socket.write(payload)
    })
    socket.on('close', resolve)
    socket.on('error', resolve)
    setTimeout(() => {
      isOver = true
    }, seconds * 1000)
  })
}
