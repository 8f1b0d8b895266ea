import { type Command, Option } from 'commander'
import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { envNameOf, flagOf, type SettingName, settingNames, settingOf } from '../config/settings.ts'

/** The settings of a command that only queries the database. */
export const clientSettings: readonly SettingName[] = ['url', 'dataDir', 'pooled', 'statementTimeoutMs']
/** The settings of a command that configures webhooks. */
export const webhookSettings: readonly SettingName[] = [...clientSettings, 'webhookAllow', 'secretKey']
/** The settings of a command that submits. */
export const submitSettings: readonly SettingName[] = [
  ...webhookSettings,
  'maxInputBytes',
  'maxMetaBytes',
  'crashBudget',
]
/** The settings of the probes of a long-running command. */
export const healthFlags: readonly SettingName[] = ['healthPort', 'healthHost', 'healthFile', 'livenessMs']
/** The settings of a command that runs workers. */
export const workSettings: readonly SettingName[] = settingNames

const placeholders = {
  text: '<text>',
  whole: '<number>',
  duration: '<duration>',
  list: '<names>',
  flag: '[true|false]',
} as const

/** The most common settings. Help shows these unless a command has its own list; --help-all shows all. */
const firstSettings: readonly SettingName[] = [
  'url',
  'dataDir',
  'processes',
  'concurrency',
  'queues',
  'httpPort',
  'logLevel',
]
/** Help shows up to this many settings without --help-all. */
const mostShown = 6

/** Adds a flag for each of these settings. Flags, defaults and descriptions derive from the settings. */
export function addSettings(
  command: Command,
  names: readonly SettingName[],
  first: readonly SettingName[] = firstSettings,
): Command {
  const rare: Option[] = []
  for (const name of names) {
    const { type, about } = settingOf(name)
    const option = new Option(`${flagOf(name)} ${placeholders[type]}`, `${about} ${originOf(name)}`)
    command.addOption(option.helpGroup('Settings:'))
    if (names.length > mostShown && !first.includes(name)) rare.push(option.hideHelp())
  }
  if (rare.length > 0) addHelpAll(command, rare)
  return command.option('--verbose', 'Show stack traces of errors.')
}

function addHelpAll(command: Command, rare: readonly Option[]): void {
  command.option('--help-all', `Show ${rare.length} more settings.`)
  command.on('option:help-all', () => {
    for (const option of rare) option.hideHelp(false)
    command.help()
  })
}

/** Adds the flag for JSON output. */
export function addJson(command: Command): Command {
  return command.option('--json', 'Print one JSON document. Errors are printed as JSON to stderr.')
}

/** Adds the flag for JSON output to a command that prints events. */
export function addJsonLines(command: Command): Command {
  return command.option('--json', 'Print one JSON line per event. Errors are printed as JSON to stderr.')
}

/** Adds the flag that selects event types. */
export function addTypes(command: Command, about: string): Command {
  return command.option('--types <types>', `${about} job.failed, job.*, comma-separated.`)
}

/** The event types in a flag, if it was used. */
export function typesIn({ types }: { types?: string }): { types?: string[] } {
  return types === undefined ? {} : { types: types.split(',').map((type) => type.trim()) }
}

/** Adds examples to the end of a command's help. */
export function addExamples(command: Command, examples: readonly (readonly [line: string, about: string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, about]) => `  $ ${line.padEnd(width)}  # ${about}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

/** The configuration from the flags of a command, falling back to the environment and the defaults. */
export function configOf(flags: Record<string, unknown>): Config {
  const given = settingNames.filter((name) => flags[name] !== undefined).map((name) => [name, flags[name]])
  return readConfig(Object.fromEntries(given) as GivenSettings)
}

/** Whether a setting was set explicitly, even to its default. */
export function isChosen(name: SettingName, flags: Record<string, unknown>): boolean {
  return flags[name] !== undefined || (process.env[envNameOf(name)] ?? '') !== ''
}

/** The same configuration as an environment, for a child process. */
export function environmentOf(config: Config): Record<string, string> {
  const set = settingNames.filter((name) => config[name] !== undefined)
  return Object.fromEntries(set.map((name) => [envNameOf(name), [config[name]].flat().join(',')]))
}

function originOf(name: SettingName): string {
  const standard = [settingOf(name).default ?? []].flat().join(',')
  return standard === '' ? `(env: ${envNameOf(name)})` : `(default: ${standard}, env: ${envNameOf(name)})`
}
