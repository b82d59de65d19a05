"""Limits of language models and embedders."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- language models and embedders --------------------------------------------------------------
#: One call in all: each of its tries, the pauses between them, a repair. The setting `timeout_seconds` changes it.
MODEL_CALL_SECONDS = 300.0
#: Largest value of that setting; a job's run ends after 15 minutes.
MODEL_CALL_SECONDS_MAX = 840.0
MODEL_CONNECT_SECONDS = 10.0
#: How often a call that waits looks whether it was cancelled.
MODEL_POLL_SECONDS = 0.25
#: Tries of one request that a retry can help.
MODEL_TRIES = 3
#: The pause before the second try, doubled before each further one; a provider's own word (`Retry-After`) wins.
MODEL_RETRY_SECONDS = 1.0
#: A provider that asks for a longer pause is not waited for: the call ends, and says how long.
MODEL_RETRY_AFTER_MAX_SECONDS = 30.0
#: Largest answer, headers not counted, as it arrives; reading stops there.
MODEL_ANSWER_MAX_BYTES = 16 * MIB
#: Largest prompt: system text and messages together.
MODEL_PROMPT_MAX_BYTES = 4 * MIB
MODEL_MESSAGES_MAX = 64
#: Tokens of an answer: where nothing else is said, and at most.
MODEL_OUTPUT_TOKENS = 4_096
MODEL_OUTPUT_TOKENS_MAX = 65_536
MODEL_STOP_SEQUENCES_MAX = 4
#: Tokens that a model takes in all, prompt and answer, where the configuration does not say; and the most it may say.
MODEL_CONTEXT_TOKENS = 128_000
MODEL_CONTEXT_TOKENS_MAX = 10_000_000
#: Bytes of a text that may be one token; gives an upper bound of what a prompt costs before it is sent.
MODEL_BYTES_PER_TOKEN_MIN = 3
#: Schemas of structured answers: nesting, properties in all, and how many faults a repair is shown.
ANSWER_SCHEMA_DEPTH_MAX = 8
ANSWER_SCHEMA_PROPERTIES_MAX = 100
ANSWER_FAULTS_SHOWN = 10
#: Of an answer that does not fit, what the model is shown again.
REPAIR_ANSWER_MAX_BYTES = 64 * KIB
API_KEY_MAX_BYTES = 4 * KIB
#: Of one text, what is embedded: the rest of a longer one does not count.
EMBED_TEXT_MAX_BYTES = 8_000
#: Texts of one call, and of one request to the provider.
EMBED_TEXTS_MAX = 2_048
EMBED_REQUEST_TEXTS = 96
EMBED_REQUEST_MAX_BYTES = 256 * KIB
EMBED_DIMENSIONS_MAX = 4_096
