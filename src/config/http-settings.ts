import type { Setting } from './setting.ts'

/** The settings of the HTTP API. */
export const httpSettings = {
  httpHost: { type: 'text', default: '127.0.0.1', about: 'Address that the HTTP API listens on.' },
  httpPort: {
    type: 'whole',
    default: 7420,
    min: 0,
    max: 65_535,
    about: 'Port that the HTTP API listens on; 0 picks any free port.',
  },
  httpMaxBytes: {
    type: 'whole',
    default: 4_194_304,
    min: 65_536,
    max: 268_435_456,
    about: 'Maximum body size of requests that carry many jobs or outcomes; other requests have lower limits.',
  },
  httpBodyBytes: {
    type: 'whole',
    default: 33_554_432,
    min: 65_536,
    max: 1_073_741_824,
    about:
      'Total bytes of request bodies over 64 KiB that one tenant, or one API key for all tenants, may have in flight at one server.',
  },
  httpRate: {
    type: 'whole',
    default: 10_000,
    min: 1,
    max: 10_000_000,
    about:
      'Requests per second that one tenant, or one API key for all tenants, may send to one server; bursts may reach twice as many.',
  },
  httpWaits: {
    type: 'whole',
    default: 5_000,
    min: 1,
    max: 100_000,
    about:
      'Waiting requests (long polls, results, live events) that one tenant, or one API key for all tenants, may have open at one server.',
  },
  httpScans: {
    type: 'whole',
    default: 1,
    min: 1,
    max: 200,
    about:
      'Lists, timelines and diagnoses that one server reads concurrently for one tenant, or for one API key for all tenants; others wait. Together they get half of `poolSize`.',
  },
  httpHeaderMs: {
    type: 'whole',
    default: 10_000,
    min: 100,
    max: 300_000,
    about: 'How long a client may take to send the headers of a request.',
  },
  httpBodyMs: {
    type: 'whole',
    default: 60_000,
    min: 100,
    max: 3_600_000,
    about: 'How long a client may take to send a complete request.',
  },
  httpSendMs: {
    type: 'whole',
    default: 60_000,
    min: 100,
    max: 3_600_000,
    about:
      'How long a client may take to receive a response, or the next part of a stream, before the server disconnects it.',
  },
  httpUnsentBytes: {
    type: 'whole',
    default: 67_108_864,
    min: 65_536,
    max: 17_179_869_184,
    about:
      'Bytes of responses that one server may buffer for slow clients. Beyond that, the address with the most buffered bytes loses its oldest connection.',
  },
  httpConnections: {
    type: 'whole',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    about:
      'Maximum connections of one server. Beyond that, a new connection replaces an idle one of the address with the most connections, or is refused.',
  },
  httpPipelined: {
    type: 'whole',
    default: 16,
    min: 0,
    max: 1_000,
    about: 'Requests that a client may pipeline on one connection. The server answers them in order.',
  },
  httpLingerMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: 60_000,
    about:
      'How long the server reads and discards the rest of a refused body, so that a client that is still writing can read the error.',
  },
  httpLingerBytes: {
    type: 'whole',
    default: 67_108_864,
    min: 0,
    max: 17_179_869_184,
    about: 'Maximum number of bytes of a refused body that the server reads and discards.',
  },
  httpDrainMs: {
    type: 'whole',
    default: 2_000,
    min: 0,
    max: 300_000,
    about:
      'How long a stopping server keeps idle connections open. It answers a request that arrives on one with `Connection: close`.',
  },
  httpPageRate: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 1_000_000,
    about:
      'Requests per second for `/docs` or `/openapi.json` that one address may send to one server; bursts may reach ten times as many.',
  },
  httpKeyTries: {
    type: 'whole',
    default: 5,
    min: 1,
    max: 1_000_000,
    about: 'Unknown API keys per second that one address may try at one server; bursts may reach ten times as many.',
  },
  httpRefusalMs: {
    type: 'whole',
    default: 1_000,
    min: 0,
    max: 60_000,
    about: 'How long the server delays further refusals to an address that exceeds `httpKeyTries`.',
  },
  httpKeyLookups: {
    type: 'whole',
    default: 200,
    min: 2,
    max: 1_000,
    about: 'Unknown API keys that one server looks up in one query. One address gets at most half of them.',
  },
  httpOrigins: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Comma-separated origins whose pages may call the API from a browser, such as https://app.example.com. Empty: none.',
  },
} as const satisfies Record<string, Setting>
