/** @generated from the operations of src/http by `npm run generate`. */
export interface paths {
    "/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List jobs
         * @description Newest first. A page can be short or even empty before the end. Continue until `next` is null.
         *
         *     Requires the scope `read`.
         */
        get: operations["listJobs"];
        put?: never;
        /**
         * Submit a job
         * @description Responds once the job is stored. With `Prefer: wait=10`, returns the whole job if it ends within 10 seconds; this also requires the scope `read`.
         *
         *     Requires the scope `submit`.
         */
        post: operations["submitJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit many jobs
         * @description Submits up to 5,000 jobs of any kind, all or none.
         *
         *     Requires the scope `submit`.
         */
        post: operations["submitJobs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a job
         * @description With `Prefer: wait=10`, responds when the job ends or after 10 seconds. Responds with 304 if `If-None-Match` still matches.
         *
         *     Requires the scope `read`.
         */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the result of a job
         * @description With `Prefer: wait=10`, waits up to 10 seconds for the job to end. `isPartial` marks a partial result. While the job is unfinished, returns the outputs of its completed stages.
         *
         *     Requires the scope `read`.
         */
        get: operations["getResult"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a job
         * @description Cancels a queued, waiting or running job. Fails if the job does not exist or has already ended.
         *
         *     Requires the scope `submit`.
         */
        post: operations["cancelJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/redo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redo a job
         * @description Re-runs a failed, partial or cancelled job from the stage that failed or from the start.
         *
         *     Requires the scope `submit`.
         */
        post: operations["redoJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the timeline of a job
         * @description All events of the job, oldest first.
         *
         *     Requires the scope `read`.
         */
        get: operations["getTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/fan-outs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the fan-outs of a job
         * @description Shows the progress of each fan-out.
         *
         *     Requires the scope `read`.
         */
        get: operations["getFanOuts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the items of a job
         * @description Items of its fan-outs, by stage and position. Each item is itself a job with its own id.
         *
         *     Requires the scope `read`.
         */
        get: operations["listItems"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/signals/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a signal to a job
         * @description The payload is the output of the stage that waits for the signal. Safe to send again: the first one counts.
         *
         *     Requires the scope `submit`.
         */
        post: operations["signalJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview a bulk operation
         * @description Counts the jobs that the operation would change, and returns some of them. Changes nothing. If `next` is not null, pass it as `cursor` to count further.
         *
         *     Requires the scope `read`.
         */
        post: operations["previewBulk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List bulk operations
         * @description Newest first.
         *
         *     Requires the scope `read`.
         */
        get: operations["listBulk"];
        put?: never;
        /**
         * Start a bulk operation
         * @description Changes the jobs that match at this moment, in the background. Jobs that are submitted or end later are left alone. Repeating the request with the same `id` starts nothing new.
         *
         *     Requires the scope `operate`.
         */
        post: operations["startBulk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a bulk operation
         * @description Requires the scope `read`.
         */
        get: operations["getBulk"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk/{id}/skipped": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List skipped jobs
         * @description Jobs that matched and were left as they were, with the reason. Lists the first 10,000, newest first.
         *
         *     Requires the scope `read`.
         */
        get: operations["listBulkSkipped"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bulk/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop a bulk operation
         * @description What it has changed stays changed.
         *
         *     Requires the scope `operate`.
         */
        post: operations["stopBulk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List failures by kind and error
         * @description The most frequent first, each with its latest example. Scans the newest 100,000 jobs, for up to two seconds.
         *
         *     Requires the scope `read`.
         */
        get: operations["listFailures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain the state of a job
         * @description Returns a one-sentence verdict, the facts from every source of truth, contradictions between them, what happens next and by when, and a possible repair.
         *
         *     Requires the scope `read`.
         */
        get: operations["whyJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repair a job
         * @description Applies the repair that `why` suggests. A repair uses the same guarded statements as normal operation, so an outdated repair does nothing. With `dryRun`, only returns what it would do; without it, the key needs the scope `operate`.
         *
         *     Requires the scope `read`.
         */
        post: operations["repairJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List events
         * @description Oldest first, starting after `after` or from the beginning of the log. A page scans a bounded number of events (with a tenant key, only events of that tenant), so it can be short or even empty before the end. Continue until `next` is null.
         *
         *     Requires the scope `read`.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream events
         * @description Sends events as they happen (server-sent events). A client that reconnects with `Last-Event-ID`, as browsers do automatically, misses no event and gets none twice.
         *
         *     Requires the scope `read`.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description Requires the scope `read`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description Receives events from now on, signed with a secret that is shown only once.
         *
         *     Requires the scope `operate`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook
         * @description Requires the scope `read`.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Remove a webhook
         * @description Pending deliveries become dead letters, which stay listed until their retention time ends.
         *
         *     Requires the scope `operate`.
         */
        delete: operations["removeWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description Fields you omit stay unchanged.
         *
         *     Requires the scope `operate`.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/v1/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description Deliveries are signed with both secrets during the grace period.
         *
         *     Requires the scope `operate`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable a webhook
         * @description Requires the scope `operate`.
         */
        post: operations["enableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Disable a webhook
         * @description Pending deliveries and new events become dead letters.
         *
         *     Requires the scope `operate`.
         */
        post: operations["disableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a webhook
         * @description Sends one signed test event immediately and returns the result. Tests count as webhooks in flight.
         *
         *     Requires the scope `operate`.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List deliveries
         * @description Newest first.
         *
         *     Requires the scope `read`.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/deliveries/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a delivery
         * @description Requires the scope `read`.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/deliveries/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend a delivery
         * @description Keeps its id.
         *
         *     Requires the scope `operate`.
         */
        post: operations["replayDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/deliveries/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend many deliveries
         * @description Resends dead letters; with `state: delivered`, deliveries that succeeded.
         *
         *     Requires the scope `operate`.
         */
        post: operations["replayDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List queues
         * @description A tenant key counts only jobs of its tenant.
         *
         *     Requires the scope `read`.
         */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a queue
         * @description Workers stop claiming its jobs; running jobs continue. `why` shows who paused the queue and the reason.
         *
         *     Requires the scope `operate` and a key for all tenants.
         */
        post: operations["pauseQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a queue
         * @description Requires the scope `operate` and a key for all tenants.
         */
        post: operations["resumeQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sessions
         * @description Running worker processes or, with `ended`, those that have ended. Newest first.
         *
         *     Requires the scope `read` and a key for all tenants.
         */
        get: operations["listSessions"];
        put?: never;
        /**
         * Open a session
         * @description Open one session per worker process. Its lease covers all jobs that it claims. Only the key that opened the session can use it. With a tenant key, it claims only jobs of that tenant.
         *
         *     Requires the scope `work`.
         */
        post: operations["openSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the state of recovery
         * @description Shows the leader, the recovery bound, recently revived jobs, and late writes that were refused.
         *
         *     Requires the scope `read` and a key for all tenants.
         */
        get: operations["getRecovery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List schedules
         * @description By tenant and name. A tenant key sees only its own schedules.
         *
         *     Requires the scope `read`.
         */
        get: operations["listSchedules"];
        put?: never;
        /**
         * Set a schedule
         * @description Creates the schedule, or replaces its definition. Its pause, history and last job stay, and its next slot if the timing is the same.
         *
         *     Requires the scope `operate`.
         */
        post: operations["setSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a schedule
         * @description Requires the scope `read`.
         */
        get: operations["getSchedule"];
        put?: never;
        post?: never;
        /**
         * Remove a schedule
         * @description Its jobs and its history stay.
         *
         *     Requires the scope `operate`.
         */
        delete: operations["removeSchedule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Preview the next slots of a schedule
         * @description Requires the scope `read`.
         */
        get: operations["previewSchedule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what became of the slots of a schedule
         * @description Latest first. The latest 1,000 slots are kept, also after the schedule was removed.
         *
         *     Requires the scope `read`.
         */
        get: operations["listSlots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a schedule
         * @description Requires the scope `operate`.
         */
        post: operations["pauseSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a schedule
         * @description It goes on with its next slot. The slots of the pause are skipped, and can be backfilled.
         *
         *     Requires the scope `operate`.
         */
        post: operations["resumeSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Trigger a schedule now
         * @description Submits a job beside the slots, even if the schedule is paused or another job of it is running.
         *
         *     Requires the scope `operate`.
         */
        post: operations["triggerSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schedules/{name}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Backfill past slots of a schedule
         * @description Submits the slots of a range, all or none, except those whose job still exists.
         *
         *     Requires the scope `operate`.
         */
        post: operations["backfillSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List limits
         * @description Limits that the code declares, and those that were set at run time.
         *
         *     Requires the scope `read` and a key for all tenants.
         */
        get: operations["listLimits"];
        put?: never;
        /**
         * Set a limit
         * @description It takes effect at once, and takes precedence over what the code declares until it is removed. Running jobs above a lower limit keep running.
         *
         *     Requires the scope `operate` and a key for all tenants.
         */
        post: operations["setLimit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove a limit
         * @description Removes what was set at run time. What the code declares applies again, and is returned.
         *
         *     Requires the scope `operate` and a key for all tenants.
         */
        post: operations["removeLimit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/kinds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List kinds
         * @description Kinds that workers have registered and that you can submit: kinds for all tenants first, then by tenant and name. A tenant key does not see kinds of other tenants.
         *
         *     Requires the scope `read`.
         */
        get: operations["listKinds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Claim jobs
         * @description Responds as soon as a job is available, or with an empty list after `waitMs`.
         *
         *     Requires the scope `work`.
         */
        post: operations["claimJobs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew the lease
         * @description Send all attempts that the worker holds. Abort the attempts returned in `lost`. Attempts that you leave out are released.
         *
         *     Requires the scope `work`.
         */
        post: operations["beatSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/progress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report progress
         * @description Reports the progress of attempts and adds log lines to their timelines.
         *
         *     Requires the scope `work`.
         */
        post: operations["reportProgress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Settle attempts
         * @description Reports how attempts ended. The server decides what happens next by the rules of the kind. Safe to send again if the response was lost.
         *
         *     Requires the scope `work`.
         */
        post: operations["settleAttempts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Release attempts
         * @description Returns attempts to the queue without using up a retry.
         *
         *     Requires the scope `work`.
         */
        post: operations["releaseAttempts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Close a session
         * @description Releases all attempts that it still holds.
         *
         *     Requires the scope `work`.
         */
        delete: operations["closeSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List event groups
         * @description Requires the scope `read` and a key for all tenants.
         */
        get: operations["listGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{name}/parked": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the parked events of a group
         * @description Events that the group failed to handle. For the next page, pass the `id` of the last event as `after`.
         *
         *     Requires the scope `read` and a key for all tenants.
         */
        get: operations["listParked"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{name}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay events to a group
         * @description Replays parked events, or everything from a position in the log.
         *
         *     Requires the scope `operate` and a key for all tenants.
         */
        post: operations["replayGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a group
         * @description The log is no longer retained for this group.
         *
         *     Requires the scope `operate` and a key for all tenants.
         */
        delete: operations["forgetGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description Newest first, without secrets.
         *
         *     Requires the scope `admin`.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description The new key cannot have more access than the key that creates it or expire later. Without `expiresMs`, both expire together.
         *
         *     Requires the scope `admin`.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description Every server rejects it within two seconds.
         *
         *     Requires the scope `admin`.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
/** The schemas of the HTTP API, by name. */
export interface components {
    schemas: {
        Job: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            kind: string;
            queue: string;
            tenant: string;
            state: components["schemas"]["State"];
            /** @description Index of the current stage, from 0. */
            stage: number;
            attempt: number;
            /** @description Failed attempts of the current stage. */
            failures: number;
            /** @description Workers lost in the current stage. */
            crashes: number;
            priority: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            submittedAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            runAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            deadlineAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finishedAt: string | null;
            error: components["schemas"]["JobError"];
            /** @description Any JSON value. */
            input?: unknown;
            meta: {
                [key: string]: unknown;
            } | null;
            stages: {
                name: string;
                optional: boolean;
                signal?: string;
            }[];
            /** @description Outputs of completed stages, by stage name. */
            outputs: {
                [key: string]: unknown;
            };
            progress: {
                stage: number;
                attempt: number;
                done: number;
                total: number | null;
                note: string | null;
                at: string;
            } | null;
        };
        /** @enum {string} */
        State: "queued" | "running" | "waiting" | "succeeded" | "partial" | "failed" | "cancelled";
        JobError: {
            code: string;
            message: string;
        } | null;
        Submitted: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            kind: string;
            tenant: string;
            url: string;
            /**
             * @description What became of a unique job. `kept` and `rescheduled`: `id` is the job that holds the key.
             * @enum {string}
             */
            outcome?: "submitted" | "kept" | "replaced" | "rescheduled";
        };
        Problem: {
            /**
             * @description A URN that contains the code.
             * @example urn:holdfast:error:job_not_found
             */
            type: string;
            /** @description What the code means. */
            title: string;
            status: number;
            /**
             * @description Stable error code; see the list of error codes.
             * @enum {string}
             */
            code: "input_invalid" | "input_too_large" | "not_storable" | "output_invalid" | "output_too_large" | "option_invalid" | "key_conflict" | "unknown_kind" | "kind_invalid" | "middleware_invalid" | "id_invalid" | "job_not_found" | "job_gone" | "move_illegal" | "job_failed" | "job_cancelled" | "result_timeout" | "timeout" | "handler_failed" | "permanent" | "crashed" | "quarantined" | "item_invalid" | "items_failed" | "barrier_expired" | "signal_timeout" | "signal_unknown" | "signal_refused" | "barrier_conflict" | "part_unknown" | "owner_unknown" | "owner_failed" | "tenant_missing" | "bulk_not_found" | "bulk_ended" | "bulk_matches_nothing" | "bulk_conflict" | "bulk_limit" | "event_type_unknown" | "group_invalid" | "group_not_found" | "webhook_url_invalid" | "webhook_url_refused" | "webhook_secret_invalid" | "webhook_header_invalid" | "endpoint_not_found" | "too_many_endpoints" | "webhooks_busy" | "delivery_not_found" | "delivery_pending" | "secret_key_wrong" | "schedule_invalid" | "schedule_not_found" | "schedule_conflict" | "too_many_schedules" | "session_not_found" | "session_ended" | "kinds_exhausted" | "sessions_exhausted" | "handlers_unresponsive" | "worker_failed" | "config_invalid" | "database_unreachable" | "database_refused" | "database_forbidden" | "database_read_only" | "database_timeout" | "database_overloaded" | "database_full" | "database_failed" | "database_unsupported" | "schema_missing" | "schema_older" | "schema_newer" | "schema_unreleased" | "schema_changed" | "embedded_unavailable" | "embedded_start_failed" | "data_folder_in_use" | "data_folder_version" | "data_folder_unusable" | "prove_refused" | "bench_refused" | "module_invalid" | "request_invalid" | "body_malformed" | "body_too_large" | "content_type_unsupported" | "route_not_found" | "method_not_allowed" | "key_missing" | "key_refused" | "key_not_found" | "key_exceeds_maker" | "scope_missing" | "tenant_forbidden" | "host_refused" | "rate_limited" | "waits_exhausted" | "header_invalid" | "headers_too_large" | "request_slow" | "pipeline_too_long" | "connections_exhausted" | "internal" | "not_running";
            /** @description What happened, and what to do. */
            detail: string;
            /** @description The X-Request-Id of this request, to find it in the logs. */
            requestId: string;
            /** @description More details, depending on the code, such as `issues` for an invalid request. */
            details?: {
                [key: string]: unknown;
            };
        };
        NewJob: {
            kind: string;
            /** @description Any JSON value. */
            input?: unknown;
            /** @description Idempotency key: the same key and input always return the same job. */
            key?: string;
            /** @description Makes the job unique among the jobs of its kind and tenant. */
            unique?: {
                key: string;
                /**
                 * @description How long the job holds the key: until it is claimed, or until it has ended (default).
                 * @enum {string}
                 */
                while?: "queued" | "live";
                /** @description Holds the key for at least this long after the submit. */
                windowMs?: number;
            };
            /**
             * @description What to do if another job holds the unique key. `keep` (default): submit nothing. `replace`: cancel it if it is queued, and submit this one. `reschedule`: only change when it runs, if it is queued.
             * @enum {string}
             */
            onConflict?: "keep" | "replace" | "reschedule";
            /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
            tenant?: string;
            /**
             * Format: date-time
             * @description Run no earlier than this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            runAt?: string;
            delayMs?: number;
            /** @description 1 (first) to 4 (last). */
            priority?: number;
            /** @description What the limit of the kind counts the job by. */
            limitKey?: string;
            /** @description Small custom data, stored with the job. */
            meta?: {
                [key: string]: unknown;
            };
            webhook?: {
                url: string;
                /** @description Signing secret (`whsec_…`). */
                secret: string;
                types?: string[];
                headers?: {
                    [key: string]: string;
                };
            };
        };
        NewJobs: {
            jobs: components["schemas"]["NewJob"][];
        };
        JobPage: {
            jobs: components["schemas"]["JobSummary"][];
            /** @description The `cursor` of the next page; null on the last page. */
            next: string | null;
        };
        JobSummary: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            kind: string;
            queue: string;
            tenant: string;
            state: components["schemas"]["State"];
            /** @description Index of the current stage, from 0. */
            stage: number;
            attempt: number;
            /** @description Failed attempts of the current stage. */
            failures: number;
            /** @description Workers lost in the current stage. */
            crashes: number;
            priority: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            submittedAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            runAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            deadlineAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            finishedAt: string | null;
            error: components["schemas"]["JobError"];
        };
        Result: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /** @enum {string} */
            state: "succeeded" | "partial";
            /** @description Whether the result is incomplete: an optional stage or some items failed. */
            isPartial: boolean;
            /** @description Output of the last stage; null if it failed. */
            output?: unknown;
            outputs: {
                [key: string]: unknown;
            };
            error: components["schemas"]["JobError"];
        };
        Unfinished: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            state: components["schemas"]["State"];
            stage: number;
            attempt: number;
            progress: {
                stage: number;
                attempt: number;
                done: number;
                total: number | null;
                note: string | null;
                at: string;
            } | null;
            /** @description Outputs of completed stages, by stage name. */
            outputs: {
                [key: string]: unknown;
            };
        };
        Moved: {
            id: string;
            state: components["schemas"]["State"];
        };
        TimelineEvent: {
            /** @description Position in the log. Pass it as `after` or as Last-Event-ID. */
            id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @example job.succeeded */
            type: string;
            attempt: number;
            stage: number;
            /** @description Any JSON value. */
            data?: unknown;
        };
        FanOut: {
            stage: number;
            /** @description Null until all items have been added. */
            total: number | null;
            succeeded: number;
            failed: number;
            cancelled: number;
            running: number;
            queued: number;
            isComplete: boolean | "unknown";
            perSecond: number;
            etaMs: number | null;
            ageMs: number;
        };
        Item: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            key: string;
            position: number;
            stage: number;
            state: components["schemas"]["State"];
            attempt: number;
            error: components["schemas"]["JobError"];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            since: string;
        };
        Signalled: {
            /** @description False if a signal of this name was sent before. The first one counts. */
            isNew: boolean;
            /** @description Whether the job waited for it. Otherwise it is kept until the job reaches the stage. */
            isAwaited: boolean;
        };
        BulkPreview: {
            count: number;
            /** @description Whether there may be more than `count`. */
            isAtLeast: boolean;
            /** @description The newest of them, up to 10. */
            sample: components["schemas"]["JobSummary"][];
            /** @description The `cursor` of the next page; null on the last page. */
            next: string | null;
        };
        BulkFilter: {
            kind?: string;
            queue?: string;
            /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
            tenant?: string;
            state?: components["schemas"]["State"] | components["schemas"]["State"][];
            /** @description Error code. */
            error?: string;
            /** @description Text in the error message. */
            errorText?: string;
            /** @description Text in the input, as JSON. */
            text?: string;
            /**
             * Format: date-time
             * @description Submitted at or after this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            since?: string;
            /**
             * Format: date-time
             * @description Submitted before this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            until?: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endedSince?: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endedUntil?: string;
            /** @description Change fan-out items one by one. */
            items?: boolean;
            /** @description Required if there is no other condition. */
            all?: boolean;
        };
        BulkOperation: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /** @enum {string} */
            operation: "cancel" | "redo" | "delete" | "priority" | "reschedule";
            tenant: string | null;
            filter: {
                kind?: string;
                queue?: string;
                tenant?: string;
                states: components["schemas"]["State"][];
                error?: string;
                errorText?: string;
                text?: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                since?: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                until?: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                endedSince?: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                endedUntil?: string;
                items: boolean;
            };
            change: {
                /** @enum {string} */
                from?: "failed" | "start";
                priority?: number;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                runAt?: string;
            };
            /** @enum {string} */
            state: "running" | "finished" | "stopped";
            /** @description Jobs that matched when it was asked for, up to 100,000. */
            expected: number;
            /** @description Whether there may have been more than `expected`. */
            isAtLeast: boolean;
            done: number;
            skipped: number;
            sample: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            askedAt: string;
            askedBy: string | null;
            reason: string | null;
            rate: number | null;
            /** @description Whether a process is carrying it on at this moment. */
            isHeld: boolean;
            /** @description That process; null for a tenant key. */
            holder: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            movedAt: string;
            /** @description Why its last page failed; it is tried again. */
            error: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endedAt: string | null;
            stoppedBy: string | null;
            stopReason: string | null;
        };
        Failures: {
            groups: {
                kind: string;
                code: string;
                /** @description The start of the error message, with `#` for numbers and ids. */
                message: string;
                count: number;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                firstAt: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                latestAt: string;
                latest: {
                    id: string;
                    message: string;
                };
            }[];
            count: number;
            isAtLeast: boolean;
        };
        Why: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            state: components["schemas"]["State"] & (string | null);
            verdict: {
                code: string;
                sentence: string;
            };
            /** @description Orphan class of the job, if it is an orphan. */
            orphan: string | null;
            /** @description What happens next without intervention, and by when. */
            next: {
                what: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                byAt: string | null;
            } | null;
            /** @description Contradictions between the sources. */
            disagreements: string[];
            /** @description Facts from every source of truth. */
            facts: {
                [key: string]: unknown;
            };
            repair: {
                name: string;
                sentence: string;
            } | null;
            /** @description Verdicts recorded when attempts failed or lost their workers. */
            snapshots: {
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                at: string;
                attempt: number;
                event: string;
                verdict: {
                    code: string;
                    sentence: string;
                } | null;
            }[];
        };
        Repaired: {
            repair: string | null;
            sentence: string;
            isApplied: boolean;
            why: components["schemas"]["Why"];
        };
        Event: {
            /** @description Position in the log. Pass it as `after` or as Last-Event-ID. */
            id: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @example job.succeeded */
            type: string;
            attempt: number;
            stage: number;
            /** @description Any JSON value. */
            data?: unknown;
            job: string | null;
            kind: string | null;
            tenant: string;
            /** @description State of the job after the event. */
            state: string | null;
            /** @description For an event of a fan-out item: its parent, key and position. */
            item: {
                parent: string | null;
                key: string;
                position: number;
            } | null;
        };
        WebhookWithSecret: components["schemas"]["Webhook"] & {
            /** @description Shown only once. */
            secret: string;
        };
        Webhook: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            tenant: string;
            url: string;
            types: string[];
            items: boolean;
            /** @description Names of the custom headers. Their values are not shown. */
            headerNames: string[];
            note: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            disabledAt: string | null;
            disabledWhy: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            failingSince: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            oldSecretUntil: string | null;
        };
        WebhookTest: {
            isDelivered: boolean;
            status: number | null;
            reason: string | null;
            ms: number;
        };
        Delivery: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            eventId: string;
            type: string;
            tenant: string;
            job: string | null;
            /** @description Null for a webhook that was set on a single job. */
            endpoint: string | null;
            /** @enum {string} */
            state: "pending" | "delivered" | "dead";
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            nextAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            triedAt: string | null;
            tries: number;
            status: number | null;
            excerpt: string | null;
            error: string | null;
            ms: number | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endedAt: string | null;
        };
        DeliveryWithBody: components["schemas"]["Delivery"] & {
            /** @description The exact request body. */
            body: string;
        };
        Queue: {
            name: string;
            isPaused: boolean;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            pausedAt: string | null;
            pausedBy: string | null;
            pauseReason: string | null;
            /** @description Jobs that are ready to run. */
            queued: number;
            scheduled: number;
            running: number;
            waiting: number;
            oldestDueMs: number | null;
            workers: number;
            /** @description Whether there were too many jobs to count. The numbers are then lower bounds. */
            isCapped: boolean;
        };
        Session: {
            id: number;
            host: string;
            pid: number;
            version: string;
            supervisor: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            startedAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            heartbeatAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            leaseUntil: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endedAt: string | null;
            endedBy: string | null;
            /** @description Signal or exit code of the process, if a supervisor observed it. */
            exit: string | null;
            kinds: string[];
            queues: string[];
            concurrency: number;
            running: number;
            /** @description Whether it claims jobs. False while it drains. */
            isClaiming: boolean;
            /** @description Concurrency slots in use at its last heartbeat. */
            busy: number;
            /** @description Handlers that ignored their abort signal and are still running. */
            unresponsive: number;
            /** @description How long a handler has blocked the event loop; 0 if none does. */
            blockedMs: number;
            isLocked: boolean;
            isLive: boolean;
        };
        Recovery: {
            leader: {
                holder: string;
                term: number;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                acquiredAt: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                renewedAt: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                leaseUntil: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                sweptAt: string | null;
                sweepMs: number | null;
                isLive: boolean;
            } | null;
            /** @description The longest time until a lost job is recovered. */
            boundMs: number;
            ladder: {
                rung: string;
                when: string;
                boundMs: number;
                made: string;
            }[];
            /** @description Attempts that lost their workers and are not recovered yet; counts up to 1,000. */
            orphans: number;
            /** @description Kinds with due jobs but no running worker in their queue. */
            stranded: {
                queue: string;
                kind: string;
                waitingMs: number;
            }[];
            /** @description What has kept the server from vacuuming dead rows for at least a minute. */
            oldestSnapshot: {
                /** @enum {string} */
                what: "transaction" | "prepared" | "replica" | "slot";
                pid: number | null;
                name: string | null;
                application: string | null;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                since: string | null;
            } | null;
            revivals: {
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                at: string;
                job: string;
                kind: string;
                tenant: string;
                attempt: number;
                type: string;
                /** @description Any JSON value. */
                data?: unknown;
            }[];
            refusals: {
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                at: string;
                job: string;
                attempt: number;
                session: number;
                write: string;
            }[];
        };
        Schedule: {
            name: string;
            tenant: string;
            kind: string;
            /** @description Any JSON value. */
            input?: unknown;
            priority: number | null;
            cron: string | null;
            everyMs: number | null;
            tz: string;
            jitterMs: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            startsAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            endsAt: string | null;
            /** @enum {string} */
            missed: "skip" | "latest" | "all";
            missedWindowMs: number;
            missedCap: number;
            /** @enum {string} */
            overlap: "skip" | "buffer" | "allow" | "cancel";
            /** @enum {string} */
            state: "active" | "paused" | "failing" | "ended";
            /**
             * Format: date-time
             * @description The next slot; null if there is none left.
             * @example 2026-01-31T12:00:00.000Z
             */
            nextAt: string | null;
            /**
             * Format: date-time
             * @description A slot that waits for the job of an earlier one to end.
             * @example 2026-01-31T12:00:00.000Z
             */
            bufferedAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            lastSlotAt: string | null;
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            lastJob: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            pausedAt: string | null;
            pausedBy: string | null;
            pauseReason: string | null;
            /** @description Whether a kind declares it in code. */
            isDeclared: boolean;
            /** @description Whether it was changed at run time since it was declared. */
            isEdited: boolean;
            /** @description Why its slot could not be decided; it is tried again. */
            problem: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            updatedAt: string;
            updatedBy: string | null;
        };
        Slot: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            slotAt: string;
            /** @enum {string} */
            what: "submitted" | "skipped" | "buffered" | "failed" | "triggered" | "backfilled";
            reason: string | null;
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            job: string | null;
            /**
             * Format: date-time
             * @description The last of several slots that were skipped together.
             * @example 2026-01-31T12:00:00.000Z
             */
            untilAt: string | null;
            /** @description How many slots it stands for; 1,000 means at least that many. */
            slots: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            decidedAt: string;
            by: string | null;
        };
        Backfilled: {
            submitted: number;
            existing: number;
        };
        Limit: {
            target: components["schemas"]["LimitTarget"];
            /** @description How many jobs may be held by workers at the same time. */
            concurrency?: number;
            /** @description How many jobs may start in a span of time. */
            rate?: {
                limit: number;
                perMs: number;
            };
            /** @description Whether the tenants of a queue take turns. */
            fair?: boolean;
            /** @description How many turns a tenant gets for one of another. Default: 1. */
            weights?: {
                [key: string]: number;
            };
            /**
             * @description Whether the code declares it, or it was set at run time.
             * @enum {string}
             */
            source: "declared" | "set";
            /** @description How many jobs hold a slot now; null for the limit on every key. */
            running: number | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            changedAt: string;
            changedBy: string | null;
        };
        LimitTarget: {
            queue: string;
        } | {
            kind: string;
            /** @description A key of the kind, or `*` for every key. */
            key?: string;
        };
        Kind: {
            name: string;
            /** @description Tenant whose jobs this definition applies to; null for all tenants. A definition for all tenants takes precedence. */
            tenant: string | null;
            queue: string;
            priority: number;
            crashBudget: number;
            stages: {
                name: string;
                optional: boolean;
                signal?: string;
            }[];
            /** @description How long jobs are kept after they end, in milliseconds, by state. Null if the settings apply. */
            keep: {
                succeeded?: number;
                partial?: number;
                failed?: number;
                cancelled?: number;
            } | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            seenAt: string;
        };
        OpenedSession: {
            /** @description Session id for request paths. The session number with a key for all tenants; otherwise an opaque string. */
            id: string;
            leaseMs: number;
            /** @description Interval at which to send heartbeats. */
            heartbeatMs: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            leaseUntil: string;
        };
        NewSession: {
            /** @description Up to the setting `kindsPerSession`. */
            kinds: {
                name: string;
                queue?: string;
                priority?: number;
                crashBudget?: number;
                /** @description How long to keep jobs after they end, for all states or by state. Milliseconds, or a duration such as `30d`. */
                keep?: number | string | {
                    succeeded?: number | string;
                    partial?: number | string;
                    failed?: number | string;
                    cancelled?: number | string;
                };
                /** @description Default: one stage named `run`. */
                stages?: {
                    name: string;
                    /** @description If this stage fails permanently, the job ends as partial. */
                    optional?: boolean;
                    timeoutMs?: number;
                    retries?: number;
                    backoff?: {
                        baseMs?: number;
                        factor?: number;
                        maxMs?: number;
                    };
                    /** @description Makes the stage wait for a signal. The server does that; no worker is given the stage. */
                    wait?: {
                        signal: string;
                        timeoutMs: number;
                    };
                }[];
            }[];
            host?: string;
            pid?: number;
            concurrency?: number;
            /** @description How long the worker counts as alive after its last heartbeat. */
            leaseMs?: number;
        };
        Attempt: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            kind: string;
            queue: string;
            tenant: string;
            /** @description Name of the stage to run. */
            stage: string;
            /** @description Any JSON value. */
            input?: unknown;
            /** @description Outputs of earlier stages, by stage name. */
            outputs: {
                [key: string]: unknown;
            };
            timeoutMs: number;
            /**
             * Format: date-time
             * @description When the attempt counts as hung and goes to another worker.
             * @example 2026-01-31T12:00:00.000Z
             */
            deadlineAt: string;
            failures: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            submittedAt: string;
            traceparent: string | null;
        };
        Written: {
            results: {
                /**
                 * Format: uuid
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string;
                attempt: number;
                /** @enum {string} */
                result: "written" | "lease_lost";
            }[];
        };
        Report: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            done?: number;
            total?: number;
            note?: string;
            /** @description Log lines for the timeline of the job. */
            log?: {
                message: string;
                data?: {
                    [key: string]: unknown;
                };
            }[];
        };
        Settled: {
            results: {
                /**
                 * Format: uuid
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string;
                attempt: number;
                /** @enum {string} */
                result: "settled" | "lease_lost";
            }[];
        };
        Outcome: {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            /** @enum {string} */
            outcome: "succeeded";
            /** @description Any JSON value. */
            output?: unknown;
        } | {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            /** @enum {string} */
            outcome: "failed";
            error: {
                message: string;
                /** @enum {string} */
                code?: "handler_failed" | "permanent" | "timeout" | "input_invalid";
                /** @description Whether the error is permanent, so that retries are skipped. */
                isPermanent?: boolean;
                stack?: string;
            };
        } | {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            /** @enum {string} */
            outcome: "released";
            retryAfterMs?: number;
        } | {
            /**
             * Format: uuid
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            attempt: number;
            /** @enum {string} */
            outcome: "snoozed";
            /** @description When to run the stage again. */
            delayMs: number;
        };
        Group: {
            name: string;
            types: string[] | null;
            /** @description Whether the group also reads events of fan-out items. */
            items: boolean;
            partitions: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            seq: number;
            readers: number;
            held: number;
            parked: number;
            /** @description Number of log positions the group is behind. */
            behind: number;
            behindMs: number;
            /** @description The open transaction that holds the group back. It reads later events once that transaction ends. */
            heldBy: {
                pid: number | null;
                application: string | null;
                /** @description The name of a prepared transaction. */
                prepared: string | null;
                forMs: number;
            } | null;
            failing: {
                seq: number;
                failures: number;
                error: string | null;
            }[];
        };
        ParkedEvent: {
            event: components["schemas"]["Event"];
            error: string;
            failures: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            parkedAt: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            replayAt: string | null;
        };
        ApiKeyWithText: {
            id: string;
            name: string;
            /** @description Null for all tenants. */
            tenant: string | null;
            scopes: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            /** @description Who created the key; `key <id>` if it was created with a key. */
            createdBy: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expiresAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revokedAt: string | null;
            revokedBy: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            usedAt: string | null;
            key: string;
        };
        ApiKey: {
            id: string;
            name: string;
            /** @description Null for all tenants. */
            tenant: string | null;
            scopes: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            createdAt: string;
            /** @description Who created the key; `key <id>` if it was created with a key. */
            createdBy: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            expiresAt: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            revokedAt: string | null;
            revokedBy: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            usedAt: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listJobs: {
        parameters: {
            query?: {
                kind?: string;
                queue?: string;
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                /** @description Comma-separated list of queued, running, waiting, succeeded, partial, failed, cancelled. */
                state?: string;
                /** @description Include fan-out items. */
                items?: boolean;
                since?: string;
                until?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of jobs. */
            200: {
                headers: {
                    /** @description URL of the next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobPage"];
                };
            };
        };
    };
    submitJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description Requests with the same key and body return the same response. The same key with a different body is rejected. */
                "idempotency-key"?: string;
                /** @description `wait=10` waits up to 10 seconds for the job to end. Maximum: 60. */
                prefer?: string;
                /** @description W3C trace context that the job joins. */
                traceparent?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewJob"];
            };
        };
        responses: {
            /** @description The job ended within the time of `Prefer: wait`. */
            200: {
                headers: {
                    /** @description The wait that was applied. */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description The job is stored, by this request or an earlier one with the same key. */
            202: {
                headers: {
                    /** @description URL of the job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Submitted"];
                };
            };
        };
    };
    submitJobs: {
        parameters: {
            query?: never;
            header?: {
                /** @description Requests with the same key and body return the same response. The same key with a different body is rejected. */
                "idempotency-key"?: string;
                /** @description W3C trace context that the job joins. */
                traceparent?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewJobs"];
            };
        };
        responses: {
            /** @description All jobs are stored. Listed in the order of the request. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        jobs: components["schemas"]["Submitted"][];
                    };
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description `wait=10` waits up to 10 seconds for the job to end. Maximum: 60. */
                prefer?: string;
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job. */
            200: {
                headers: {
                    /** @description Changes when the job does. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description The job has not changed. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    getResult: {
        parameters: {
            query?: never;
            header?: {
                /** @description `wait=10` waits up to 10 seconds for the job to end. Maximum: 60. */
                prefer?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of the job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Result"];
                };
            };
            /** @description The job has not ended yet; try again. Includes the outputs of completed stages. */
            202: {
                headers: {
                    /** @description Seconds to wait before trying again. */
                    "Retry-After"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Unfinished"];
                };
            };
        };
    };
    cancelJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The job is cancelled. Its worker is told to stop. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    redoJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    from?: "failed" | "start";
                };
            };
        };
        responses: {
            /** @description The job is queued again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    getTimeline: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events: components["schemas"]["TimelineEvent"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    getFanOuts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Fan-outs by stage. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        fanOuts: components["schemas"]["FanOut"][];
                    };
                };
            };
        };
    };
    listItems: {
        parameters: {
            query?: {
                state?: components["schemas"]["State"];
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of items. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Item"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    signalJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Any JSON value. */
                    payload?: unknown;
                };
            };
        };
        responses: {
            /** @description What became of the signal. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Signalled"];
                };
            };
        };
    };
    previewBulk: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    operation: "cancel" | "redo" | "delete" | "priority" | "reschedule";
                    filter: components["schemas"]["BulkFilter"];
                    /** @description The `next` value of the previous page. */
                    cursor?: string;
                };
            };
        };
        responses: {
            /** @description How many jobs match, and some of them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkPreview"];
                };
            };
        };
    };
    listBulk: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                state?: "running" | "finished" | "stopped";
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of operations. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        operations: components["schemas"]["BulkOperation"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    startBulk: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: uuid
                     * @example 01890a5d-ac96-774b-bcce-b302099a8057
                     */
                    id?: string;
                    /** @enum {string} */
                    operation: "cancel" | "redo" | "delete" | "priority" | "reschedule";
                    filter: components["schemas"]["BulkFilter"];
                    /**
                     * @description For `redo`.
                     * @enum {string}
                     */
                    from?: "failed" | "start";
                    /** @description For `priority`: 1 (first) to 4. */
                    priority?: number;
                    /**
                     * Format: date-time
                     * @description For `reschedule`.
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    runAt?: string;
                    /** @description For `reschedule`. */
                    delayMs?: number;
                    /** @description Jobs per second, at most. */
                    rate?: number;
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The operation is under way. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkOperation"];
                };
            };
        };
    };
    getBulk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation and its progress. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkOperation"];
                };
            };
        };
    };
    listBulkSkipped: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of skipped jobs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        skipped: {
                            job: string;
                            /** @enum {string} */
                            reason: "locked" | "changed" | "gone" | "unread" | "undelivered" | "items" | "stray" | "refused";
                            error: string | null;
                            /**
                             * Format: date-time
                             * @example 2026-01-31T12:00:00.000Z
                             */
                            at: string;
                        }[];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    stopBulk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The operation is stopped. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkOperation"];
                };
            };
        };
    };
    listFailures: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                kind?: string;
                /** @description Only jobs that failed at or after this time. */
                since?: string;
                /** @description Include fan-out items. */
                items?: boolean;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Failed jobs by kind and error. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Failures"];
                };
            };
        };
    };
    whyJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The verdict and its reasons. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Why"];
                };
            };
        };
    };
    repairJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    dryRun?: boolean;
                };
            };
        };
        responses: {
            /** @description What was done, and the verdict afterwards. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Repaired"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Event types, comma-separated: job.failed, job.*. */
                types?: string;
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                /** @description Only events of this job. */
                job?: string;
                /** @description Include events of fan-out items. Default: only if `job` is an item. */
                items?: boolean;
                /** @description Only events after this one: the `id` of an event. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events. Pass `next` as `after` to get the next page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events: components["schemas"]["Event"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Event types, comma-separated: job.failed, job.*. */
                types?: string;
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                /** @description Only events of this job. */
                job?: string;
                /** @description Include events of fan-out items. Default: only if `job` is an item. */
                items?: boolean;
                /** @description Only events after this one: the `id` of an event. */
                after?: string;
            };
            header?: {
                "last-event-id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stream. Each message has the `id` of the event, its type in `event`, and the event as JSON in `data`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        webhooks: components["schemas"]["Webhook"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    url: string;
                    types?: string[];
                    /** @description Whether to send events of fan-out items. */
                    items?: boolean;
                    headers?: {
                        [key: string]: string;
                    };
                    note?: string;
                    secret?: string;
                    /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                    tenant?: string;
                };
            };
        };
        responses: {
            /** @description The webhook is created. */
            201: {
                headers: {
                    /** @description URL of the webhook. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    removeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook is removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    url?: string;
                    types?: string[];
                    /** @description Whether to send events of fan-out items. */
                    items?: boolean;
                    headers?: {
                        [key: string]: string;
                    };
                    note?: string;
                };
            };
        };
        responses: {
            /** @description The updated webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    graceMs?: number;
                    secret?: string;
                };
            };
        };
        responses: {
            /** @description The webhook with its new secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    enableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The updated webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    disableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    why?: string;
                };
            };
        };
        responses: {
            /** @description The updated webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of the test. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                webhook?: string;
                job?: string;
                state?: "pending" | "delivered" | "dead";
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        deliveries: components["schemas"]["Delivery"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery with its body. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryWithBody"];
                };
            };
        };
    };
    replayDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery is queued again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        replayed: number;
                    };
                };
            };
        };
    };
    replayDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uuid
                     * @example 01890a5d-ac96-774b-bcce-b302099a8057
                     */
                    webhook?: string;
                    /**
                     * Format: date-time
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    since?: string;
                    /** @enum {string} */
                    state?: "dead" | "delivered";
                    /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                    tenant?: string;
                };
            };
        };
        responses: {
            /** @description The deliveries are queued again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        replayed: number;
                    };
                };
            };
        };
    };
    listQueues: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All queues. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        queues: components["schemas"]["Queue"][];
                    };
                };
            };
        };
    };
    pauseQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    by?: string;
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The queue is paused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        name: string;
                        isPaused: boolean;
                    };
                };
            };
        };
    };
    resumeQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    by?: string;
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Workers claim its jobs again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        name: string;
                        isPaused: boolean;
                    };
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                ended?: boolean;
                before?: number;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        sessions: components["schemas"]["Session"][];
                    };
                };
            };
        };
    };
    openSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSession"];
            };
        };
        responses: {
            /** @description The session. */
            201: {
                headers: {
                    /** @description URL of the session. */
                    location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenedSession"];
                };
            };
        };
    };
    getRecovery: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of recovery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Recovery"];
                };
            };
        };
    };
    listSchedules: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                kind?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of schedules. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedules: components["schemas"]["Schedule"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    setSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    kind: string;
                    /** @description Any JSON value. */
                    input?: unknown;
                    /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                    tenant?: string;
                    priority?: number;
                    /**
                     * @description A pattern of five fields, or six with seconds first, or a name such as `@daily`.
                     * @example 0 3 * * *
                     */
                    cron?: string;
                    every?: number | string;
                    /** @example Europe/Berlin */
                    tz?: string;
                    jitter?: number | string;
                    /**
                     * Format: date-time
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    startsAt?: string;
                    /**
                     * Format: date-time
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    endsAt?: string;
                    /** @enum {string} */
                    missed?: "skip" | "latest" | "all";
                    missedWindow?: number | string;
                    missedCap?: number;
                    /** @enum {string} */
                    overlap?: "skip" | "buffer" | "allow" | "cancel";
                };
            };
        };
        responses: {
            /** @description The schedule. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
        };
    };
    getSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedule. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
        };
    };
    removeSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedule is removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    previewSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                count?: number;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The next slots. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        slots: string[];
                    };
                };
            };
        };
    };
    listSlots: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of slots. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        slots: components["schemas"]["Slot"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    pauseSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The paused schedule. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
        };
    };
    resumeSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The resumed schedule. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
        };
    };
    triggerSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job is stored. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * Format: uuid
                         * @example 01890a5d-ac96-774b-bcce-b302099a8057
                         */
                        job: string;
                    };
                };
            };
        };
    };
    backfillSchedule: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    from: string;
                    /**
                     * Format: date-time
                     * @example 2026-01-31T12:00:00.000Z
                     */
                    to?: string;
                    /** @description How many slots the range may have. */
                    cap?: number;
                };
            };
        };
        responses: {
            /** @description The jobs are stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backfilled"];
                };
            };
        };
    };
    listLimits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All limits. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limits: components["schemas"]["Limit"][];
                    };
                };
            };
        };
    };
    setLimit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    target: components["schemas"]["LimitTarget"];
                    /** @description How many jobs may be held by workers at the same time. */
                    concurrency?: number;
                    /** @description How many jobs may start in a span of time. */
                    rate?: {
                        limit: number;
                        perMs: number;
                    };
                    /** @description Whether the tenants of a queue take turns. */
                    fair?: boolean;
                    /** @description How many turns a tenant gets for one of another. Default: 1. */
                    weights?: {
                        [key: string]: number;
                    };
                    by?: string;
                };
            };
        };
        responses: {
            /** @description The limit. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: components["schemas"]["Limit"] & (Record<string, never> | null);
                    };
                };
            };
        };
    };
    removeLimit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    target: components["schemas"]["LimitTarget"];
                    by?: string;
                };
            };
        };
        responses: {
            /** @description The limit that applies now; null if there is none. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        limit: components["schemas"]["Limit"] & (Record<string, never> | null);
                    };
                };
            };
        };
    };
    listKinds: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of kinds. */
            200: {
                headers: {
                    /** @description URL of the next page. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        kinds: components["schemas"]["Kind"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
            /** @description The kinds have not changed. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    claimJobs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Default: 1. */
                    most?: number;
                    /** @description Default: 0. */
                    waitMs?: number;
                };
            };
        };
        responses: {
            /** @description Attempts to run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        attempts: components["schemas"]["Attempt"][];
                    };
                };
            };
        };
    };
    beatSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    held: {
                        /**
                         * Format: uuid
                         * @example 01890a5d-ac96-774b-bcce-b302099a8057
                         */
                        id: string;
                        attempt: number;
                    }[];
                };
            };
        };
        responses: {
            /** @description The lease is renewed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * Format: date-time
                         * @example 2026-01-31T12:00:00.000Z
                         */
                        leaseUntil: string;
                        lost: {
                            /**
                             * Format: uuid
                             * @example 01890a5d-ac96-774b-bcce-b302099a8057
                             */
                            id: string;
                            attempt: number;
                            /** @enum {string} */
                            reason: "cancelled" | "lease_lost";
                        }[];
                    };
                };
            };
        };
    };
    reportProgress: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    reports: components["schemas"]["Report"][];
                };
            };
        };
        responses: {
            /** @description One result per attempt. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Written"];
                };
            };
        };
    };
    settleAttempts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    outcomes: components["schemas"]["Outcome"][];
                };
            };
        };
        responses: {
            /** @description One result per attempt. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settled"];
                };
            };
        };
    };
    releaseAttempts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    attempts: {
                        /**
                         * Format: uuid
                         * @example 01890a5d-ac96-774b-bcce-b302099a8057
                         */
                        id: string;
                        attempt: number;
                    }[];
                };
            };
        };
        responses: {
            /** @description One result per attempt. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settled"];
                };
            };
        };
    };
    closeSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Session id, as returned by `openSession`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session is closed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listGroups: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All groups. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: components["schemas"]["Group"][];
                    };
                };
            };
        };
    };
    listParked: {
        parameters: {
            query?: {
                after?: number;
                limit?: number;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of parked events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        parked: components["schemas"]["ParkedEvent"][];
                    };
                };
            };
        };
    };
    replayGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    parked: "all" | number;
                } | {
                    from: ("beginning" | "now") | string | number;
                };
            };
        };
        responses: {
            /** @description Number of parked events to replay, or of partitions that were moved. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        replayed: number;
                    };
                };
            };
        };
    };
    forgetGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group is deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Only for keys for all tenants. A tenant key always uses its own tenant. */
                tenant?: string;
                limit?: number;
                /** @description The `next` value of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: components["schemas"]["ApiKey"][];
                        /** @description The `cursor` of the next page; null on the last page. */
                        next: string | null;
                    };
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    scopes: ("submit" | "read" | "work" | "operate" | "admin")[];
                    /** @description Null for all tenants. Required with a key for all tenants; omit it with a tenant key, which creates keys for its own tenant. */
                    tenant?: string | null;
                    expiresMs?: number;
                };
            };
        };
        responses: {
            /** @description The key. `key` is shown only once. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyWithText"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
