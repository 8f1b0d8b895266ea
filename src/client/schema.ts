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
         * @description The latest first. A page may be short, even empty, although more comes: go on until `next` is null.
         *
         *     Needs the scope `read`.
         */
        get: operations["listJobs"];
        put?: never;
        /**
         * Submit a job
         * @description Answers once the job is stored. With `Prefer: wait=10` it answers the whole job as soon as it has ended, if it does so in time; for this the key needs the scope `read`, too.
         *
         *     Needs the scope `submit`.
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
         * @description Up to 5,000 jobs of any kinds: all of them are stored, or none.
         *
         *     Needs the scope `submit`.
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
         * @description With `Prefer: wait=10` it answers when the job has ended, or else after that time. Answers 304 to an `If-None-Match` that still fits.
         *
         *     Needs the scope `read`.
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
         * @description With `Prefer: wait=10` it waits for the end. A partial result says so. While the job goes on, the answer has the outputs of the stages that are done.
         *
         *     Needs the scope `read`.
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
         * @description Whether it waits or runs. Whether there is no such job or it has ended already is decided by the write.
         *
         *     Needs the scope `submit`.
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
         * @description Sends a failed, partial or cancelled job round again: from the stage that failed, or from the start.
         *
         *     Needs the scope `submit`.
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
         * @description Everything that happened to it, oldest first.
         *
         *     Needs the scope `read`.
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
         * @description How far each is.
         *
         *     Needs the scope `read`.
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
         * @description Those of its fan-outs, by stage and position. Each is a job of its own, found by its id.
         *
         *     Needs the scope `read`.
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
    "/v1/jobs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Say why a job is where it is
         * @description What every source of truth says, where they disagree, a verdict in one sentence, what happens by itself and by when, and a repair.
         *
         *     Needs the scope `read`.
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
    "/v1/jobs/{id}/mend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make the repair of a verdict
         * @description Through the same statements as everything else, so a repair that is no longer right does nothing. With `dryRun` it only says what it would do, like `why`; without it, the key needs the scope `operate`.
         *
         *     Needs the scope `read`.
         */
        post: operations["mendJob"];
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
         * @description Oldest first, from a place in the log on; without `after`, from its beginning. A page looks at a bounded number of events, those of a tenant if the key is of one, so it may be short, even empty, although more comes: go on until `next` is null.
         *
         *     Needs the scope `read`.
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
         * @description Server-sent events as they happen. A client that comes back with `Last-Event-ID`, as browsers do by themselves, misses nothing and gets nothing twice.
         *
         *     Needs the scope `read`.
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
         * @description Needs the scope `read`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description It gets what happens from here on, signed with the secret that is shown this once.
         *
         *     Needs the scope `operate`.
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
         * @description Needs the scope `read`.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Remove a webhook
         * @description What waits for it becomes dead letters, which stay listed until they are old.
         *
         *     Needs the scope `operate`.
         */
        delete: operations["removeWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description Only what is given is changed.
         *
         *     Needs the scope `operate`.
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
         * Give a webhook another secret
         * @description For the time of grace, deliveries are signed with both.
         *
         *     Needs the scope `operate`.
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
         * Switch a webhook on
         * @description Needs the scope `operate`.
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
         * Switch a webhook off
         * @description What waits for it, and what comes, becomes dead letters.
         *
         *     Needs the scope `operate`.
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
         * Send a sample to a webhook
         * @description Signed, at once, once; answers what came of it. Tests count as webhooks in flight.
         *
         *     Needs the scope `operate`.
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
         * @description The latest first.
         *
         *     Needs the scope `read`.
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
         * @description Needs the scope `read`.
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
         * Send a delivery once more
         * @description Under its own id.
         *
         *     Needs the scope `operate`.
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
         * Send many deliveries once more
         * @description All dead letters, or what was delivered.
         *
         *     Needs the scope `operate`.
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
         * @description With a key of a tenant, only its own jobs are counted.
         *
         *     Needs the scope `read`.
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
         * @description Its jobs are no longer claimed; what runs continues. `why` shows who paused it and for what reason.
         *
         *     Needs the scope `operate`, and a key for all tenants.
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
         * @description Needs the scope `operate`, and a key for all tenants.
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
         * @description The worker processes that live, or with `ended` those that have ended; the latest first.
         *
         *     Needs the scope `read`, and a key for all tenants.
         */
        get: operations["listSessions"];
        put?: never;
        /**
         * Open a session
         * @description One per worker process. Its lease covers all that it claims, and it is found by no other key. With the key of a tenant, it claims only that tenant’s jobs.
         *
         *     Needs the scope `work`.
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
         * @description Who leads, within what bound lost jobs move again, what was revived lately, and which late writes were refused.
         *
         *     Needs the scope `read`, and a key for all tenants.
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
    "/v1/kinds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List kinds
         * @description Those that workers have registered, and that can be submitted: first those for all tenants, then by tenant and name. A key of a tenant sees those of no other.
         *
         *     Needs the scope `read`.
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
         * @description Answers as soon as there is one, or with none when the time is over.
         *
         *     Needs the scope `work`.
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
         * @description With everything that the worker holds. What it has lost is answered, and must be aborted; what it does not know of is given back.
         *
         *     Needs the scope `work`.
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
         * @description How far attempts are, and lines for their timelines.
         *
         *     Needs the scope `work`.
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
         * @description How they ended; what follows from that, the server decides by the rules of the kind. May be sent again if the answer was lost.
         *
         *     Needs the scope `work`.
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
         * Give attempts back
         * @description Unharmed: it costs no retry.
         *
         *     Needs the scope `work`.
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
         * @description Gives back whatever it still holds.
         *
         *     Needs the scope `work`.
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
         * List groups of readers
         * @description Needs the scope `read`, and a key for all tenants.
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
         * @description Those that it could not handle. The `id` of the last event of a page is the `after` of the next.
         *
         *     Needs the scope `read`, and a key for all tenants.
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
         * Have a group handle events once more
         * @description Parked ones, or everything from a place in the log on.
         *
         *     Needs the scope `operate`, and a key for all tenants.
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
         * Forget a group
         * @description The log is kept for it no more.
         *
         *     Needs the scope `operate`, and a key for all tenants.
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
         * @description The latest first, without their texts.
         *
         *     Needs the scope `admin`.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description The new key can do no more than the one that makes it, and expires no later: without `expiresMs`, together with it.
         *
         *     Needs the scope `admin`.
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
         * @description Every server refuses it within two seconds.
         *
         *     Needs the scope `admin`.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
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
            /** @description The number of the stage that it stands at, from 0. */
            stage: number;
            attempt: number;
            /** @description How often the present stage has failed. */
            failures: number;
            /** @description How many workers the present stage has lost. */
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
            /** @description Any JSON. */
            input?: unknown;
            meta: {
                [key: string]: unknown;
            } | null;
            stages: {
                name: string;
                optional: boolean;
            }[];
            /** @description What its stages have returned so far, by stage. */
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
        };
        Problem: {
            /**
             * @description A URN made of the code.
             * @example urn:holdfast:error:job_not_found
             */
            type: string;
            /** @description What the code means. */
            title: string;
            status: number;
            /**
             * @description Stable; see the list of error codes.
             * @enum {string}
             */
            code: "input_invalid" | "input_too_large" | "not_storable" | "output_invalid" | "output_too_large" | "option_invalid" | "key_conflict" | "unknown_kind" | "kind_invalid" | "id_invalid" | "job_not_found" | "move_illegal" | "job_failed" | "job_cancelled" | "result_timeout" | "timeout" | "handler_failed" | "permanent" | "crashed" | "quarantined" | "item_invalid" | "items_failed" | "barrier_expired" | "barrier_conflict" | "part_unknown" | "owner_unknown" | "owner_failed" | "tenant_missing" | "event_type_unknown" | "group_invalid" | "group_not_found" | "webhook_url_invalid" | "webhook_url_refused" | "webhook_secret_invalid" | "webhook_header_invalid" | "endpoint_not_found" | "too_many_endpoints" | "webhooks_busy" | "delivery_not_found" | "delivery_pending" | "secret_key_wrong" | "session_not_found" | "session_ended" | "kinds_exhausted" | "sessions_exhausted" | "handlers_unresponsive" | "worker_failed" | "config_invalid" | "database_unreachable" | "database_refused" | "database_forbidden" | "database_read_only" | "database_timeout" | "database_overloaded" | "database_full" | "database_failed" | "database_unsupported" | "schema_missing" | "schema_older" | "schema_newer" | "schema_changed" | "embedded_unavailable" | "embedded_start_failed" | "data_folder_in_use" | "data_folder_version" | "data_folder_unusable" | "prove_refused" | "bench_refused" | "module_invalid" | "request_invalid" | "body_malformed" | "body_too_large" | "content_type_unsupported" | "route_not_found" | "method_not_allowed" | "key_missing" | "key_refused" | "key_not_found" | "key_exceeds_maker" | "scope_missing" | "tenant_forbidden" | "host_refused" | "rate_limited" | "waits_exhausted" | "header_invalid" | "headers_too_large" | "request_slow" | "pipeline_too_long" | "connections_exhausted" | "internal" | "not_running";
            /** @description What happened this time, and what to do. */
            detail: string;
            /** @description The X-Request-Id of this request, for whoever reads the logs. */
            requestId: string;
            /** @description More, by code: `issues` of a request that does not fit, for one. */
            details?: {
                [key: string]: unknown;
            };
        };
        NewJob: {
            kind: string;
            /** @description Any JSON. */
            input?: unknown;
            /** @description The same key and input give the same job, however often it is submitted. */
            key?: string;
            /** @description Only with a key for all tenants; a key of a tenant means its own. */
            tenant?: string;
            /**
             * Format: date-time
             * @description Not before this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            runAt?: string;
            delayMs?: number;
            /** @description 1 (first) to 4 (last). */
            priority?: number;
            /** @description Anything small that should travel with the job. */
            meta?: {
                [key: string]: unknown;
            };
            webhook?: {
                url: string;
                /** @description The signing secret, `whsec_…`. */
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
            /** @description The `cursor` of the next page; null if this was the last. */
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
            /** @description The number of the stage that it stands at, from 0. */
            stage: number;
            attempt: number;
            /** @description How often the present stage has failed. */
            failures: number;
            /** @description How many workers the present stage has lost. */
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
            /** @description Whether something is missing: an optional stage failed, or some items did. */
            isPartial: boolean;
            /** @description What the last stage returned; null if it failed. */
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
            /** @description What its stages have returned so far, by stage. */
            outputs: {
                [key: string]: unknown;
            };
        };
        Moved: {
            id: string;
            state: components["schemas"]["State"];
        };
        TimelineEvent: {
            /** @description Its place in the log: pass it on as `after`, or as Last-Event-ID. */
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
            /** @description Any JSON. */
            data?: unknown;
        };
        FanOut: {
            stage: number;
            /** @description Null until all items are there. */
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
            /** @description The class of orphan that it is, if it is one. */
            orphan: string | null;
            /** @description What will happen by itself, and by when. */
            next: {
                what: string;
                /**
                 * Format: date-time
                 * @example 2026-01-31T12:00:00.000Z
                 */
                byAt: string | null;
            } | null;
            /** @description Where the sources contradict each other. */
            disagreements: string[];
            /** @description What every source of truth says. */
            facts: {
                [key: string]: unknown;
            };
            repair: {
                name: string;
                sentence: string;
            } | null;
            /** @description What was to be said when attempts of it failed or lost their workers. */
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
        Mended: {
            repair: string | null;
            sentence: string;
            isApplied: boolean;
            why: components["schemas"]["Why"];
        };
        Event: {
            /** @description Its place in the log: pass it on as `after`, or as Last-Event-ID. */
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
            /** @description Any JSON. */
            data?: unknown;
            job: string | null;
            kind: string | null;
            tenant: string;
            /** @description What the job became by it. */
            state: string | null;
            /** @description If it is about an item of a fan-out: whose, its key, and its place among the items. */
            item: {
                parent: string | null;
                key: string;
                position: number;
            } | null;
        };
        WebhookWithSecret: components["schemas"]["Webhook"] & {
            /** @description Shown this once. */
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
            /** @description The headers that are sent along; what they hold is not shown. */
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
            /** @description Null for the webhook of a job. */
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
            /** @description Exactly what is sent. */
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
            /** @description Jobs that could run this moment. */
            queued: number;
            scheduled: number;
            running: number;
            waiting: number;
            oldestDueMs: number | null;
            workers: number;
            /** @description Whether there were too many to count: the numbers are then the least that there are. */
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
            /** @description The signal or code with which its process ended, if a supervisor saw it. */
            exit: string | null;
            kinds: string[];
            queues: string[];
            concurrency: number;
            running: number;
            /** @description Whether it claims jobs; not so while it drains. */
            isClaiming: boolean;
            /** @description Handlers that took a place at its last heartbeat. */
            busy: number;
            /** @description Handlers that ignored their signal and still run. */
            unresponsive: number;
            /** @description How long a handler had blocked its event loop; 0 if none does. */
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
            /** @description The latest moment at which any lost job moves again. */
            boundMs: number;
            ladder: {
                rung: string;
                when: string;
                boundMs: number;
                made: string;
            }[];
            /** @description Attempts that have lost their workers and were not moved on yet; at most 1,000 are counted. */
            orphans: number;
            /** @description Kinds with due jobs that no living worker serves in their queue. */
            stranded: {
                queue: string;
                kind: string;
                waitingMs: number;
            }[];
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
                /** @description Any JSON. */
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
        Kind: {
            name: string;
            /** @description Whose jobs it decides about; null for all tenants. One that is for all tenants applies first. */
            tenant: string | null;
            queue: string;
            priority: number;
            crashBudget: number;
            stages: {
                name: string;
                optional: boolean;
            }[];
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            seenAt: string;
        };
        OpenedSession: {
            /** @description For the path of its requests. With a key for all tenants, the number of the session; else a text that means nothing. */
            id: string;
            leaseMs: number;
            /** @description How often to send a heartbeat. */
            heartbeatMs: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00.000Z
             */
            leaseUntil: string;
        };
        NewSession: {
            /** @description At most as many as the setting `kindsPerSession` says. */
            kinds: {
                name: string;
                queue?: string;
                priority?: number;
                crashBudget?: number;
                /** @description Without any: one stage called `run`. */
                stages?: {
                    name: string;
                    /** @description If it fails for good, the job ends partial. */
                    optional?: boolean;
                    timeoutMs?: number;
                    retries?: number;
                    backoff?: {
                        baseMs?: number;
                        factor?: number;
                        maxMs?: number;
                    };
                }[];
            }[];
            host?: string;
            pid?: number;
            concurrency?: number;
            /** @description How long the worker is taken for alive after its last heartbeat. */
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
            /** @description The name of the stage to run. */
            stage: string;
            /** @description Any JSON. */
            input?: unknown;
            /** @description What the earlier stages returned, by their names. */
            outputs: {
                [key: string]: unknown;
            };
            timeoutMs: number;
            /**
             * Format: date-time
             * @description When the attempt is taken for hung and given to another worker.
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
            /** @description Lines for the timeline of the job. */
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
            /** @description Any JSON. */
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
                /** @description Whether no retry can help. */
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
        };
        Group: {
            name: string;
            types: string[] | null;
            /** @description Whether it reads those of the items of fan-outs, too. */
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
            /** @description How many places of the log it is behind. */
            behind: number;
            behindMs: number;
            /** @description The open transaction that holds it back: later events are read when that has ended. */
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
            /** @description Who made it; `key <id>` if a key did. */
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
            /** @description Who made it; `key <id>` if a key did. */
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
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                /** @description Any of queued, running, waiting, succeeded, partial, failed, cancelled, with commas between. */
                state?: string;
                /** @description Whether the items of fan-outs are listed too. */
                items?: boolean;
                since?: string;
                until?: string;
                limit?: number;
                /** @description What `next` of the page before said. */
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
                    /** @description Where the next page is. */
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
                /** @description The same key and body give the same answer, however often it is sent; another body is refused. */
                "idempotency-key"?: string;
                /** @description `wait=10` waits up to so many seconds (at most 60) for the job to end. */
                prefer?: string;
                /** @description The trace that the job becomes a part of (W3C). */
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
            /** @description The job, which has ended within the time of `Prefer: wait`. */
            200: {
                headers: {
                    /** @description The wait. */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description The job was stored, or had been by an earlier request with the same key. */
            202: {
                headers: {
                    /** @description Where the job is. */
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
                /** @description The same key and body give the same answer, however often it is sent; another body is refused. */
                "idempotency-key"?: string;
                /** @description The trace that the job becomes a part of (W3C). */
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
            /** @description All were stored, in this order. */
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
                /** @description `wait=10` waits up to so many seconds (at most 60) for the job to end. */
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
            /** @description It is as you know it. */
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
                /** @description `wait=10` waits up to so many seconds (at most 60) for the job to end. */
                prefer?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the job returned. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Result"];
                };
            };
            /** @description The job has not ended yet; ask again. What its stages have returned so far is there already. */
            202: {
                headers: {
                    /** @description After how many seconds to ask again. */
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
            /** @description It is cancelled; its worker is told to stop. */
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
            /** @description It is queued again. */
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
                /** @description What `next` of the page before said. */
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
                        /** @description The `cursor` of the next page; null if this was the last. */
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
            /** @description By stage. */
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
                /** @description What `next` of the page before said. */
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
                        /** @description The `cursor` of the next page; null if this was the last. */
                        next: string | null;
                    };
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
    mendJob: {
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
            /** @description What was done, and how it stands now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Mended"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Which events: job.failed, job.*, several with commas between. */
                types?: string;
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                /** @description Only those of this job. */
                job?: string;
                /** @description Whether also those of the items of fan-outs. Default: only if `job` names one. */
                items?: boolean;
                /** @description Only those behind this one: the `id` of an event. */
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events. `next` is the `after` of the next page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events: components["schemas"]["Event"][];
                        /** @description The `cursor` of the next page; null if this was the last. */
                        next: string | null;
                    };
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Which events: job.failed, job.*, several with commas between. */
                types?: string;
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                /** @description Only those of this job. */
                job?: string;
                /** @description Whether also those of the items of fan-outs. Default: only if `job` names one. */
                items?: boolean;
                /** @description Only those behind this one: the `id` of an event. */
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
            /** @description A stream; each event has its `id`, its type as `event`, and the event as JSON in `data`. */
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
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                limit?: number;
                /** @description What `next` of the page before said. */
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
                        /** @description The `cursor` of the next page; null if this was the last. */
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
                    /** @description Whether it gets the events of the items of fan-outs, too. */
                    items?: boolean;
                    headers?: {
                        [key: string]: string;
                    };
                    note?: string;
                    secret?: string;
                    /** @description Only with a key for all tenants; a key of a tenant means its own. */
                    tenant?: string;
                };
            };
        };
        responses: {
            /** @description It was created. */
            201: {
                headers: {
                    /** @description Where it is. */
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
            /** @description It is gone. */
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
                    /** @description Whether it gets the events of the items of fan-outs, too. */
                    items?: boolean;
                    headers?: {
                        [key: string]: string;
                    };
                    note?: string;
                };
            };
        };
        responses: {
            /** @description The webhook as it is now. */
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
            /** @description The webhook with its secret. */
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
            /** @description The webhook as it is now. */
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
            /** @description The webhook as it is now. */
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
            /** @description What came of it. */
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
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                limit?: number;
                /** @description What `next` of the page before said. */
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
                        /** @description The `cursor` of the next page; null if this was the last. */
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
            /** @description It is due again. */
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
                    /** @description Only with a key for all tenants; a key of a tenant means its own. */
                    tenant?: string;
                };
            };
        };
        responses: {
            /** @description They are due again. */
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
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
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
            /** @description It is paused. */
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
        requestBody?: never;
        responses: {
            /** @description Its jobs are claimed again. */
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
                    /** @description Where it is. */
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
            /** @description Recovery. */
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
    listKinds: {
        parameters: {
            query?: {
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                limit?: number;
                /** @description What `next` of the page before said. */
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
                    /** @description Where the next page is. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        kinds: components["schemas"]["Kind"][];
                        /** @description The `cursor` of the next page; null if this was the last. */
                        next: string | null;
                    };
                };
            };
            /** @description They are as you know them. */
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
                /** @description As `openSession` answered it. */
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
            /** @description What it has to run. */
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
                /** @description As `openSession` answered it. */
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
            /** @description The lease stands. */
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
                /** @description As `openSession` answered it. */
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
            /** @description What became of each. */
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
                /** @description As `openSession` answered it. */
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
            /** @description What became of each. */
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
                /** @description As `openSession` answered it. */
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
            /** @description What became of each. */
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
                /** @description As `openSession` answered it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is closed. */
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
            /** @description How many events, or partitions. */
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
            /** @description It is gone. */
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
                /** @description Only with a key for all tenants; a key of a tenant means its own. */
                tenant?: string;
                limit?: number;
                /** @description What `next` of the page before said. */
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
                        /** @description The `cursor` of the next page; null if this was the last. */
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
                    /** @description Null for all tenants; must be said. A key of a tenant makes keys of its own, and leaves it out. */
                    tenant?: string | null;
                    expiresMs?: number;
                };
            };
        };
        responses: {
            /** @description The key. Its text is shown this once. */
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
            /** @description It is useless. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
