import type { Setting } from './setting.ts'

/** The settings of the HTTP API. */
export const httpSettings = {
  httpHost: { type: 'text', default: '127.0.0.1', about: 'Address that the HTTP API listens at.' },
  httpPort: {
    type: 'whole',
    default: 7420,
    min: 0,
    max: 65_535,
    about: 'Port that the HTTP API listens at; 0 takes any that is free.',
  },
  httpMaxBytes: {
    type: 'whole',
    default: 4_194_304,
    min: 65_536,
    max: 268_435_456,
    about: 'Largest body of a request that carries many jobs or outcomes; others are held to less.',
  },
  httpBodyBytes: {
    type: 'whole',
    default: 33_554_432,
    min: 65_536,
    max: 1_073_741_824,
    about:
      'Bytes in bodies of more than 64 KiB that one tenant, or one key for all tenants, may have under way at one server at once.',
  },
  httpRate: {
    type: 'whole',
    default: 10_000,
    min: 1,
    max: 10_000_000,
    about:
      'Requests a second that one tenant, or one API key for all tenants, may make to one server; for a moment, twice as many.',
  },
  httpWaits: {
    type: 'whole',
    default: 5_000,
    min: 1,
    max: 100_000,
    about:
      'Requests of one tenant, or of one API key for all tenants, that may wait at one server at once: long polls, results, live events.',
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
    about: 'How long a client may take to send a whole request.',
  },
  httpSendMs: {
    type: 'whole',
    default: 60_000,
    min: 100,
    max: 3_600_000,
    about: 'How long a client may take to receive an answer, or the next part of a stream, before it is cut off.',
  },
  httpUnsentBytes: {
    type: 'whole',
    default: 67_108_864,
    min: 65_536,
    max: 17_179_869_184,
    about:
      'Bytes of answers that may wait in one server for slow clients. Beyond that, the address that holds the most loses its oldest connection.',
  },
  httpConnections: {
    type: 'whole',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    about:
      'Connections that one server holds. Beyond that, a new one replaces an idle one of the address that has the most, or is refused.',
  },
  httpPipelined: {
    type: 'whole',
    default: 16,
    min: 0,
    max: 1_000,
    about: 'Requests that a client may send ahead on one connection. They are answered one after the other.',
  },
  httpLingerMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: 60_000,
    about:
      'How long the rest of a refused body is read and discarded, so that a client that writes first can read why.',
  },
  httpLingerBytes: {
    type: 'whole',
    default: 67_108_864,
    min: 0,
    max: 17_179_869_184,
    about: 'How much of a refused body is read and discarded at most.',
  },
  httpDrainMs: {
    type: 'whole',
    default: 2_000,
    min: 0,
    max: 300_000,
    about:
      'How long a stopping server keeps idle connections open. A request that comes on one is answered, with `Connection: close`.',
  },
  httpPageRate: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 1_000_000,
    about:
      'How often a second one address may ask one server for `/docs` or `/openapi.json`; for a moment, ten times that.',
  },
  httpKeyTries: {
    type: 'whole',
    default: 20,
    min: 1,
    max: 1_000_000,
    about: 'Unknown API keys a second that one address may try at one server; for a moment, ten times as many.',
  },
  httpKeyLookups: {
    type: 'whole',
    default: 20,
    min: 2,
    max: 1_000,
    about: 'Unknown API keys that one server looks up at once. One address gets half of that.',
  },
  httpOrigins: {
    type: 'list',
    default: [] as readonly string[],
    about:
      'Origins whose pages may call the API from a browser, such as https://app.example.com, with commas between. Empty: none.',
  },
} as const satisfies Record<string, Setting>
