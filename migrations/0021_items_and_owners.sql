-- Whether a group wants the events of the items of fan-outs, too: there may be millions of them.
alter table holdfast.event_group add column items boolean not null default false;
