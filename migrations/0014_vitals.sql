-- How a worker process is, as it says itself with each heartbeat. A process that beats may still do nothing: whoever asks why a job waits
-- has to see that from outside.
alter table holdfast.session
  -- whether it claims jobs; not so while it drains
  add column is_claiming boolean not null default true,
  -- how many handlers it runs, of jobs that it holds and of jobs that were taken from it and whose handlers are about to end
  add column busy int not null default 0,
  -- how long its event loop has not turned
  add column blocked_ms int not null default 0,
  -- handlers that were told to end and did not: how many, and the first of them
  add column unresponsive int not null default 0,
  add column unresponsive_handlers json;
