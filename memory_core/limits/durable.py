"""Durable sessions: leases, turns, replay, the tool journal, compaction, assets."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- durable sessions ---------------------------------------------------------------------------
#: A claim of a session lasts so long; each append extends it. Its holder renews it so often.
SESSION_LEASE_SECONDS = 300.0
SESSION_RENEW_SECONDS = 60.0
SESSION_TITLE_MAX_BYTES = 512
MODEL_REFERENCE_MAX_BYTES = 512
#: A directory's identity: the host's name for itself, device and inode in decimal digits, and the path that describes it.
DIRECTORY_HOST_MAX_BYTES = 255
DIRECTORY_NUMBER_MAX_CHARS = 20
DIRECTORY_PATH_MAX_BYTES = 4_096
#: One event's payload, as the JSON text that is stored.
EVENT_PAYLOAD_MAX_BYTES = 4 * MIB
#: A turn is written whole or not at all.
TURN_EVENTS_MAX = 4_096
TURN_MAX_BYTES = 16 * MIB
#: What one command carries of a turn; a longer turn is staged in slices and published at once. A single event may be longer.
TURN_SLICE_EVENTS_MAX = 256
TURN_SLICE_MAX_BYTES = 1 * MIB
#: A checkpoint writes results that are in the journal already, each twice. More of it than this is staged in slices.
CHECKPOINT_SLICE_MAX_BYTES = 3 * MIB
#: Of one JSON value: nesting (the outermost value is 1) and values in it, keys not counted.
DURABLE_JSON_DEPTH_MAX = 64
DURABLE_JSON_NODES_MAX = 65_536
#: Of what was said, what one transaction makes turns of, by which it is found.
SAID_SLICE_EVENTS = 64
SAID_SLICE_BYTES = 128 * KIB
#: A replay, without what a compaction covers.
REPLAY_EVENTS_MAX = 100_000
REPLAY_MAX_BYTES = 64 * MIB
#: What a replay reads in one snapshot, so that a slow reader holds none open.
REPLAY_BATCH_EVENTS = 500
REPLAY_BATCH_BYTES = 1 * MIB
#: Rows of one page of a list, and their text; a page has one row at least.
DURABLE_SESSIONS_PAGE_MAX = 500
EVENTS_PAGE_MAX = 100
DURABLE_PAGE_MAX_BYTES = 16 * MIB
#: Assets that the events of one page, or of one batch of a replay, refer to; one event may have `EVENT_ASSETS_MAX`.
EVENT_PAGE_ASSETS_MAX = 4_096
#: What one command deletes of a session that goes, or of a turn that was never published.
DELETED_ROWS_PER_SLICE = 1_000
DELETED_BYTES_PER_SLICE = 8 * MIB
DELETED_OBSERVATIONS_PER_SLICE = 200
#: Slices that the request waits for; the rest goes with the next maintenance.
DELETED_SLICES_PER_REQUEST = 200
#: A snapshot's configuration, and its authority.
SNAPSHOT_PART_MAX_BYTES = 2 * MIB

# --- the tool journal ---------------------------------------------------------------------------
#: What an active turn was asked, and what its open tool batch has planned and audited (each).
TURN_INPUT_MAX_BYTES = 2 * MIB
TOOL_BATCH_PART_MAX_BYTES = 15 * MIB
#: All that one agent turn may write into its session.
AGENT_TURN_MAX_BYTES = 15 * MIB
AGENT_TURN_EVENTS_MAX = 2_048
TOOL_CALLS_PER_ROUND_MAX = 16
#: One tool's output; all outputs of a turn; all arguments of a turn.
TOOL_OUTPUT_MAX_BYTES = 256 * KIB
TURN_TOOL_OUTPUT_MAX_BYTES = 768 * KIB
TURN_TOOL_ARGUMENTS_MAX_BYTES = 512 * KIB
#: Arguments of one call and its result as stored; the arguments of all calls of a batch together.
TOOL_CALL_PART_MAX_BYTES = 4 * MIB
BATCH_ARGUMENTS_MAX_BYTES = 8 * MIB
#: What a model writes: one field of one round (text, reasoning), and a whole turn.
MODEL_FIELD_MAX_BYTES = 192 * KIB
MODEL_TURN_MAX_BYTES = 768 * KIB
HISTORY_MESSAGES_MAX = 4_096
APPROVAL_TEXT_MAX_BYTES = 4 * KIB
AGENT_TOOL_NAME_MAX_CHARS = 64
STORED_TOOL_NAME_MAX_BYTES = 256
TOOL_SCHEMA_MAX_BYTES = 1 * MIB
TOOL_DESCRIPTION_MAX_BYTES = 16 * KIB
TOOLS_MAX = 256
MODEL_ROUNDS_MAX = 20

# --- compaction ---------------------------------------------------------------------------------
#: Of the context window: above the first a compaction is planned, down to the second.
COMPACTION_TRIGGER_PERCENT = 80
COMPACTION_TARGET_PERCENT = 50
#: The newest turns that no compaction touches.
COMPACTION_PRESERVED_TURNS_DEFAULT = 4
COMPACTION_PRESERVED_TURNS_MAX = 64

# --- assets -------------------------------------------------------------------------------------
ASSET_MAX_BYTES = 128 * MIB
#: A text goes through redaction whole; longer ones are refused, media are kept as they are.
ASSET_TEXT_MAX_BYTES = 256 * KIB
EVENT_ASSETS_MAX = 1_024
SESSION_ASSETS_LISTED_MAX = 100_000
#: Directory entries that one slice of a collection looks at.
ASSET_GC_ENTRIES = 4_096
#: An unfinished file is left alone for so long.
ASSET_UNFINISHED_SECONDS = 3_600.0
ASSET_CHUNK_BYTES = 64 * KIB

# --- maintenance --------------------------------------------------------------------------------
#: Rows that one phase touches in one transaction.
MAINTENANCE_ROWS = 200

# --- imports ------------------------------------------------------------------------------------
#: Versions and tombstones of one entry of knowledge that one command brings in, and jobs of one session.
IMPORT_PARTS_PER_COMMAND = 32
IMPORT_JOBS_PER_COMMAND = 16
#: Ids of one question about what is here already.
IMPORT_KNOWN_MAX = 500
