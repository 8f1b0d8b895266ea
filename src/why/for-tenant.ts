import { type Facts, type GroupFacts, isBehind } from './facts.ts'
import type { OneLimitFacts } from './limit-facts.ts'

/**
 * The facts that a tenant may see: nothing about the machines that serve all tenants, and nothing about other tenants. Counts and positions in
 * the log grow with what others do, so they are hidden too.
 */
export function forTenant(facts: Facts): Facts {
  const { ahead: _ahead, oldestSnapshot: _snapshot, ...rest } = facts
  return {
    ...rest,
    session: facts.session && without(facts.session, ['host', 'pid', 'version', 'concurrency']),
    queue: without(facts.queue, ['pausedBy', 'reason']),
    workers: facts.workers && without(facts.workers, ['holding', 'busy', 'unresponsive', 'blocked', 'blockedMs']),
    ...(facts.unresponsive && { unresponsive: facts.unresponsive.map((one) => without(one, ['host', 'pid'])) }),
    ...(facts.limit && { limit: { ...facts.limit, limits: facts.limit.limits.map(limitForTenant) } }),
    leader: facts.leader && without(facts.leader, ['holder', 'sweepMs']),
    oldestWriter: facts.oldestWriter && { since: facts.oldestWriter.since },
    events: facts.events.map((event) => without(event, ['seq'])),
    groups: facts.groups.filter(({ name }) => name === 'webhooks').map(groupForTenant),
  }
}

/** Whose jobs hold the slots, and how many more than the limit allows, is about other tenants too. */
function limitForTenant(limit: OneLimitFacts): OneLimitFacts {
  return { ...without(limit, ['holders']), holding: Math.min(limit.holding, limit.concurrency ?? 0) }
}

/** What currently fails in the group, and when it last moved, may be about another tenant's event. */
function groupForTenant(group: GroupFacts): GroupFacts {
  const hidden = ['seq', 'wantedSeq', 'failingSeq', 'failures', 'error', 'movedAt']
  return { ...without(group, hidden), isBehind: isBehind(group) }
}

function without<T extends object>(whole: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name))) as T
}
