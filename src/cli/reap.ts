import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { makeLog } from '../engine/log.ts'
import { messageOf } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf, healthFlags } from './flags.ts'
import { startHealth } from './health.ts'
import { ladderFacts, ladderLines, ladderSettings, ladderTable } from './ladder-words.ts'
import { loadOwners } from './load-owners.ts'
import { listenForEnd } from './signals.ts'
import { complain, print } from './terminal.ts'

interface Flags {
  explain?: true
  json?: true
}

/** Adds `holdfast reap`. */
export function addReap(program: Command): void {
  const command = program
    .command('reap')
    .description('Run a reaper without a worker: it leads or waits to, and moves on what lost workers left behind.')
    .option('--explain', 'Print how soon a lost job moves again, rung by rung, and end. Needs no database.')
    .action((flags: Flags) => (flags.explain ? explain(flags) : reap(flags)))
  addSettings(addJson(command), [
    ...clientSettings,
    ...ladderSettings,
    'poolSize',
    'logLevel',
    'ownersModule',
    'ownerTimeoutMs',
    ...healthFlags,
  ])
  addExamples(command, [
    ['holdfast reap', 'beside your workers, or while all of them are down'],
    ['holdfast reap --explain', 'the recovery bound under the settings of the environment'],
    ['holdfast reap --explain --lease-ms 30000', 'what another setting would mean'],
  ])
}

function explain(flags: Flags): void {
  const config = configOf({ ...flags })
  const lines = flags.json ? [JSON.stringify(ladderFacts(config), null, 2)] : ladderTable(config)
  for (const line of lines) print(line)
}

async function reap(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const owners = await loadOwners(config)
  // it holds nothing but its lease, which runs out by itself: there is nothing to save by waiting
  const ending = listenForEnd({ hurriedBy: ['SIGINT', 'SIGTERM'], onHurry: () => process.exit(1) })
  const untilAsked = async (hf: Holdfast) => {
    const reaping = await hf.reap()
    const health = await startHealth(config, hf, (error) => complain(messageOf(error)))
    if (health.url) complain(`Health at ${health.url}/livez and /readyz.`)
    if (flags.json) print(JSON.stringify(ladderFacts(config)))
    if (!flags.json) tellLadder(config)
    await ending.asked
    await reaping.stop()
    await health.stop()
    complain('Stopped.')
  }
  await withClient(config, untilAsked, makeLog(config.logLevel), { owners })
}

function tellLadder(config: Config): void {
  complain('Reaping. A job whose worker is lost moves again within:')
  for (const line of ladderLines(config)) complain(`  ${line}`)
}
