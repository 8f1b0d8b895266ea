import { makeMetrics } from './metrics.ts'
import { processMetrics } from './process-metrics.ts'

/** Counts what an HTTP server does. It is separate from an engine, because a server runs before it is connected to a database. */
export interface HttpMeter {
  /** A request was answered. The route is its pattern and not the path, or every id would be a series of its own. */
  answered(request: { route: string; method: string; status: number; ms: number }): void
  /** A request begins to wait. Call the returned function when it ends; more than once is fine. */
  waits(): () => void
  /** A listener has connected. Call the returned function when it disconnects; more than once is fine. */
  listens(): () => void
  /** A connection was opened. */
  opened(): void
  /** A connection has closed. */
  closed(): void
  /** The server closed or refused a connection. */
  cut(reason: string): void
  /** All metrics of the server and its engine. Without an engine, `holdfast_up` is 0. */
  text(engine: { metrics(): Promise<string> } | undefined): Promise<string>
}

/** Makes the meter of an HTTP server. */
export function makeHttpMeter(): HttpMeter {
  const own = makeMetrics('http')
  const alone = makeMetrics('process')
  alone.set('holdfast_up', 0)

  function open(name: 'holdfast_http_waits' | 'holdfast_http_listeners'): () => void {
    own.add(name)
    let isOpen = true
    return () => {
      if (isOpen) own.add(name, {}, -1)
      isOpen = false
    }
  }

  return {
    answered({ route, method, status, ms }) {
      own.add('holdfast_http_requests_total', { route, method, status: String(status) })
      own.observe('holdfast_http_request_seconds', { route }, ms / 1000)
    },
    waits: () => open('holdfast_http_waits'),
    listens: () => open('holdfast_http_listeners'),
    opened: () => own.add('holdfast_http_connections'),
    closed: () => own.add('holdfast_http_connections', {}, -1),
    cut: (reason) => own.add('holdfast_http_cut_total', { reason }),
    async text(engine) {
      const others = engine ? [engine.metrics()] : [alone.text(), processMetrics()]
      return (await Promise.all([own.text(), ...others])).join('\n')
    },
  }
}
