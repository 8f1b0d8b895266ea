/**
 * Gates: how limits and fairness hold jobs back.
 *
 * A job to which a limit or fairness applies has a gate key in its row in `ready`. Jobs with the same queue, kind and gate key wait at one
 * gate, a row. Jobs without a gate key are claimed as if there were no gates, and no gate is ever looked at for them.
 *
 * The invariant: the open bits of the leases with a gate's key never exceed the limit that applied when the last of them was claimed. Nothing
 * counts holders: the leases are counted. So there is no counter that a crash could leave wrong; a settle, revive, cancel or release frees a
 * slot by what it writes anyway.
 * It holds because a lease with a gate key is created only by a claim that has locked the row of the gate (or the row of the limiter, for a
 * limit on all jobs of a kind or queue), and has counted in a statement that began after it had the lock. The claim is a plpgsql function,
 * in which each statement has its own snapshot: it sees every lease of whoever held the lock before, since locks are released after the
 * commit. That needs `read committed`; the function refuses to run under any other isolation level.
 *
 * The second invariant: a gate at which a due job waits and that has a free slot is open, or has a hint, or opens by itself at `next_at`.
 * Only the holder of the gate's lock closes it, and deletes its hints, so many at a time. A claim that leaves jobs because of their size leaves
 * their gate open. Without workers, hints would pile up; the leader then collects them as a claim does.
 *
 * What can meet, and what the second one finds:
 * - claim against claim, same gate: the second one skips the locked row, says that it did, and its worker looks again in a moment. Nothing
 *   ever waits for a gate. The same holds for the row of a limiter.
 * - claim against settle (finish, retry, advance, fail, release, revive, cancel): the count may miss bits that are being set, and find the gate
 *   full. The claim closes the gate. The settle's hint is committed with its bits: if a claim finds the hint, its count, which comes later,
 *   sees the bits; if not, the hint stays for the next one. So a hint is deleted only before the count, and a settle waits for nobody.
 * - claim against submit (or anything that queues a job): the same, with the row in `ready` in place of the bits. The claim closes an empty
 *   gate after it has looked for jobs in a statement that began after it deleted the hints.
 * - claim against a change of a queued job (a signal that makes it due, a new time or priority): the same. Whatever updates the row in `ready`
 *   leaves a hint, because the gate may be closed until the time at which the job was due before.
 * - claim against cancel of a queued job: one of them gets the row in `ready`. The claim has locked it before it counts it as let through.
 * - claim against a job that can't be claimed: the whole claim fails and is undone, gates, tokens and hints included. The jobs that it picked
 *   are tried apart, past their gates, in claims that are never committed, and those to blame are postponed: src/worker/unclaimable.ts. A kind
 *   with more of them than that, or with a gate that can't be read or written, is claimed apart from all others.
 * - claim against RateLimited: the hint that holds a gate back is read again after the gate is locked, because the claim may have looked at
 *   hints while another one still held the gate.
 * - claim against the end of its session, or an answer that is lost: the slots are held by a lease like any other, until it is revived or
 *   released. The limit is never exceeded by that; it is underused until then.
 * - claim against a change of the limit: the claim goes by the limit that it read after it had locked the gate. A lower limit takes nobody's
 *   lease away; the gate stays closed until fewer hold one. A change leaves a hint at every gate, so a higher one takes effect at once.
 *   A gate that was added meanwhile, by a claim that read the earlier limit, gets its hint when the change counts as adopted.
 * - a limit that is set while the ordinary claim runs: a claim whose snapshot is older takes jobs as before; they are counted from the moment
 *   at which their leases get a gate key. Jobs queued by transactions that are older than the limit have no gate key, and the ordinary claim
 *   leaves them alone from then on: see gate-adoption.sql.ts.
 * - two claims that add the same gate: one waits for the other to commit, and finds its row. Gates are added in the order of their keys, by
 *   claims that hold no lock yet, so that they can't deadlock.
 * - a gate that is removed because nobody has used it for long, against a hint: the hint stays, and the next claim adds the gate again.
 * - a lost notification: polling finds the hint.
 * - a stranger that locks a gate, or a limiter, for hours: its jobs wait, and no others do. Workers that find it locked look again now and then.
 *
 * What is left to the reaper: a gate that is closed although it should not be, which only a write by hand or a restore can cause.
 *
 * A zombie, that is, a process that ignores that it lost its lease, may still be executing while its successor runs. The limit is on leases.
 */
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** The tags of all limiters. */
export const tags = 'array(select limiter.tag from holdfast.limiter)'

/** Whether a limiter applies to a row with a queue and a kind. The tags are read once per statement. */
export function isGated(lane: string): Sql {
  return raw(`(array['k' || ${lane}.kind, 'q' || ${lane}.queue, 'f' || ${lane}.queue] && ${tags})`)
}

/** The gate key of a job that is being queued: its tenant in a fair queue, a space, and the key of its limit; null if nothing applies to it. */
export function gateKeyOf(job: string): Sql {
  return raw(`case when array['f' || ${job}.queue] && ${tags} then ${job}.tenant || ' ' || coalesce(${job}.limit_key, '')
      when array['k' || ${job}.kind, 'q' || ${job}.queue] && ${tags} then ' ' || coalesce(${job}.limit_key, '') end`)
}

/** Leaves a hint when a job is queued at a gate or changes there, or leaves a lease that came through one. */
export const hintDefinitions = [
  statement<never>()(
    'define.hint_queued',
    () => sql`
    create or replace function holdfast.hint_queued() returns trigger language plpgsql as $$
    declare
      mark constant text := concat_ws(' ', pg_current_xact_id(), new.queue, new.kind, new.gate_key);
    begin
      -- a bulk submit at one gate needs one hint; nobody else sees it before it commits, so it can't be gone
      if current_setting('holdfast.hinted', true) is distinct from mark then
        insert into holdfast.gate_hint (queue, kind, key) values (new.queue, new.kind, new.gate_key) on conflict do nothing;
        perform set_config('holdfast.hinted', mark, true);
      end if;
      return null;
    end $$`,
  ),
  statement<never>()(
    'define.ready_hints',
    () => sql`
    create or replace trigger ready_hints after insert or update on holdfast.ready for each row when (new.gate_key is not null)
    execute function holdfast.hint_queued()`,
  ),
  statement<never>()(
    'define.hint_left',
    () => sql`
    create or replace function holdfast.hint_left() returns trigger language plpgsql as $$
    begin
      insert into holdfast.gate_hint (queue, kind, key) values (old.queue, old.kind, old.gate_key) on conflict do nothing;
      -- whoever frees a slot takes the next job, unless it is busy and another worker is idle
      if exists (select from holdfast.session where wants_wake and ended_at is null) and pg_notification_queue_usage() < 0.5 then
        perform pg_notify('holdfast_wake', '');
      end if;
      return null;
    end $$`,
  ),
  statement<never>()(
    'define.lease_hints',
    () => sql`
    create or replace trigger lease_hints after update of done or delete on holdfast.lease for each row when (old.gate_key is not null)
    execute function holdfast.hint_left()`,
  ),
]

/** Settings of all functions of gates: their plans must not depend on statistics. */
export const steady = raw('set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off')

/**
 * Whether the row `job` of `ready` waits at a gate with this priority, due in this range. To be used with the order of the gates' index. As a
 * comparison of rows it fits no other index: if it named the columns one by one, the planner might walk over a whole kind for one gate.
 */
export function isAtGate(p: { key: string; priority: string; until: string }): Sql {
  const columns = '(job.gate_key, job.priority, job.run_at)'
  return raw(`job.gate_key is not null and ${columns} >= (${p.key}, ${p.priority}::smallint, '-infinity'::timestamptz)
            and ${columns} <= (${p.key}, ${p.priority}::smallint, ${p.until}::timestamptz)`)
}

/** The order of the gates' index. */
export const inGateOrder = raw('job.queue, job.kind, job.gate_key, job.priority, job.run_at')

/** Whether a gate key belongs to a tenant: its name comes before the space. No tenant: that of a queue that is not fair. Keys of one tenant are next to each other. */
export function isOfTenant(key: string, tenant: string): Sql {
  return raw(`${key} >= ${tenant} || ' ' and ${key} < ${tenant} || '!'`)
}
