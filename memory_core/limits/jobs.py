"""Jobs, their leases, the pools and the schedules."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- jobs ---------------------------------------------------------------------------------------
#: A claim lasts so long; a worker renews it so often, also while a model is slow.
JOB_LEASE_SECONDS = 300.0
JOB_RENEW_SECONDS = 60.0
#: One claim may compute for so long, unless its kind says otherwise; then what computes is killed.
JOB_RUN_SECONDS = 900.0
#: Counted failures, the last of which ends a job; the pause after the first doubles up to the longest.
JOB_FAILURES_MAX = 3
JOB_BACKOFF_SECONDS = 30.0
JOB_BACKOFF_MAX_SECONDS = 300.0
#: Claims that died without one sign of life and are not counted against the job.
JOB_DEATHS_UNCOUNTED = 2
#: Pauses of a job that was handed back uncounted: somebody else works there, the budget is used up, the provider is
#: busy; and the longest one that a worker may ask for.
JOB_CONTENDED_SECONDS = 30.0
JOB_BUDGET_SECONDS = 300.0
JOB_PROVIDER_BUSY_SECONDS = 60.0
JOB_PAUSE_MAX_SECONDS = 3_600.0
#: Leases that one turn of the writer finds expired, and waiting jobs that it makes due.
JOB_EXPIRED_ROWS = 128
#: After its start the writer lets nothing expire for so long: nobody could renew while it was away.
JOB_START_GRACE_SECONDS = 90.0
#: A wall clock that moved so far against the monotonic one stops expiry for the time of one lease.
JOB_CLOCK_STEP_SECONDS = 30.0
#: Jobs that one claim puts aside before it gives up: of kinds that this version does not know, or about what somebody works with.
JOB_PASSED_OVER_PER_CLAIM = 16
#: What is prepared for a worker, compressed; what it sends back, as JSON.
JOB_INPUT_MAX_BYTES = 4 * MIB
JOB_OUTPUT_MAX_BYTES = 4 * MIB
#: An answer of `/pool` that is longer is compressed.
POOL_COMPRESS_BYTES = 1 * KIB
#: The other bodies of `/pool`.
POOL_BODY_MAX_BYTES = 16 * KIB
#: What a job leaves: JSON of counts and ids; the sentence of its last error.
JOB_RESULT_MAX_BYTES = 4 * KIB
JOB_ERROR_MAX_BYTES = 4 * KIB
JOB_SUBJECT_MAX_CHARS = 512
JOB_CURSOR_MAX_BYTES = 4 * KIB
WORKER_NAME_MAX_CHARS = 128
#: Idle sessions that one slice ends: a long one takes a command's whole time.
IDLE_SESSIONS_PER_SLICE = 2

#: A pool worker that asked for jobs within this time is there; it asks at least every 15 s unless its slots are busy.
POOL_HEARD_SECONDS = 60.0
#: Names of workers that are remembered.
POOL_WORKERS_KNOWN = 256
#: Completed jobs of a kind by which it is told how long a queue will take.
JOBS_TIMED = 20
#: Failed jobs that one answer lists.
JOBS_FAILED_LISTED = 50
#: How far back failed jobs are asked for.
JOBS_FAILED_HOURS_MAX = 8_760

# --- schedules ----------------------------------------------------------------------------------
SCHEDULE_MAX_CHARS = 128
#: The shortest and the longest interval.
SCHEDULE_MIN_SECONDS = 1
SCHEDULE_MAX_SECONDS = 366 * 24 * 3600
#: Projects that one turn of the writer stages jobs for.
SCHEDULE_PROJECTS = 50
#: Slots are remembered so long, and the jobs that they made; of each schedule the newest for ever.
SCHEDULE_SLOT_DAYS = 40
#: Findings of an integrity audit that its job names, and the length of one name.
AUDIT_FINDINGS_MAX = 20
AUDIT_NAME_MAX_CHARS = 240
#: What differs is looked at again after these pauses: an edit is taken in within half a minute.
AUDIT_PAUSES_SECONDS = (2.0, 10.0, 40.0)
