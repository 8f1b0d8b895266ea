-- A tenant's reads cost what the tenant has, however much others do, and every API key says who made it and who revoked it.

-- The tenant of those who know no tenants pays nothing, as with the jobs.
create index event_tenant on holdfast.event (tenant, seq) where tenant <> 'default';
create index delivery_tenant on holdfast.delivery (tenant, id) where tenant <> 'default';

-- The events of a tenant behind a place, at most so many. By its settings it can only walk the index above, in its order: a planner that takes
-- the tenant's events for few would read all of them and sort, and one that takes them for many would walk those of others.
create function holdfast.events_of_tenant(wanted text, behind bigint, up_to bigint, most int) returns setof holdfast.event
language plpgsql stable set enable_sort = off set enable_incremental_sort = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return query
    select event.*
    from holdfast.event
    where (event.tenant, event.seq) > (wanted, behind) and (event.tenant, event.seq) <= (wanted, up_to) and event.tenant <> 'default'
    order by event.tenant, event.seq
    limit most;
end $$;

-- a key as `key <id>`, a person as their account and machine; null if nobody said
alter table holdfast.api_key add column created_by text, add column revoked_by text;
create index api_key_tenant on holdfast.api_key (tenant, id);
