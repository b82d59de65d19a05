"""The client on somebody's laptop."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

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
#: An event that waits longer than this is a fault to be told of.
SPOOL_WAIT_SECONDS = 60
DRAIN_PAUSE_SECONDS = 0.5
DRAIN_PAUSE_MAX_SECONDS = 30.0
DRAIN_REQUEST_SECONDS = 15.0
DRAIN_LOG_MAX_BYTES = 1 * MIB
#: An answer of the server that is longer is not read on.
CLIENT_ANSWER_MAX_BYTES = 4 * MIB

# --- a program that runs a durable session ------------------------------------------------------
#: One request; while the server cannot take it or does not answer it is sent again for so long.
DURABLE_REQUEST_SECONDS = 30.0
DURABLE_PATIENCE_SECONDS = 30.0
DURABLE_RETRY_SECONDS = 0.1
#: A lease that is given back because something else failed: one try of so long; then it ends by itself.
DURABLE_LET_GO_SECONDS = 2.0
DURABLE_RETRY_MAX_SECONDS = 5.0
#: Each step of reading a replay.
DURABLE_REPLAY_SECONDS = 60.0
#: An answer that is longer is not read on. The open journal is the longest.
DURABLE_ANSWER_MAX_BYTES = 32 * MIB
#: One line of it: an event of `EVENT_PAYLOAD_MAX_BYTES`, or a snapshot, and what stands around.
DURABLE_REPLAY_LINE_MAX_BYTES = 5 * MIB
#: Replay: its events and what the lines around them take.
DURABLE_REPLAY_ANSWER_MAX_BYTES = 160 * MIB
