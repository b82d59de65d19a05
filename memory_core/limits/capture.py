"""What is taken in: the gate, the broker, events, sessions and handoffs."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- the gate -----------------------------------------------------------------------------------
#: Largest request body.
REQUEST_BODY_MAX_BYTES = 10 * MIB
#: Of one text field, what is looked at (redacted); the caps below apply after that.
FIELD_REDACTED_MAX_BYTES = 256 * KIB
#: Time to redact; a text that takes longer is replaced as a whole. Texts under 1 MiB have this much.
REDACTION_SECONDS_PER_MIB = 0.25
#: The same at the client, which has no linear engine; less than a host waits for a hook.
CLIENT_REDACTION_SECONDS_PER_MIB = 2.0
#: Deepest nesting of a JSON body.
JSON_DEPTH_MAX = 64
#: Lists and objects of a JSON body together.
JSON_CONTAINERS_MAX = 500_000
#: What is redacted: a body's value lies some levels deep in its command. Deeper ones are replaced as a whole.
REDACTED_DEPTH_MAX = JSON_DEPTH_MAX + 16
#: Items of one `/hook/batch`.
BATCH_ITEMS_MAX = 256
#: Idempotency key of a client: characters of `[A-Za-z0-9_-]`.
CLIENT_KEY_MAX_CHARS = 64
#: Threads of a web process, and how many of them may wait for a reply at once.
WEB_THREADS = 16
REPLY_WAITERS_MAX = 6
REPLY_WAIT_SECONDS = 5.0
HANDOFF_WAIT_SECONDS = 1.0
#: Admission: marks at which nothing more is taken (429).
BACKLOG_MAX_BYTES = 128 * MIB
BACKLOG_MAX_ENTRIES = 20_000
BACKLOG_MAX_AGE_SECONDS = 5.0
FREE_DISK_MIN_BYTES = 500 * MIB
FREE_DISK_MIN_SHARE = 0.05
DISK_CACHE_SECONDS = 0.25
BALLAST_BYTES = 64 * MIB
#: Bodies above this lie beside the stream, in `incoming/`.
INLINE_COMMAND_MAX_BYTES = 256 * KIB
#: A body beside the stream that no command names is removed after this time.
INCOMING_ORPHAN_SECONDS = 24 * 3600

# --- the broker ---------------------------------------------------------------------------------
BROKER_MAXMEMORY_BYTES = 256 * MIB
BROKER_CONNECT_SECONDS = 0.1
BROKER_APPEND_SECONDS = 0.5
#: What the writer and a subscriber allow the broker for an answer, beyond the time that a read blocks.
BROKER_ANSWER_SECONDS = 3.0
#: What a refused client is told to wait; a full disk empties slower than a queue.
RETRY_AFTER_SECONDS = 1.0
RETRY_AFTER_DISK_SECONDS = 5.0
#: The backlog may hold this part of the free disk: 500 x 8 KB of commands made 16 MB of WAL.
DISK_BYTES_PER_BACKLOG_BYTE = 5
DOORBELL_TTL_MS = 3_000
DOORBELL_EXPIRES_SECONDS = 10

# --- what is kept of an event (bytes of UTF-8) --------------------------------------------------
PROMPT_MAX_BYTES = 16 * KIB
SUMMARY_MAX_BYTES = 16 * KIB
ASSISTANT_MAX_BYTES = 16 * KIB
NOTIFICATION_MAX_BYTES = 2_000
TOOL_OUTCOME_MAX_BYTES = 2_000
TOOL_COMMAND_MAX_BYTES = 2_000
TOOL_PATHS_MAX = 32
TOOL_PATHS_MAX_BYTES = 8 * KIB
TOOL_NAME_MAX_CHARS = 128
EXTENSION_BODY_MAX_BYTES = 2_000
#: Ids and short words that a vendor sends: tool-use id, agent id, model, reason.
VENDOR_WORD_MAX_CHARS = 256
TITLE_MAX_CHARS = 80
#: What who spoke is called.
SPEAKER_NAME_MAX_CHARS = 64
EXTENSION_MAX_CHARS = 64
#: The marker file of a directory, and the policy of capture in it.
MARKER_MAX_BYTES = 64 * KIB
CAPTURE_PATTERNS_MAX = 128
CAPTURE_PATTERN_MAX_CHARS = 1_024
CAPTURE_PATHS_MAX = 32
CAPTURE_PATH_MAX_CHARS = 4_096
#: Characters of a pattern times characters of a path, over all of them.
CAPTURE_STEPS_MAX = 1_000_000
SOURCE_EVENT_MAX_CHARS = 128
SESSION_KEY_MAX_CHARS = 512
PATH_MAX_BYTES = 4096
#: Names of workspaces and projects.
NAME_MAX_CHARS = 64
#: A client's time further than this from ours is not believed.
OCCURRED_EARLIER_MAX_DAYS = 30
OCCURRED_LATER_MAX_SECONDS = 300

# --- sessions and handoffs ----------------------------------------------------------------------
SESSION_PAGE_OBSERVATIONS_MAX = 256
#: How far back in a session its prompts are looked for, so that ending a huge one stays quick.
SESSION_PAGE_LOOK_BACK_ROWS = 4_000
#: Of one prompt or answer, in a session page and in an automatic handoff.
SESSION_PAGE_TEXT_MAX_CHARS = 1_500
#: A session page's text; beyond it texts are shortened. Its front matter comes on top, within the limit of every page.
SESSION_PAGE_MAX_BYTES = FIELD_REDACTED_MAX_BYTES - 16 * KIB
#: Of a durable session, the last events that fit into this.
SESSION_PAGE_EVENT_BYTES = 1 * MIB
SESSION_IDLE_SECONDS = 2 * 60 * 60
LATE_EVENT_DEBOUNCE_SECONDS = 30
HANDOFF_OFFER_SECONDS = 15 * 60
HANDOFF_SUMMARY_MAX_CHARS = 3_000
HANDOFF_ITEM_MAX_CHARS = 1_500
HANDOFF_LIST_MAX_CHARS = 6_000
HANDOFF_ITEMS_MAX = 20
HANDOFF_FILE_MAX_CHARS = 512
HANDOFF_FILES_MAX_CHARS = 4_096
#: Claude Code puts longer additional context into a file with only a preview in view.
INJECTED_CONTEXT_MAX_CHARS = 9_500
