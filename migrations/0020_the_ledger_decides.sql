-- The items of a fan-out are the ledger, and it has the last word before a join or a stop: the counters of a barrier may come from a
-- backup, or from a hand. These are volatile, so that each call has a snapshot of its own. Whoever calls them holds the barrier's row,
-- and so sees every settle that was counted before; the snapshot of its statement may be older than the wait for that row.

-- Whether no item of a barrier is left to wait for.
create function holdfast.barrier_drained(barrier uuid) returns boolean language plpgsql volatile set enable_seqscan = off as $$
begin
  return not exists (select from holdfast.live_job as item where item.barrier_id = barrier);
end $$;

-- How many items of a barrier ended otherwise than well.
create function holdfast.barrier_flaws(barrier uuid) returns int language plpgsql volatile set enable_seqscan = off as $$
begin
  return (select count(*) from holdfast.finished_job as item where item.barrier_id = barrier and item.state in ('failed', 'cancelled'));
end $$;

-- How the items of a barrier stand.
create function holdfast.barrier_ledger(barrier uuid, out live int, out succeeded int, out failed int, out cancelled int)
language plpgsql volatile set enable_seqscan = off as $$
begin
  select (select count(*) from holdfast.live_job as item where item.barrier_id = barrier),
    count(*) filter (where item.state in ('succeeded', 'partial')), count(*) filter (where item.state = 'failed'),
    count(*) filter (where item.state = 'cancelled')
  into live, succeeded, failed, cancelled
  from holdfast.finished_job as item
  where item.barrier_id = barrier;
end $$;
