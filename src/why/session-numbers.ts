import type { Facts } from './facts.ts'

/**
 * Numbers the sessions in the facts about one job from 1, in the order in which they were opened. Session ids count the sessions of all
 * tenants, and would tell one tenant how many workers others start.
 */
export function withOwnNumbers(all: readonly Facts[]): (facts: Facts) => Facts {
  const ids = [...new Set(all.flatMap(sessionsIn))].sort((a, b) => a - b)
  const numbers = new Map(ids.map((id, index) => [id, index + 1]))
  const numberOf = <Id extends number | null>(id: Id) => (id === null ? id : numbers.get(id)) as Id
  const renumbered = <T extends { sessionId: number | null }>(one: T): T => ({
    ...one,
    sessionId: numberOf(one.sessionId),
  })
  return (facts) => ({
    ...facts,
    job: facts.job && renumbered(facts.job),
    session: facts.session && { ...facts.session, id: numberOf(facts.session.id) },
    events: facts.events.map(renumbered),
    refusals: facts.refusals.map(renumbered),
    ...(facts.unresponsive && { unresponsive: facts.unresponsive.map(renumbered) }),
  })
}

function sessionsIn({ job, session, events, refusals, unresponsive = [] }: Facts): number[] {
  const named = [job, ...events, ...refusals, ...unresponsive].map((one) => one?.sessionId)
  return [session?.id, ...named].filter((id) => id != null)
}
