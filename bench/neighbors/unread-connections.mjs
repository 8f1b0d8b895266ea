// Without a key: 1,564 connections that ask for the docs 100 times each, all at the same moment, and read nothing. From then on, 200 new ones a second do the same.
import { connect } from 'node:net'
import { atRate, countAsked, elsewhere } from './support/ask.mjs'

export const measures = ['submit', 'get']
/** The moment at which all of them send is measured as well. */
export const leadMs = 0

const connections = 1_564
const requests = 100
const newPerSecond = 200

export async function attack({ url, signal, begun }) {
  const { hostname, port } = new URL(url)
  const text = `GET /docs HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`.repeat(requests)
  const connectOne = () =>
    connect({ host: hostname, port: Number(port), localAddress: elsewhere })
      .pause()
      .on('error', () => {})
  const open = Array.from({ length: connections }, connectOne)
  await Promise.all(open.map((socket) => new Promise((resolve) => socket.on('connect', resolve).on('close', resolve))))
  const ask = (socket) => {
    socket.write(text)
    countAsked(requests)
  }
  begun()
  for (const socket of open) ask(socket)
  await atRate({ perSecond: newPerSecond, most: newPerSecond }, signal, async () => {
    open.shift().destroy()
    open.push(connectOne())
    ask(open.at(-1))
  })
  for (const socket of open) socket.destroy()
}
