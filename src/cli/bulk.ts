import type { Command } from 'commander'
import { allBulkOperations } from '../bulk/operations.ts'
import { addBulkList, addBulkShow, addBulkStop } from './bulk-show.ts'
import { addBulkStart } from './bulk-start.ts'
import { addExamples } from './flags.ts'

/** Adds `holdfast bulk` with its commands. */
export function addBulk(program: Command): void {
  const bulk = program.command('bulk').description('Change many jobs at once, in the background.')
  for (const operation of allBulkOperations) addBulkStart(bulk, operation)
  for (const add of [addBulkList, addBulkShow, addBulkStop]) add(bulk)
  addExamples(bulk, [
    ['holdfast bulk redo --kind extract --error timeout --dry-run', 'how many jobs would run again'],
    ['holdfast bulk cancel --queue imports --reason "wrong file"', 'cancel a queue full of jobs'],
    ['holdfast bulk list', 'what is under way'],
  ])
}
