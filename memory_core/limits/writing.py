"""The writer, the readers beside it, the processes and their logs."""

from __future__ import annotations

from memory_core.limits.sizes import MIB

# --- the writer ---------------------------------------------------------------------------------
BATCH_COMMANDS_MAX = 500
BATCH_SECONDS_MAX = 0.1
BATCH_BYTES_MAX = 4 * MIB
#: After a full disk, batches are this small until the WAL is small again.
RECOVERY_BATCH_COMMANDS = 20
DRAIN_SECONDS_MAX = 2.0
WAL_CHECKPOINT_BYTES = 4 * MIB
#: When nothing waits, a WAL file above this is cut to nothing.
WAL_IDLE_BYTES = 1 * MIB
#: Of the full-text index, joined in one step when nothing waits.
INDEX_MERGE_PAGES = 200
#: How often the writer looks after its own duties and writes its metrics.
DUTY_SECONDS = 1.0
#: Between looks at a broker that does not answer, and at a database that takes no writes.
BROKER_RETRY_SECONDS = 0.2
STORAGE_RETRY_SECONDS = 1.0
#: Of one duty, what one transaction may touch.
DUTY_ROWS = 200
#: When files that could not be put in place are tried again: at first, and after pauses that doubled.
OUTBOX_RETRY_SECONDS = 10.0
OUTBOX_RETRY_MAX_SECONDS = 60.0
#: How often the bodies beside the stream are looked through, and on a disk that gets full also the broker's log.
SWEEP_INCOMING_SECONDS = 3600.0
SHORT_DISK_TIDY_SECONDS = 60.0
DUTY_SESSIONS = 2
PARKED_PER_DUTY = 20
PURGE_SECONDS = 60.0
CAREFUL_TRIES = 3
CAREFUL_PAUSES_SECONDS = (0.0, 1.0, 5.0)
#: Backup files from before a schema upgrade.
SCHEMA_BACKUPS_KEPT = 3
COMMAND_ID_DAYS = 8
FOREIGN_COMMAND_ID_DAYS = 30
#: Identical payloads of one session from two sources within this time are one event.
TWIN_EVENT_SECONDS = 2.0

# --- readers ------------------------------------------------------------------------------------
READ_TRANSACTION_SECONDS = 5.0

# --- the process tree ---------------------------------------------------------------------------
#: A life that was ready for so long ends the row of deaths.
STEADY_SECONDS = 3.0
#: Pause before the n-th start in a row; the last one repeats. Two deaths are forgiven.
RESPAWN_PAUSES_SECONDS = (0.0, 0.2, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: After SIGTERM; what lives then is killed.
DRAIN_TREE_SECONDS = 30.0
#: Without a sign of life from a new process.
START_GRACE_SECONDS = 60.0
#: Without a sign of life (past a declared "busy until") a process hangs.
HANG_SECONDS = 20.0
POOL_HANG_SECONDS = 45.0
#: How often beat rings each queue.
RING_SECONDS = 5.0
#: The supervisor's probes of children that write no heartbeat.
PROBE_SECONDS = 1.0
PROBE_TIMEOUT_SECONDS = 0.25
#: A health check of a container waits so long for an answer.
HEALTH_TIMEOUT_SECONDS = 3.0
#: What Flower remembers.
FLOWER_TASKS_MAX = 5_000
FLOWER_WORKERS_MAX = 100
#: What survives of a `sun_path` (108 bytes with its end mark).
SOCKET_PATH_MAX_BYTES = 107
# --- logs ---------------------------------------------------------------------------------------
LOG_FILE_MAX_BYTES = 10 * MIB
LOG_FILES_KEPT = 5
#: Longest sentence of one record; what is longer is cut.
LOG_MESSAGE_MAX_CHARS = 2_000
