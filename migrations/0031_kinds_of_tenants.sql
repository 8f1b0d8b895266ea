-- Kinds that a worker registers with the key of a tenant belong to that tenant: they decide nothing about the jobs of others.

-- The empty name stands for all tenants. No tenant can have it, and it sorts first, as the rule that applies first.
alter table holdfast.kind add column tenant text not null default '';
alter table holdfast.kind drop constraint kind_pkey;
alter table holdfast.kind add primary key (tenant, name);

-- Finds kinds that nobody has served for long.
create index kind_seen_at on holdfast.kind (seen_at);

-- Counts the living sessions of a tenant, and finds those of a key.
create index session_living_tenant on holdfast.session (tenant) where ended_at is null and tenant is not null;
create index session_living_owner on holdfast.session (owner) where ended_at is null and owner is not null;

-- The kind of a job, as the rule that applies to its tenant says: that of all tenants, or else its own.
do $$
declare
  before constant text := '''seenAt'', kind.seen_at)
      from holdfast.kind where kind.name = job.kind)';
  told text := pg_get_functiondef('holdfast.facts_of(uuid, boolean)'::regprocedure);
begin
  if position(before in told) = 0 then
    raise exception 'holdfast.facts_of does not look up kinds as expected';
  end if;
  execute replace(told, before, '''seenAt'', kind.seen_at, ''tenant'', nullif(kind.tenant, ''''))
      from holdfast.kind where kind.tenant in ('''', job.tenant) and kind.name = job.kind order by kind.tenant limit 1)');
end $$;
