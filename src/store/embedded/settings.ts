import { HoldfastError } from '../../errors/errors.ts'

/** What Postgres is told unless the caller says otherwise: for a small machine with many small writes. */
const defaults: Record<string, string> = {
  max_connections: '100',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  min_wal_size: '128MB',
  checkpoint_timeout: '15min',
  autovacuum_naptime: '15s',
  random_page_cost: '1.1',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
}

/** These let a power cut destroy the data, but nothing less can: the kernel has all that was committed. */
const fast: Record<string, string> = { fsync: 'off', full_page_writes: 'off' }

/** What the supervisor itself depends on. */
const fixed: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  logging_collector: 'off',
  log_destination: 'stderr',
}

const ours = ['port', 'cluster_name', 'data_directory', ...Object.keys(fixed)]

/** The settings of a server as arguments. A setting that the supervisor depends on cannot be changed. */
export function settingArguments(settings: Record<string, string>, options: { durable: boolean }): string[] {
  const refused = Object.keys(settings).find((name) => ours.includes(name))
  if (refused) {
    throw new HoldfastError(
      'option_invalid',
      `The setting ${refused} of the embedded Postgres is not free to choose. Leave it out.`,
    )
  }
  const all = { ...defaults, ...(options.durable ? {} : fast), ...settings, ...fixed }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
