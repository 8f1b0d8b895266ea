import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { makeLog } from '../engine/log.ts'
import { messageOf } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf, healthFlags } from './flags.ts'
import { ladderFacts, ladderLines, ladderSettings, ladderTable } from './format-ladder.ts'
import { startHealth } from './health.ts'
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
    .description('Run a reaper without a worker. It recovers jobs that lost their workers, as leader or standby.')
    .option('--explain', 'Print how soon a lost job is recovered, rung by rung, and exit. Needs no database.')
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
    ['holdfast reap', 'next to your workers, or while all of them are down'],
    ['holdfast reap --explain', 'the recovery bound with the current settings'],
    ['holdfast reap --explain --lease-ms 30000', 'the recovery bound with another setting'],
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
  // it holds nothing but its lease, which runs out anyway, so there is nothing to wait for
  const ending = listenForEnd({ hurriedBy: ['SIGINT', 'SIGTERM'], onHurry: () => process.exit(1) })
  const untilAsked = async (hf: Holdfast) => {
    const reaping = await hf.reap()
    const health = await startHealth(config, hf, (error) => complain(messageOf(error)))
    if (health.url) complain(`Health checks at ${health.url}/livez and /readyz.`)
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
  complain('Reaper started. A job that loses its worker is recovered within:')
  for (const line of ladderLines(config)) complain(`  ${line}`)
}
