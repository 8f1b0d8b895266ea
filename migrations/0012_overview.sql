-- What went wrong lately is found at once, however much has gone well since. Hardly a row of the log is in here.
create index event_recovery on holdfast.event (seq) where type in ('job.revived', 'job.quarantined');
