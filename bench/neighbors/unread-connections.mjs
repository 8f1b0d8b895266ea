// Without a key: 500 connections that ask for the docs 100 times each, and read nothing.
import { connect } from 'node:net'

export const measures = ['submit', 'get']

const connections = 500
const requests = 100

export async function attack({ url, signal, begun }) {
  const { hostname, port } = new URL(url)
  const text = `GET /docs HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`.repeat(requests)
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect(Number(port), hostname).pause()
    socket.on('error', () => {})
    socket.write(text)
    return socket
  })
  begun()
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  for (const socket of sockets) socket.destroy()
}
