-- Webhooks that are fair by tenant.

-- The sender's path: from tenant to tenant, from lane to lane of each, and in each lane what is due.
create index delivery_due_by_tenant on holdfast.delivery (tenant, lane, next_at) where state = 'pending';
drop index holdfast.delivery_due;
