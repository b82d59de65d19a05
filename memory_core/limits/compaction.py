"""Compaction and distillation: when they begin, what they read, and how much they may leave."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- compaction ---------------------------------------------------------------------------------
#: Events that one plan looks at.
COMPACTION_EVENTS_MAX = 100_000
CONTEXT_WINDOW_MAX_TOKENS = 100_000_000
#: A summary by rule takes at most a quarter of what it stands for, within these bounds.
SUMMARY_BY_RULE_MIN_BYTES = 1 * KIB
SUMMARY_BY_RULE_MAX_BYTES = 16 * KIB
#: A model's summary; what is longer is cut.
SUMMARY_BY_MODEL_MAX_BYTES = 64 * KIB

# --- what both read -----------------------------------------------------------------------------
#: Of a transcript, what is handed to a worker: whole texts where they fit, else the part that tells most.
TRANSCRIPT_WINDOW_MAX_BYTES = 2 * MIB
#: Of one prompt or answer; of one tool result (its beginning and its end); of a call's arguments.
EXCERPT_TEXT_MAX_BYTES = 16 * KIB
EXCERPT_RESULT_MAX_BYTES = 4 * KIB
EXCERPT_CALL_MAX_BYTES = 2 * KIB
EXCERPT_PATHS_MAX = 32
EXCERPT_TOOL_MAX_CHARS = 128
EXCERPT_ABOUT_MAX_CHARS = 200
#: Calls without a result yet that a reader of a transcript remembers.
EXCERPT_OPEN_CALLS_MAX = 4_096
#: Events that are read at a time for it.
TRANSCRIPT_PAGE_EVENTS = 200
#: What a model may answer with, what is kept free for the prompt itself, and the most that it is shown.
SOURCE_OUTPUT_MAX_TOKENS = 1_024
SOURCE_PROMPT_RESERVE_BYTES = 1_024
SOURCE_MAX_BYTES = 16 * MIB

#: Sessions that one slice of the sweep has written.
UNWRITTEN_SESSIONS_PER_SLICE = 100
#: Of a session that hooks tell of, the observations that are made turns at a time; a longer turn is cut.
HOOK_JOURNAL_OBSERVATIONS = 100

# --- distillation -------------------------------------------------------------------------------
DISTILLATION_CANDIDATES_MAX = 128
#: What one command enters of them: each is a version, a page, a file. A single one may be longer.
CANDIDATES_PER_SLICE = 16
CANDIDATES_PER_SLICE_BYTES = 64 * KIB
#: What a rule finds at most, and what a model is asked for: fewer are better.
DISTILLATION_ASKED_FOR = 32
#: Of one statement that a rule keeps; shorter ones say nothing (one that a person asks to be remembered may be
#: shorter), longer ones are no single fact.
TOLD_MIN_CHARS = 4
STATEMENT_MIN_CHARS = 12
STATEMENT_MAX_CHARS = 600
STATEMENT_KEY_MAX_CHARS = 80
