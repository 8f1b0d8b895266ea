import { type Command, Option } from 'commander'
import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { envNameOf, flagOf, type SettingName, settingNames, settingOf } from '../config/settings.ts'

/** The settings of a command that only asks the database something. */
export const clientSettings: readonly SettingName[] = ['url', 'dataDir', 'pooled', 'statementTimeoutMs']
/** The settings of a command that says where webhooks go. */
export const webhookSettings: readonly SettingName[] = [...clientSettings, 'webhookAllow', 'secretKey']
/** The settings of a command that submits. */
export const submitSettings: readonly SettingName[] = [
  ...webhookSettings,
  'maxInputBytes',
  'maxMetaBytes',
  'crashBudget',
]
/** The settings of the probes of a command that runs on. */
export const healthFlags: readonly SettingName[] = ['healthPort', 'healthHost', 'healthFile', 'livenessMs']
/** The settings of a command that works. */
export const workSettings: readonly SettingName[] = settingNames

const placeholders = { text: '<text>', whole: '<number>', list: '<names>', flag: '[true|false]' } as const

/** The settings that people set first: help shows these, and --help-all every one. */
const firstSettings: readonly SettingName[] = [
  'url',
  'dataDir',
  'processes',
  'concurrency',
  'queues',
  'httpPort',
  'logLevel',
]
/** So many settings are shown whole. */
const mostShown = 6

/** Gives a command one flag for each of these settings. Flags, defaults and explanations come from the settings alone. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  const rare: Option[] = []
  for (const name of names) {
    const { type, about } = settingOf(name)
    const option = new Option(`${flagOf(name)} ${placeholders[type]}`, `${about} ${originOf(name)}`)
    command.addOption(option.helpGroup('Settings:'))
    if (names.length > mostShown && !firstSettings.includes(name)) rare.push(option.hideHelp())
  }
  if (rare.length > 0) addHelpAll(command, rare)
  return command.option('--verbose', 'Show where an error came from.')
}

function addHelpAll(command: Command, rare: readonly Option[]): void {
  command.option('--help-all', `Show the other ${rare.length} settings, too.`)
  command.on('option:help-all', () => {
    for (const option of rare) option.hideHelp(false)
    command.help()
  })
}

/** Gives a command the flag that makes it speak JSON. */
export function addJson(command: Command): Command {
  return command.option('--json', 'Print one JSON document; errors become JSON on standard error.')
}

/** Gives a command that tells events the flag that makes it speak JSON. */
export function addJsonLines(command: Command): Command {
  return command.option('--json', 'Print one line of JSON for each event; errors become JSON on standard error.')
}

/** Gives a command the flag that chooses types of events. */
export function addTypes(command: Command, about: string): Command {
  return command.option('--types <types>', `${about} job.failed, job.*, several with commas between.`)
}

/** The types in a flag, if it was given. */
export function typesIn({ types }: { types?: string }): { types?: string[] } {
  return types === undefined ? {} : { types: types.split(',').map((type) => type.trim()) }
}

/** Ends a command's help with examples. */
export function addExamples(command: Command, examples: readonly (readonly [line: string, about: string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, about]) => `  $ ${line.padEnd(width)}  # ${about}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

/** The configuration from a command's flags, with the environment and the defaults behind them. */
export function configOf(flags: Record<string, unknown>): Config {
  const given = settingNames.filter((name) => flags[name] !== undefined).map((name) => [name, flags[name]])
  return readConfig(Object.fromEntries(given) as GivenSettings)
}

/** Whether somebody chose a setting, even if it is what it would be without. */
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
