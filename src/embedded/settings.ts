import { HoldfastError } from '../errors/errors.ts'

/** Default Postgres settings, for a small machine with many small writes. */
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

/** With these, a power cut can destroy the data, but a crash of Postgres can't: the kernel has everything that was committed. */
const fast: Record<string, string> = { fsync: 'off', full_page_writes: 'off' }

/** Settings that the supervisor depends on. */
const fixed: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  logging_collector: 'off',
  log_destination: 'stderr',
}

const ours = ['port', 'cluster_name', 'data_directory', ...Object.keys(fixed)]

/** The settings of a server as arguments. Throws for a setting that the supervisor depends on. */
export function settingArguments(settings: Record<string, string>, options: { durable: boolean }): string[] {
  const refused = Object.keys(settings).find((name) => ours.includes(name))
  if (refused) {
    throw new HoldfastError(
      'option_invalid',
      `The setting ${refused} of the embedded Postgres cannot be changed. Remove it.`,
    )
  }
  const all = { ...defaults, ...(options.durable ? {} : fast), ...settings, ...fixed }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
