import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  reason?: string
  json?: true
}

type Who = { by: string; reason?: string }

/** Adds `holdfast pause <queue>`. */
export function addPause(program: Command): void {
  addSwitch(program, {
    name: 'pause',
    about: 'Pause a queue: workers stop claiming its jobs, and running jobs continue.',
    example: ['holdfast pause imports --reason "the API is down"', '`why` and `top` show who paused it, and why'],
    isPaused: true,
    act: (hf, queue, who) => hf.pauseQueue(queue, who),
  })
}

/** Adds `holdfast resume <queue>`. */
export function addResume(program: Command): void {
  addSwitch(program, {
    name: 'resume',
    about: 'Resume a paused queue.',
    example: ['holdfast resume imports --reason "the API is back"', 'workers claim its jobs again'],
    isPaused: false,
    act: (hf, queue, who) => hf.resumeQueue(queue, who),
  })
}

interface Switch {
  name: string
  about: string
  example: readonly [string, string]
  isPaused: boolean
  act: (hf: Holdfast, queue: string, who: Who) => Promise<void>
}

function addSwitch(program: Command, { name, about, example, isPaused, act }: Switch): void {
  const command = program
    .command(name)
    .description(about)
    .argument('<queue>', 'Name of the queue.')
    .option('--reason <text>', 'Reason, recorded with who did it.')
    .action(async (queue: string, { reason, ...flags }: Flags) => {
      const who = { by: whoAmI(), ...(reason !== undefined && { reason }) }
      await withClient(configOf({ ...flags }), (hf) => act(hf, queue, who))
      if (flags.json) return print(JSON.stringify({ name: queue, isPaused, ...who }))
      print(`${queue}  ${paint(isPaused ? 'yellow' : 'green', isPaused ? 'paused' : 'resumed')}`)
    })
  addSettings(addJson(command), clientSettings)
  addExamples(command, [example])
}
