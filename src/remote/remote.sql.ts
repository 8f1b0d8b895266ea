import { eventOf, raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { tellingAll } from '../transitions/claim.sql.ts'
import { isNoSuspect, isSuspect } from '../transitions/suspect.sql.ts'
import { type Claim, claimThose, type HeldRow } from '../worker/claim.sql.ts'
import type { GatedClaim } from '../worker/gated-claim.sql.ts'
import { type Kinds, seeingKinds, writeKinds } from '../worker/kind.sql.ts'
import type { StoredRemote } from './kinds.ts'

/** The session of a remote worker, as any server finds it. */
export interface RemoteRow {
  id: number
  remote: StoredRemote
  owner: string | null
  tenant: string | null
  wants_wake: boolean
  is_ended: boolean
}

/** Finds the session of a remote worker; sessions of other workers are not found. */
export const findRemote = statement<RemoteRow>()(
  'session.find_remote',
  (p: { id: number }) => sql`
  select id, remote, owner, tenant, wants_wake, ended_at is not null as is_ended
  from holdfast.session
  where id = ${p.id} and remote is not null`,
)

/** A session of a remote worker to open. */
export interface NewRemote {
  pid: number
  host: string
  version: string
  kinds: string[]
  queues: string[]
  concurrency: number
  leaseMs: number
  /** Its kinds with their rules, as JSON. */
  remote: string
  owner: string | null
  /** The id of the owner if it is an API key. */
  keyId: string | null
  tenant: string | null
  /** How many sessions the tenant may have. */
  most: number
}

/**
 * Opens the session of a remote worker, unless its tenant has too many, or its key is no longer valid: a server may have accepted the key just
 * after it was revoked. Without an id, no session was opened.
 */
export const openRemote = statement<{ is_key_refused: boolean; id: number | null; lease_until: Date | null }>()(
  'session.open_remote',
  (p: NewRemote) => sql`
  with refused as materialized (
    select from holdfast.api_key where id = ${p.keyId}::uuid and (revoked_at is not null or expires_at <= now())
  ),
  held as materialized (
    select from holdfast.session where tenant = ${p.tenant}::text and ended_at is null limit ${p.most}
  ),
  opened as (
    insert into holdfast.session (pid, host, version, kinds, queues, concurrency, lease_until, lost_after, remote, owner, tenant)
    select ${p.pid}::int, ${p.host}::text, ${p.version}::text, ${p.kinds}::text[], ${p.queues}::text[], ${p.concurrency}::int,
      now() + ${p.leaseMs}::float8 * interval '1 ms', ${p.leaseMs}::float8 * interval '1 ms', ${p.remote}::json, ${p.owner}::text,
      ${p.tenant}::text
    where not exists (select from refused) and (select count(*) from held) < ${p.most}::int
    returning id, lease_until
  )
  select exists (select from refused) as is_key_refused, opened.id, opened.lease_until
  from (values (1)) as once (n)
  left join opened on true`,
)

/** Ends the sessions of an owner whose key was revoked. */
export const endOwned = statement<{ id: number }>()(
  'session.end_owned',
  (p: { owner: string }) => sql`
  update holdfast.session
  set ended_at = now(), ended_by = 'key revoked', wants_wake = false
  where owner = ${p.owner} and ended_at is null
  returning id`,
)

/** Locks a session, so that nothing else claims suspects for it until the transaction ends. */
export const holdSession = statement<{ id: number }>()(
  'session.hold',
  (p: { id: number }) => sql`
  select id
  from holdfast.session
  where id = ${p.id} and ended_at is null
  for no key update`,
)

/** A job claimed by a remote worker. */
export interface RemoteClaimedRow extends HeldRow {
  kind: string
  queue: string
  tenant: string
  stage: number
  failures: number
  crashes: number
  priority: number
  submitted_at: Date
  deadline_at: Date
  input: string | null
  outputs: string | null
  trace: string | null
}

/** What a claim for a remote worker asks for. */
export interface RemoteClaim extends Claim {
  /** Null: of any tenant. */
  tenant: string | null
}

/**
 * What a remote worker may claim: no job of another tenant, and no item that runs a part of its parent's kind. Once its lease has run out or
 * its session has ended it may claim nothing, because the jobs would be taken back before they start, and count as lost; it must send a
 * heartbeat first.
 */
const isForRemote = (p: RemoteClaim): Sql =>
  sql`not job.is_part and (${p.tenant}::text is null or job.tenant = ${p.tenant}::text)
          and exists (select from holdfast.session where id = ${p.sessionId}::bigint and ended_at is null and lease_until > now())`

const inRows = (p: RemoteClaim) => sql`
  select id, kind, queue, tenant, stage, attempt, failures, crashes, priority, submitted_at, deadline_at, coalesce(input, own_input)::text as input, outputs, trace,
    ${p.sessionId}::bigint as session_id, lease_id, slot, lease_size as size
  from told`

const holds = (p: RemoteClaim, which: Sql) => sql`exists (
            select
            from (
              select running.crashes, own.crash_budget
              from holdfast.running
              join holdfast.job as own on own.id = running.job_id
              where running.session_id = ${p.sessionId}::bigint
            ) as job
            where ${which}
          )`

/** Claims jobs for a remote worker, unless it holds a suspect or drains for one. */
export const claimForRemote = statement<RemoteClaimedRow>()('job.claim_remote', (p: RemoteClaim) =>
  claimThose(
    p,
    sql`${isNoSuspect} and ${isForRemote(p)} and not ${holds(p, isSuspect)}
          and not exists (select from holdfast.drain where session_id = ${p.sessionId}::bigint)`,
    { ...tellingAll, answer: inRows(p) },
  ),
)

/** Claims a suspect for a remote worker that holds nothing. */
export const claimSuspectForRemote = statement<RemoteClaimedRow>()('job.claim_remote_suspect', (p: RemoteClaim) =>
  claimThose(p, sql`${isSuspect} and ${isForRemote(p)} and not ${holds(p, raw('true'))}`, {
    ...tellingAll,
    answer: inRows(p),
  }),
)

/** Claims jobs for a remote worker through their gates: see src/transitions/gates.sql.ts. The last row, without an id, is about the look itself. */
export const claimGatedForRemote = statement<RemoteClaimedRow | { id: null; size: number; kind: string }>()(
  'job.claim_remote_gated',
  (p: GatedClaim & { tenant: string | null }) => sql`
  select *
  from holdfast.claim_gated_remote(${p.sessionId}::bigint, ${p.lanes.map(({ queue }) => queue)}::text[], ${p.lanes.map(({ kind }) => kind)}::text[],
    ${p.lanes.map(({ stageCount }) => stageCount)}::smallint[], ${p.most}::int, ${p.mostBytes}::float8, ${p.deadlinesMs}::jsonb, ${p.tenant}::text,
    ${p.isSuspect}::boolean, ${p.after}::text)`,
)

/** Attempts, each with the session that says it holds it: three lists in the same order. */
export interface Claimed {
  ids: string[]
  attempts: number[]
  sessionIds: number[]
}

const claimed = (p: Claimed) =>
  sql`unnest(${p.ids}::uuid[], ${p.attempts}::int[], ${p.sessionIds}::bigint[]) as mine (id, attempt, session_id)`

/** An attempt that a session holds. */
export interface HeldRemoteRow extends HeldRow {
  kind: string
  stage: number
  failures: number
}

/**
 * Which of these attempts their sessions hold. An attempt belongs to one session from its claim to its end, so the holder can write about it
 * with its fence alone: if it has lost the attempt by then, the fence refuses the write.
 */
export const heldAttempts = statement<HeldRemoteRow>()(
  'attempt.held',
  (p: Claimed) => sql`
  with mine as materialized (select * from ${claimed(p)}),
  held as materialized (
    select running.*
    from holdfast.running
    where running.session_id = any(array(select session_id from mine))
  )
  select held.job_id as id, held.attempt, held.session_id, held.kind, held.stage, held.failures, held.lease_id, held.slot, held.size
  from held
  where (held.job_id, held.attempt, held.session_id) in (select id, attempt, session_id from mine)`,
)

/** Stands for the event of an attempt that succeeded, but whose output could not be stored. */
export const outputRefused = 'output refused'
const outputErrors = ['output_invalid', 'output_too_large']

/**
 * What is known about attempts that their sessions do not hold: the events that these sessions have written about them, because the answer
 * to an earlier settle may have been lost. Jobs that the tenant of the session can't see are left out.
 */
export const earlierWrites = statement<{ id: string; attempt: number; session_id: number; types: string[] }>()(
  'attempt.earlier',
  (p: Claimed) => sql`
  select mine.id, mine.attempt, mine.session_id, array(
    select case when event.type <> ${eventOf('fail')} then event.type
      when event.data ->> 'code' = any(${outputErrors}::text[]) then ${outputRefused} else event.type end
    from holdfast.event
    where event.job_id = mine.id and event.attempt = mine.attempt and event.session_id = mine.session_id
  ) as types
  from ${claimed(p)}
  join holdfast.session on session.id = mine.session_id
  join holdfast.job on job.id = mine.id
  where session.tenant is null or session.tenant = job.tenant`,
)

/** Which of these attempts a session has lost, each with the final state of its job, if that attempt was its last. */
export const lostByRemote = statement<{ id: string; attempt: number; state: string | null }>()(
  'attempt.lost_remote',
  (p: { sessionId: number; tenant: string | null; ids: string[]; attempts: number[] }) => sql`
  with held as materialized (
    select running.job_id, running.attempt
    from holdfast.running
    where running.session_id = ${p.sessionId}::bigint
  )
  select mine.id, mine.attempt, (
      select outcome.state
      from holdfast.outcome
      join holdfast.job on job.id = outcome.job_id
      where outcome.job_id = mine.id and outcome.attempt = mine.attempt and (${p.tenant}::text is null or job.tenant = ${p.tenant}::text)
    ) as state
  from unnest(${p.ids}::uuid[], ${p.attempts}::int[]) as mine (id, attempt)
  where (mine.id, mine.attempt) not in (select job_id, attempt from held)`,
)

/** Attempts of a session that its worker does not know of, although they were claimed so long ago that the answer must have been lost. */
export const forgottenAttempts = statement<HeldRow>()(
  'attempt.forgotten',
  (p: { sessionId: number; ids: string[]; attempts: number[]; olderThanMs: number }) => sql`
  select running.job_id as id, running.attempt, running.session_id, running.lease_id, running.slot, running.size
  from holdfast.running
  where running.session_id = ${p.sessionId}::bigint and running.claimed_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    and (running.job_id, running.attempt) not in (select id, attempt from unnest(${p.ids}::uuid[], ${p.attempts}::int[]) as known (id, attempt))`,
)

/**
 * Registers kinds that a tenant's own worker handles, unless the tenant would exceed its limit. They apply to the jobs of that tenant only.
 */
export const introduceKinds = statement<{ is_allowed: boolean }>()(
  'kind.introduce',
  (p: Kinds & { most: number }) => sql`
  with told as materialized (
    select count(*) <= ${p.most}::int as is_allowed
    from (select name from holdfast.kind where tenant = ${p.tenant} union select unnest(${p.names}::text[])) as known
  ),
  ${seeingKinds(p)},
  written as (${writeKinds(p, raw('(select is_allowed from told)'))})
  select is_allowed
  from told`,
)
