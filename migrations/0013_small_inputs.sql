-- A small input travels in the row of its job, and only a job that has more than that has a row in job_payload. See docs/decisions/0019.
alter table holdfast.live_job add column input json;
alter table holdfast.finished_job add column input json;

-- A claim writes a second version of each row and a second entry of its key: with room for both beside the first, no page need be added,
-- split or cleaned on the way.
alter table holdfast.live_job set (fillfactor = 50);
alter index holdfast.live_job_pkey set (fillfactor = 45);
