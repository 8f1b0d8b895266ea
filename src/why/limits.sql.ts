import { raw, type Sql, textOf } from '../postgres/sql.ts'
import { isGated } from '../transitions/gates.sql.ts'

const shown = 5
const key = `substr(ready.gate_key, strpos(ready.gate_key, ' ') + 1)`

/** Who holds the slots of a limit, as members of an object. `which` is a condition on `lease`. */
const holders = (which: string) => `'holding', (
          select coalesce(sum(length(lease.done) - bit_count(lease.done)), 0) from holdfast.lease where lease.gate_key is not null and ${which}
        ), 'holders', (
          select coalesce(json_agg(one.holder), '[]') from (
            select json_build_object('id', running.job_id, 'sessionId', running.session_id, 'since', running.claimed_at) as holder
            from (select lease.id from holdfast.lease where lease.gate_key is not null and ${which} limit ${shown}) as own
            join holdfast.running on running.lease_id = own.id
            limit ${shown}
          ) as one
        )`

const ofLimiter = (scope: 'kind' | 'queue') => `
        select json_build_object('scope', '${scope}', 'name', limiter.name, 'key', null, 'concurrency', limiter.concurrency, 'rate', limiter.rate,
          'rateMs', limiter.rate_ms, 'tokens', case when limiter.rate is not null then
            holdfast.tokens_now(bucket.tokens, bucket.refilled_at, limiter.rate, limiter.rate_ms) end, ${holders(`lease.${scope} = limiter.name`)}) as told
        from holdfast.limiter
        left join holdfast.limiter_bucket as bucket on bucket.scope = limiter.scope and bucket.name = limiter.name and bucket.changed_txid = limiter.changed_txid
        where limiter.scope = '${scope}' and limiter.name = ready.${scope} and (limiter.concurrency is not null or limiter.rate is not null)`

/** The limits that apply to the row `job` if it is queued at a gate, with who holds their slots; null if it is not. */
export const limit: Sql = raw(`(
      select json_build_object('key', coalesce(${key}, ''), 'heldUntil', case when gate.held_until > now() then gate.held_until end,
        'hasGate', ready.gate_key is not null, 'isOpen', coalesce(gate.is_open or gate.next_at < 'infinity', false) or exists (
          select from holdfast.gate_hint as hint where hint.queue = ready.queue and hint.kind = ready.kind and hint.key = ready.gate_key
        ), 'limits', (
        select coalesce(json_agg(each.told), '[]') from (
          ${ofLimiter('kind')}
          union all ${ofLimiter('queue')}
          union all
          select json_build_object('scope', 'kind', 'name', limiter.name, 'key', ${key}, 'concurrency', coalesce(own.concurrency, limiter.key_concurrency),
            'rate', coalesce(own.rate, limiter.key_rate), 'rateMs', coalesce(own.rate_ms, limiter.key_rate_ms),
            'tokens', case when coalesce(own.rate, limiter.key_rate) is not null then
              holdfast.tokens_now(gate.tokens, gate.refilled_at, coalesce(own.rate, limiter.key_rate), coalesce(own.rate_ms, limiter.key_rate_ms)) end,
            ${holders('lease.kind = ready.kind and lease.queue = ready.queue and lease.gate_key = ready.gate_key')})
          from holdfast.limiter
          left join holdfast.key_limit as own on own.kind = limiter.name and own.key = ${key}
          where limiter.scope = 'kind' and limiter.name = ready.kind and (coalesce(own.concurrency, limiter.key_concurrency) is not null or coalesce(own.rate, limiter.key_rate) is not null)
        ) as each
      ))
      from holdfast.ready
      left join holdfast.gate on gate.queue = ready.queue and gate.kind = ready.kind and gate.key = ready.gate_key
      where ready.job_id = job.id and (ready.gate_key is not null or ${textOf(isGated('ready'))})
    )`)
