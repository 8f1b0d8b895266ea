-- A small input travels in the row of its job; that of any other, and whatever else a job brings, stands in job_payload. Processes from
-- before this must be stopped first: they would not find it. See docs/decisions/0019.
alter table holdfast.live_job add column input json;
alter table holdfast.finished_job add column input json;

-- A claim writes a second version of each row and a second entry of its key: with room for both beside the first, no page need be added,
-- split or cleaned on the way.
alter table holdfast.live_job set (fillfactor = 50);
alter index holdfast.live_job_pkey set (fillfactor = 45);
