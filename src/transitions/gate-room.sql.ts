import { sql, statement } from '../postgres/sql.ts'
import { steady } from './gates.sql.ts'

/** The tokens of a bucket now: it refills steadily, up to a full one. */
const tokensNow = sql`
    create or replace function holdfast.tokens_now(tokens double precision, refilled_at timestamptz, rate int, rate_ms double precision)
    returns double precision language sql stable as $$
      select least(rate, coalesce(tokens + greatest(0, extract(epoch from now() - refilled_at)) * 1000 * rate / rate_ms, rate))
    $$`

/**
 * How many jobs a limiter lets through now: null for any number, 0 also if another claim holds it. Locks it, then counts. \`tokens\` are those
 * that it has now, and \`token_ms\` is the time between two of them.
 */
const limiterRoom = sql`
    create or replace function holdfast.limiter_room(in_scope text, in_name text, out room int, out tokens double precision, out token_ms double precision, out is_busy boolean)
    language plpgsql ${steady} as $$
    declare
      own holdfast.limiter;
      bucket holdfast.limiter_bucket;
      held bigint;
    begin
      is_busy := false;
      if not exists (
        select from holdfast.limiter where limiter.scope = in_scope and limiter.name = in_name and (limiter.concurrency is not null or limiter.rate is not null)
      ) then
        return;
      end if;
      select * into own from holdfast.limiter where limiter.scope = in_scope and limiter.name = in_name for no key update skip locked;
      if not found then
        is_busy := true;
        room := 0;
        return;
      end if;
      if own.concurrency is not null and in_scope = 'kind' then
        select sum(length(lease.done) - bit_count(lease.done)) into held from holdfast.lease where lease.kind = in_name and lease.gate_key is not null;
      elsif own.concurrency is not null then
        select sum(length(lease.done) - bit_count(lease.done)) into held from holdfast.lease where lease.queue = in_name and lease.gate_key is not null;
      end if;
      -- greatest() would make 0 of no limit
      room := case when own.concurrency is not null then greatest(0, own.concurrency - coalesce(held, 0)) end;
      if own.rate is not null then
        select * into bucket from holdfast.limiter_bucket as one where one.scope = in_scope and one.name = in_name and one.changed_txid = own.changed_txid;
        tokens := holdfast.tokens_now(bucket.tokens, bucket.refilled_at, own.rate, own.rate_ms);
        token_ms := own.rate_ms / own.rate;
        room := least(room, floor(tokens)::int);
      end if;
    end $$`

/** Writes how many tokens a limiter has left. The caller has locked the limiter, so nobody else writes them. */
const spendTokens = sql`
    create or replace function holdfast.spend_tokens(in_scope text, in_name text, in_left double precision) returns void language plpgsql ${steady} as $$
    begin
      insert into holdfast.limiter_bucket as one (scope, name, changed_txid, tokens, refilled_at)
      select limiter.scope, limiter.name, limiter.changed_txid, in_left, now() from holdfast.limiter where limiter.scope = in_scope and limiter.name = in_name
      on conflict (scope, name) do update set changed_txid = excluded.changed_txid, tokens = excluded.tokens, refilled_at = excluded.refilled_at;
    end $$`

/**
 * What a gate lets through, by the limit of its key: so many slots and tokens; null for any number. The caller has locked the gate, and calls
 * this in a statement of its own, so the leases are counted after the lock.
 */
const gateRoom = sql`
    create or replace function holdfast.gate_room(own holdfast.gate, out slots int, out tokens double precision, out token_ms double precision)
    language plpgsql ${steady} as $$
    declare
      most record;
    begin
      select coalesce(one.concurrency, every.key_concurrency) as concurrency, coalesce(one.rate, every.key_rate) as rate, coalesce(one.rate_ms, every.key_rate_ms) as rate_ms
      into most
      from (select 1) as once
      left join holdfast.limiter as every on every.scope = 'kind' and every.name = own.kind
      left join holdfast.key_limit as one on one.kind = own.kind and one.key = substr(own.key, strpos(own.key, ' ') + 1);
      if most.concurrency is not null then
        slots := greatest(0, most.concurrency - coalesce((
          -- as a comparison of rows, it fits no index but that of gates
          select sum(length(lease.done) - bit_count(lease.done)) from holdfast.lease
          where lease.gate_key is not null and (lease.kind, lease.queue, lease.gate_key) >= (own.kind, own.queue, own.key)
            and (lease.kind, lease.queue, lease.gate_key) <= (own.kind, own.queue, own.key)
        ), 0));
      end if;
      if most.rate is not null then
        tokens := holdfast.tokens_now(own.tokens, own.refilled_at, most.rate, most.rate_ms);
        token_ms := most.rate_ms / most.rate;
      end if;
    end $$`

/**
 * Whether a job at this gate could run as far as concurrency goes: a look without locks, to decide whether something is worth trying. The limits
 * of its key, its kind and its queue count.
 */
const hasRoom = sql`
    create or replace function holdfast.has_room(in_queue text, in_kind text, in_key text) returns boolean language plpgsql stable ${steady} as $$
    declare
      own holdfast.gate;
      slots int;
    begin
      select * into own from holdfast.gate where gate.queue = in_queue and gate.kind = in_kind and gate.key = in_key;
      own.queue := in_queue;
      own.kind := in_kind;
      own.key := in_key;
      select room.slots into slots from holdfast.gate_room(own) as room;
      if slots <= 0 or own.held_until > now() then
        return false;
      end if;
      return coalesce((
          select limiter.concurrency from holdfast.limiter where limiter.scope = 'kind' and limiter.name = in_kind
        ) > (
          select coalesce(sum(length(lease.done) - bit_count(lease.done)), 0) from holdfast.lease where lease.kind = in_kind and lease.gate_key is not null
        ), true)
        and coalesce((
          select limiter.concurrency from holdfast.limiter where limiter.scope = 'queue' and limiter.name = in_queue
        ) > (
          select coalesce(sum(length(lease.done) - bit_count(lease.done)), 0) from holdfast.lease where lease.queue = in_queue and lease.gate_key is not null
        ), true);
    end $$`

/** Defines how many jobs limits let through. */
export const gateRoomDefinitions = [
  statement<never>()('define.tokens_now', () => tokensNow),
  statement<never>()('define.limiter_room', () => limiterRoom),
  statement<never>()('define.spend_tokens', () => spendTokens),
  statement<never>()('define.gate_room', () => gateRoom),
  statement<never>()('define.has_room', () => hasRoom),
]
