-- A tenant's reads cost what the tenant has, however much others do, and every API key says who made it and who revoked it.

-- The tenant of those who know no tenants pays nothing, as with the jobs.
create index event_tenant on holdfast.event (tenant, seq) where tenant <> 'default';
create index delivery_tenant on holdfast.delivery (tenant, id) where tenant <> 'default';

-- a key as `key <id>`, a person as their account and machine; null if nobody said
alter table holdfast.api_key add column created_by text, add column revoked_by text;
create index api_key_tenant on holdfast.api_key (tenant, id);
