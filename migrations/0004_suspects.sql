-- Jobs that have lost several workers are claimed apart from the others; this finds them among however many innocent ones.
create index live_job_suspect on holdfast.live_job (queue, kind, priority, run_at) where state = 'queued' and crashes >= 2;
