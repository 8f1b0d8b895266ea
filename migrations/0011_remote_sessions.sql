-- Sessions of workers that speak HTTP. Whatever a server needs to know of one stands here, so that any server can serve its next request.
alter table holdfast.session
  -- the kinds that it serves, with their rules; null for a worker that is connected to the database itself
  add column remote json,
  -- which key opened it: to all others it does not exist
  add column owner text,
  -- the only tenant whose jobs it may claim; null for all
  add column tenant text;
