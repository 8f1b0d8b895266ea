-- Whether a group wants the events of the items of fan-outs, too: there may be millions of them.
alter table holdfast.event_group add column items boolean not null default false;

-- Why its producer gave up, if it did so after it had given items: there may be fewer of them than were meant.
alter table holdfast.barrier add column short json;
