import { eventually } from '../deadline.ts'
import type { ScheduleOrder } from '../orders.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { breakSchedule, leaveOldSlots, makeDue, openSchedules, wrongSlots } from './schedules.sql.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** Schedules that tick while everything breaks. */
export const schedules: Scenario = {
  name: 'schedules',
  provokes:
    'slots that come due, overlap, wait, replace, are missed, paused, triggered and backfilled; a slot that cannot be decided',
  owns: [
    'schedule.due',
    'schedule.tick',
    'schedule.look',
    'schedule.set',
    'schedule.declared',
    'schedule.undeclare',
    'slot.forget',
  ],
  async run(context) {
    await context.ask(leaveOldSlots, {})
    await startSubmitterAndWorkers(context)
    await Promise.all(
      context.shuffled([plain, broken, buffered, replacing, paused, removed]).map((step) => step(context)),
    )
    await untilAllDecided(context)
    for (const { problem } of await context.ask(wrongSlots, {})) context.problems.push(problem)
  },
}

async function order(context: ScenarioContext, wanted: Omit<ScheduleOrder, 'do'>): Promise<void> {
  const answer = await context.processes.order({ do: 'schedule', ...wanted })
  if (!answer.isDone) throw new Error(`An order about the schedule ${wanted.name} was refused: ${answer.message}`)
}

async function plain(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'plain', act: 'set', overlap: 'allow', slots: 3 })
  await order(context, { name: 'plain', act: 'read' })
  await order(context, { name: 'plain', act: 'backfill' })
}

/** It can't be decided until somebody mends it. */
async function broken(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'broken', act: 'set', overlap: 'skip' })
  await context.ask(breakSchedule, { name: 'broken', cron: 'nonsense' })
  await context.ask(makeDue, { name: 'broken' })
  await context.untilSent('schedule.fail', waitMs)
  await order(context, { name: 'broken', act: 'set', overlap: 'skip' })
}

async function buffered(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'buffered', act: 'set', overlap: 'buffer', kind: 'lengthy', slots: 3 })
}

async function replacing(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'replacing', act: 'set', overlap: 'cancel', kind: 'replaceable', slots: 3 })
}

async function paused(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'paused', act: 'set', overlap: 'skip' })
  await order(context, { name: 'paused', act: 'pause' })
  await context.ask(makeDue, { name: 'paused' })
  await order(context, { name: 'paused', act: 'trigger' })
  await order(context, { name: 'paused', act: 'resume' })
}

async function removed(context: ScenarioContext): Promise<void> {
  await order(context, { name: 'removed', act: 'set', overlap: 'skip' })
  await order(context, { name: 'removed', act: 'remove' })
}

async function untilAllDecided({ ask }: ScenarioContext): Promise<void> {
  await eventually(async () => (await ask(openSchedules, {})).every(({ is_open }) => !is_open), {
    ms: waitMs,
    what: 'all slots were decided, and old ones removed',
  })
}
