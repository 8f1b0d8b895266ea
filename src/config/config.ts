import { durationMs } from '../errors/duration.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { Setting } from './setting.ts'
import { type Config, envNameOf, type SettingName, settingNames, settingOf } from './settings.ts'

export type { Config } from './settings.ts'

/** Settings as a caller passes them: any subset, with values that may still be strings. */
export type GivenSettings = { [N in SettingName]?: Config[N] | string | undefined }

/**
 * The configuration: the caller's value, else the environment, else the default. An invalid value, or a conflict between
 * two settings, is rejected with a message that names the setting.
 */
export function readConfig(given: GivenSettings = {}, env: NodeJS.ProcessEnv = process.env): Config {
  const values = Object.fromEntries(settingNames.map((name) => [name, chosen(name, given[name], env[envNameOf(name)])]))
  const config = values as unknown as Config
  const broken = relations.find((relation) => !relation.holds(config))
  if (broken) refuse(`${broken.says} It is ${broken.shows(config)}.`)
  return config
}

function chosen(name: SettingName, given: unknown, fromEnv: string | undefined): unknown {
  if (given !== undefined) return parse(name, given, `The setting ${name}`)
  if (fromEnv !== undefined && fromEnv !== '')
    return parse(name, fromEnv, `The setting ${name} (from ${envNameOf(name)})`)
  return settingOf(name).default
}

function parse(name: SettingName, raw: unknown, subject: string): unknown {
  const setting = settingOf(name)
  if (setting.type === 'flag') return parseFlag(raw, subject)
  if (setting.type === 'list') return parseList(raw, subject)
  if (setting.type === 'text')
    return typeof raw === 'string' && raw !== ''
      ? raw
      : refuse(`${subject} must be a non-empty string, not ${show(raw)}.`)
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = setting
  const value = typeof raw === 'string' ? numberIn(setting.type, raw) : raw
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    return refuse(
      `${subject} must be a whole number from ${min} to ${max}${setting.type === 'duration' ? ', or a string such as "12h" or "30d"' : ''}, not ${show(raw)}.`,
    )
  return value
}

function numberIn(type: Setting['type'], raw: string): unknown {
  if (/^\s*-?\d+\s*$/.test(raw)) return Number(raw)
  return (type === 'duration' ? durationMs(raw) : undefined) ?? raw
}

function parseList(raw: unknown, subject: string): readonly string[] {
  const words =
    typeof raw === 'string'
      ? raw
          .split(',')
          .map((word) => word.trim())
          .filter(Boolean)
      : raw
  if (Array.isArray(words) && words.every((word) => typeof word === 'string')) return words
  return refuse(`${subject} must be a comma-separated list of names, not ${show(raw)}.`)
}

function parseFlag(raw: unknown, subject: string): boolean {
  if (raw === true || raw === 'true' || raw === '1') return true
  if (raw === false || raw === 'false' || raw === '0') return false
  return refuse(`${subject} must be true or false, not ${show(raw)}.`)
}

function show(raw: unknown): string {
  return typeof raw === 'string' ? JSON.stringify(raw) : String(raw)
}

function refuse(message: string): never {
  throw new HoldfastError('config_invalid', message)
}

interface Relation {
  holds: (config: Config) => boolean
  says: string
  shows: (config: Config) => string
}

const relations: Relation[] = [
  less(
    'heartbeatMs',
    (c) => c.lostAfterMs - c.abortMarginMs,
    'lostAfterMs − abortMarginMs',
    'or a live session would appear dead between two heartbeats',
  ),
  less(
    'lostAfterMs',
    (c) => c.leaseMs,
    'leaseMs',
    'because a session that lost its lock must not be kept longer than its lease',
  ),
  less(
    'leaderRenewMs',
    (c) => c.leaderLeaseMs,
    'leaderLeaseMs',
    'or a leader would lose its lease between two renewals',
  ),
  less('sweepMs', (c) => c.leaderLeaseMs, 'leaderLeaseMs', 'or a leader could hold its lease without ever sweeping'),
  less('readerBeatMs', (c) => c.readerLeaseMs / 2, 'readerLeaseMs / 2', 'or a live reader would lose its share'),
  less(
    'eventRetentionMs',
    (c) => c.eventCapMs + 1,
    'eventCapMs + 1',
    'because the cap is the maximum time that events are kept',
  ),
  less('backoffBaseMs', (c) => c.backoffMaxMs + 1, 'backoffMaxMs + 1', 'because the first wait is the shortest'),
]

function less(name: SettingName, limit: (config: Config) => number, limitName: string, because: string): Relation {
  return {
    holds: (config) => (config[name] as number) < limit(config),
    says: `The setting ${name} must be less than ${limitName}, ${because}.`,
    shows: (config) => `${config[name]}, and ${limitName} is ${limit(config)}`,
  }
}

/** The pino levels that `logLevel` may name. */
const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']
relations.push({
  holds: (config) => levels.includes(config.logLevel),
  says: `The setting logLevel must be one of ${levels.join(', ')}.`,
  shows: (config) => config.logLevel,
})
