import type { Command } from 'commander'
import { addExamples } from './flags.ts'
import { addBackfill, addPause, addRemove, addResume, addTrigger } from './schedules-act.ts'
import { addHistory, addList, addPreview, addShow } from './schedules-list.ts'
import { addSet } from './schedules-set.ts'

const commands = [
  addSet,
  addList,
  addShow,
  addPreview,
  addHistory,
  addPause,
  addResume,
  addTrigger,
  addBackfill,
  addRemove,
]

/** Adds `holdfast schedules` with its commands. */
export function addSchedules(program: Command): void {
  const schedules = program.command('schedules').description('Manage schedules and see what became of their slots.')
  for (const add of commands) add(schedules)
  addExamples(schedules, [
    ['holdfast schedules set nightly report --cron "0 3 * * *" --tz Europe/Berlin', 'every night'],
    ['holdfast schedules list', 'all schedules, with their next slot'],
    ['holdfast schedules history nightly', 'what became of its slots'],
  ])
}
