-- Who may come in over HTTP. Of a key only a hash is kept: whoever reads this table can't use what it holds.
create table holdfast.api_key (
  id uuid primary key,
  name text not null,
  hash bytea not null,
  -- null: all tenants
  tenant text,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- roughly: written at most once a minute
  used_at timestamptz
);

-- One secret of this database, shared by all servers on it: what they hand out as a place in a list or in the log is sealed with it, so that
-- nobody can count or guess by it what others do.
create table holdfast.door (
  is_only boolean primary key default true check (is_only),
  secret bytea not null
);

insert into holdfast.door (secret)
values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

-- A page of one tenant's jobs costs the same however many jobs others have. The tenant of those who know no tenants pays nothing.
create index live_job_tenant on holdfast.live_job (tenant, id) where tenant <> 'default';
create index finished_job_tenant on holdfast.finished_job (tenant, id) where tenant <> 'default';
