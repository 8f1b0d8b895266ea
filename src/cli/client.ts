import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { envNameOf, flagOf } from '../config/settings.ts'
import { type ConnectOptions, connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import type { Log } from '../engine/log.ts'
import { HoldfastError } from '../errors/errors.ts'
import { findEmbedded } from '../store/embedded/embedded.ts'
import { logFor } from './log-words.ts'
import { complain } from './terminal.ts'

/** Runs something against the Holdfast that is meant, and lets go of it whatever happens. */
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

/** The database that is meant: the one that was named, else the embedded one that runs on the data folder. */
export async function urlOf(config: Config): Promise<string> {
  if (config.url) return config.url
  const url = await findEmbedded(config.dataDir)
  if (url) return url
  throw new HoldfastError(
    'not_running',
    `No Holdfast runs on the data folder ${resolve(config.dataDir)}. Start one there with \`npm start\` or \`holdfast dev\`, ` +
      `name another folder with ${flagOf('dataDir')}, or a Postgres of yours with ${flagOf('url')} or ${envNameOf('url')}.`,
  )
}
