import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { envNameOf, flagOf } from '../config/settings.ts'
import { findEmbedded } from '../embedded/embedded.ts'
import { type ConnectOptions, connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import type { Log } from '../engine/log.ts'
import { HoldfastError } from '../errors/errors.ts'
import { logFor } from './format-log.ts'
import { complain } from './terminal.ts'

/** Connects, runs something, and closes the connection whatever happens. */
export async function withClient<T>(
  config: Config,
  use: (hf: Holdfast) => Promise<T>,
  log: Log = logFor(complain),
  more: Pick<ConnectOptions, 'owners'> = {},
): Promise<T> {
  const hf = await connect({ ...config, ...more, url: await urlOf(config), log })
  try {
    return await use(hf)
  } finally {
    await hf.close()
  }
}

/** The URL of the database: the configured one, or that of the embedded server that runs on the data folder. */
export async function urlOf(config: Config): Promise<string> {
  if (config.url) return config.url
  const url = await findEmbedded(config.dataDir)
  if (url) return url
  throw new HoldfastError(
    'not_running',
    `No database: set ${envNameOf('url')} or ${flagOf('url')} to your Postgres. Without it, Holdfast uses the embedded Postgres in ` +
      `${resolve(config.dataDir)}, and none is running there: start it with \`npm start\` or \`holdfast dev\`, or choose another folder with ${flagOf('dataDir')}.`,
  )
}
