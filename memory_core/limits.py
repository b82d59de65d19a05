"""Every limit of the system, in one table. Units are in the names; the reference page is `docs/limits.md`."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

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

# --- the writer ---------------------------------------------------------------------------------
BATCH_COMMANDS_MAX = 500
BATCH_SECONDS_MAX = 0.1
BATCH_BYTES_MAX = 4 * MIB
COMMAND_SECONDS_MAX = 0.05
#: After a full disk, batches are this small until the WAL is small again.
RECOVERY_BATCH_COMMANDS = 20
DRAIN_SECONDS_MAX = 2.0
WAL_CHECKPOINT_BYTES = 4 * MIB
#: When nothing waits, a WAL file above this is cut to nothing.
WAL_IDLE_BYTES = 1 * MIB
#: How often the writer looks after its own duties and writes its metrics.
DUTY_SECONDS = 1.0
#: Between looks at a broker that does not answer, and at a database that takes no writes.
BROKER_RETRY_SECONDS = 0.2
STORAGE_RETRY_SECONDS = 1.0
#: Of one duty, what one transaction may touch.
DUTY_ROWS = 200
#: When files that could not be put in place are tried again.
OUTBOX_RETRY_SECONDS = 10.0
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
OBSERVATION_BODY_MAX_BYTES = 16 * KIB
TITLE_MAX_CHARS = 80
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

# --- pages --------------------------------------------------------------------------------------
#: Not more than what is redacted of one text, or a page would be cut without a word.
PAGE_BODY_MAX_BYTES = FIELD_REDACTED_MAX_BYTES
PAGE_PATH_MAX_CHARS = 240
#: One folder or file name; file systems take 255.
PAGE_NAME_MAX_BYTES = 240
#: A name made of a title, before its hash.
SLUG_MAX_BYTES = 120
PAGE_TITLE_MAX_CHARS = 200
#: Of a title that names a file; what is behind counts by its hash.
TITLE_READ_MAX_CHARS = 2_000
TAGS_MAX = 32
TAG_MAX_CHARS = 64
FRONT_MATTER_MAX_BYTES = 16 * KIB
FRONT_MATTER_DEPTH_MAX = 32
ENTITIES_MAX = 10
ENTITY_MAX_CHARS = 64
#: Of one page, what is read of its links: text and brackets looked at, other pages that it points to.
LINKS_READ_MAX_CHARS = 256 * KIB
LINK_MARKS_MAX = 5_000
LINKS_MAX = 500

#: Index and log of a project are rendered so long after a change, and not more often than that.
RENDER_DELAY_SECONDS = 10
RENDER_PAUSE_SECONDS = 60
#: What they list: pages that were changed last, session pages, entries of a month.
INDEX_PAGES_MAX = 1_000
INDEX_SESSIONS_MAX = 50
LOG_ROWS_MAX = 1_000
#: Rendered files of one turn.
DUTY_RENDERED = 2

#: Of a file that was changed from outside, what is looked at.
EXTERNAL_FILE_MAX_BYTES = 4 * MIB
#: Rows of the file outbox that one step of the writer installs.
OUTBOX_STEP_ROWS = 200

# --- the wiki's history (git) --------------------------------------------------------------------
#: Changes are committed when there was quiet for so long, and at the latest after the second time.
GIT_QUIET_SECONDS = 2.0
GIT_BATCH_MAX_SECONDS = 10.0
#: For one git command; for those that read everything.
GIT_COMMAND_SECONDS = 30.0
GIT_REPAIR_SECONDS = 300.0
#: A lock that no living process is seen to hold is removed when it was there for so long; the second where processes
#: cannot be looked at.
GIT_LOCK_STALE_SECONDS = 2.0
GIT_LOCK_BLIND_SECONDS = 600.0
#: Between tries while somebody else is at work, and after failures (the last one repeats).
GIT_BUSY_SECONDS = 0.5
GIT_PAUSES_SECONDS = (1.0, 5.0, 30.0)
#: After so many failures in a row the repository is looked through and repaired.
GIT_FAILURES_MAX = 3
#: A commit waits so long for its files to be in place; a file that is blocked does not hold it up for ever.
GIT_FILES_WAIT_SECONDS = 10.0
#: When more checkpoints wait than this, they are joined into one commit.
GIT_WAITING_MAX = 64
#: Commits that are looked through for one that a killed process made.
GIT_LOOK_BACK_COMMITS = 200
#: Batches whose commit is remembered in the database; the older ones are found in git alone.
GIT_BATCHES_KEPT = 1_000
#: Pages that one read of a baseline takes.
GIT_BASELINE_ROWS = 200
#: Commits of one process between two looks at the size of the repository; loose objects and packs until it is packed.
GIT_TIDY_COMMITS = 50
GIT_LOOSE_OBJECTS_MAX = 2_000
GIT_PACKS_MAX = 50
#: At the end of the process, for the last commit.
GIT_STOP_SECONDS = 5.0
#: The thread of the history, silent for longer, is said to be away.
GIT_SILENT_SECONDS = 120.0
CHECKPOINT_MESSAGE_MAX_CHARS = 2_000
#: Lines of a commit message that name files.
GIT_MESSAGE_FILES = 20

# --- the wiki as people edit it -----------------------------------------------------------------
#: A whole look at the wiki; what the watcher tells is looked at after its pause.
RECONCILE_SECONDS = 30.0
WATCH_DEBOUNCE_SECONDS = 0.3
#: A file is read when it has stayed as it is for so long; one that never rests is read after the second time.
FILE_QUIET_SECONDS = 0.3
FILE_RESTLESS_SECONDS = 10.0
#: A page's file is deleted, or emptied, when it has been so for so long: editors do that on their way to a new one.
FILE_GONE_SECONDS = 2.0
#: More pages of a project than this, and more than half of them, do not vanish at once without being asked about.
VANISHED_PAGES_MAX = 20
#: Nor do three quarters of a small project, from so many pages on.
VANISHED_WHOLE_MIN = 3
#: What one transaction of the writer takes in from outside: findings, bytes of text, seconds.
FINDINGS_MAX = 100
FINDINGS_MAX_BYTES = 1 * MIB
FINDINGS_SECONDS = 0.03
#: A file whose text is longer is no page; it is reported and left alone.
OUTSIDE_PAGE_MAX_BYTES = PAGE_BODY_MAX_BYTES + FRONT_MATTER_MAX_BYTES
#: Troubles with files that the status names.
WIKI_TROUBLES_SHOWN = 50
#: Projects whose directories are looked at.
PROJECTS_LOOKED_AT_MAX = 100_000
#: While findings are being prepared the writer waits no longer than this for commands.
OUTSIDE_BUSY_BLOCK_MS = 10
#: A thread that looks at the wiki, silent for longer, is said to be away.
WIKI_SILENT_SECONDS = 120.0

# --- the web process ----------------------------------------------------------------------------
#: Size of one request head: its line, the number of header fields, one field.
REQUEST_LINE_MAX_BYTES = 8_190
HEADER_FIELDS_MAX = 64
HEADER_FIELD_MAX_BYTES = 8_190
#: For a request's head, and a body that fits beside it, to arrive whole; then the connection is closed (408).
REQUEST_ARRIVAL_SECONDS = 10.0
#: Head and body up to this size are waited for without a thread.
PATIENT_PEEK_BYTES = 32 * KIB
#: For one request on its thread, slow bodies and slow readers included.
REQUEST_MAX_SECONDS = 60.0
#: Threads that may read bodies longer than that at once; the others stay free for short requests.
LONG_BODY_THREADS = 12
#: For the rest of a body that nobody wants to read, before its connection is closed.
UNREAD_BODY_SECONDS = 0.05
#: An answered connection waits so long, and takes so much, for the other side to close.
CLOSING_SECONDS = 2.0
CLOSING_DRAIN_MAX_BYTES = 16 * MIB
#: How long a token's record is believed; a revoked token works no longer than this.
TOKEN_CACHE_SECONDS = 3.0
TOKENS_CACHED_MAX = 1_024
#: A browser that signed in is remembered this long.
COOKIE_SECONDS = 30 * 24 * 3600
#: After an MCP answer is sent, for what its handler still does.
MCP_AFTERWORK_SECONDS = 5.0
#: A command that somebody waits for takes no effect later than this after it was sent.
RPC_VALID_SECONDS = 30.0
#: For the subscription that replies come over, before anything is appended that waits for one.
SUBSCRIBE_SECONDS = 0.5
#: Commands of several requests that go to the broker in one append.
APPEND_TOGETHER_BYTES = 1 * MIB
#: A web process whose threads are all busy and finish nothing for so long stands still.
WEB_STILL_SECONDS = 15.0
WEB_STOP_SECONDS = 10
#: Rows of one list of the HTTP API.
LIST_DEFAULT = 50
LIST_MAX = 200
#: Projects that one search of the HTTP API names; pages of one page's list of links.
SCOPES_MAX = 25
LINKS_SHOWN_MAX = 200
#: Pages that a project's health names of each sort; an episodic page that nobody touched for longer is stale.
HEALTH_PAGES_MAX = 20
STALE_DAYS = 30
#: How long a browser may keep answers of the HTTP API: lists and hits, a project's pages, one page.
LIST_CACHE_SECONDS = 30
PAGES_CACHE_SECONDS = 60
PAGE_CACHE_SECONDS = 300
#: Sessions that are known to be a subagent's own, for clients that want them left out.
SUBAGENT_SESSIONS_MAX = 4_096
#: A page that is longer, or holds more opening brackets, is shown to a browser as plain text: reading it as
#: Markdown would take a second and more.
MARKDOWN_MAX_CHARS = 100_000
MARKDOWN_BRACKETS_MAX = 4_000
#: The form of the sign-in page.
SIGN_IN_MAX_BYTES = 4 * KIB
#: Fields of one query string.
QUERY_FIELDS_MAX = 64
#: Between attempts to bind the probe port; a probe's connection may last.
PROBE_REBIND_SECONDS = 0.5
PROBE_CONNECTION_SECONDS = 2.0
#: Doorbells that wait for longer than this without one being answered: the consumer of them hangs.
CONSUMER_SILENT_SECONDS = 20.0
#: A writer that is silent for longer makes `/readyz` say so.
WRITER_SILENT_SECONDS = 10.0

# --- recall -------------------------------------------------------------------------------------
QUERY_MAX_CHARS = 1_000
RESULTS_DEFAULT = 10
RESULTS_MAX = 100
SNIPPET_TOKENS = 24
SNIPPET_MAX_CHARS = 240
#: Of a hit, around what matched: a token can be as long as its page.
HIT_SNIPPET_MAX_CHARS = 600
#: One answer of a tool, as JSON text.
ANSWER_MAX_CHARS = 40_000
#: One page is counted as read once per principal in this time.
ACCESS_THROTTLE_SECONDS = 60
#: Pages come upon are told to the writer together, so often, at most so many in one command.
ACCESS_FLUSH_SECONDS = 2.0
ACCESS_PAGES_MAX = 200
#: What a web process remembers of who came upon what.
ACCESS_KNOWN_MAX = 20_000
FEEDBACK_REASON_MAX_CHARS = 500
#: Pages of a project that are always told: rules, slots, pinned ones.
CORE_PAGES_MAX = 24
#: Of one of them, in `memory_briefing`.
CORE_PAGE_TEXT_MAX_CHARS = 1_500
#: The project brief at a session's start.
BRIEF_DEFAULT_CHARS = 4_000
BRIEF_MIN_CHARS = 500
BRIEF_MAX_CHARS = 20_000
BRIEF_RECENT_PAGES = 10
#: Of one raw observation, in `memory_read_session_observations`.
OBSERVATION_TEXT_DEFAULT_CHARS = 2_000
OBSERVATION_TEXT_MAX_CHARS = 8_000
#: A page's front matter in an answer, as JSON text.
FRONT_MATTER_SHOWN_MAX_CHARS = 8_000

# --- the client's spool -------------------------------------------------------------------------
SPOOL_FILES_MAX = 10_000
SPOOL_DAYS = 7
SPOOL_TRIES = 8
SPOOL_BATCH_BYTES = 8 * MIB
SESSION_START_DRAIN_SECONDS = 0.3
CONTEXT_FETCH_SECONDS = 3.0
DETACHED_DRAIN_SECONDS = 300
#: A session that was given no context at its start asks once more, at its first prompt.
PROMPT_CONTEXT_SECONDS = 0.3
#: The shim reads no longer payload than this, and keeps this much of one redacted text and of one entry.
HOOK_STDIN_MAX_BYTES = 32 * MIB
#: How long the shim waits for the end of its payload; hosts wait for the shim.
HOOK_STDIN_SECONDS = 5.0
SHIM_FIELD_MAX_BYTES = 64 * KIB
SPOOL_ENTRY_MAX_BYTES = 1 * MIB
#: Entries that the server refused for good are kept aside, the newest so many.
SPOOL_REJECTED_FILES_MAX = 1_000
#: A temporary file this old belongs to a shim that died before its rename; it is taken in.
SPOOL_ORPHAN_SECONDS = 60
DRAIN_PAUSE_SECONDS = 0.5
DRAIN_PAUSE_MAX_SECONDS = 30.0
DRAIN_REQUEST_SECONDS = 15.0
DRAIN_LOG_MAX_BYTES = 1 * MIB
#: An answer of the server that is longer is not read on.
CLIENT_ANSWER_MAX_BYTES = 4 * MIB

# --- logs ---------------------------------------------------------------------------------------
LOG_FILE_MAX_BYTES = 10 * MIB
LOG_FILES_KEPT = 5
#: Longest sentence of one record; what is longer is cut.
LOG_MESSAGE_MAX_CHARS = 2_000

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
#: What survives of a `sun_path` (108 bytes with its end mark).
SOCKET_PATH_MAX_BYTES = 107
