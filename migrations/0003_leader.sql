-- Who runs the clockwork. One row; a term is never used twice.
create table holdfast.leader (
  is_only boolean primary key default true check (is_only),
  term bigint not null,
  holder text not null,
  acquired_at timestamptz not null,
  renewed_at timestamptz not null,
  lease_until timestamptz not null,
  swept_at timestamptz,
  sweep_ms double precision
) with (fillfactor = 50);
