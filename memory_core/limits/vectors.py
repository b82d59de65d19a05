"""Limits of embeddings and of the search among them."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

# --- vectors -------------------------------------------------------------------------------------
#: Units (page chunks and turns) that one slice of the embedding job looks at, and pieces of text that it embeds.
EMBED_SLICE_UNITS = 256
EMBED_SLICE_TEXTS = 96
#: Vectors that one slice sends back, all together; decides how many texts it takes where vectors are long.
EMBED_SLICE_VECTORS_BYTES = 192 * KIB
#: Text of one slice, all together.
EMBED_SLICE_TEXT_BYTES = 256 * KIB
#: Rows that one slice looks through for what has no vector yet.
EMBED_WINDOW_ROWS = 20_000
#: Of a long turn, how many pieces are embedded; the rest is found by its words only.
EMBED_PIECES_PER_TURN_MAX = 16
#: How often the writer looks whether text came that has no vector yet: what comes within it is one job.
EMBED_LOOK_SECONDS = 5.0
#: After a job that failed for good, until the next one is made.
EMBED_RETRY_SECONDS = 600.0
#: A request to make them.
EMBED_BODY_MAX_BYTES = 4 * KIB
#: Ended jobs of that kind that are kept, to be looked at.
EMBED_JOBS_KEPT = 20
#: Rows that one duty of the writer cleans up, or moves into an index.
VECTOR_DUTY_ROWS = 200
#: How many vectors lie in one block of an index table. A block belongs to one project: large ones are mostly empty.
VECTOR_CHUNK_ROWS = 8
#: The most neighbours that one question to an index table may ask for (sqlite-vec's own limit).
VECTOR_NEIGHBOURS_MAX = 4_096
#: Projects of one question up to which each is asked for by itself in the index table; more are looked through in memory.
VECTOR_PROJECTS_MAX = 2
#: A stored vector whose squared length is not 1, give or take this, is damaged.
VECTOR_LENGTH_ERROR_MAX = 0.05
#: Vectors in the memory of one process; with more, a question to all projects goes without them.
VECTOR_MATRIX_MAX_BYTES = 1_024 * MIB
#: Rows that are read into it at once.
VECTOR_MATRIX_ROWS = 10_000
#: Turns past the last one looked at that are counted; more are not told apart.
EMBED_COUNTED_MAX = 500_000
#: Cosine below which a unit is no answer to a question, and the share of the best one's: something is always nearest.
VECTOR_SIMILARITY_MIN = 0.2
VECTOR_SIMILARITY_SHARE_MIN = 0.5
#: Waiting for the embedding of a question, in all.
QUERY_EMBED_SECONDS = 1.5
#: After an embedder failed a question, the next ones do without it for that long.
QUERY_EMBED_PAUSE_SECONDS = 15.0
#: Embeddings of questions that are kept.
QUERY_EMBED_CACHE = 256
# --- models that run on this machine --------------------------------------------------------------
#: Largest file of an added model, and the longest text that one takes.
LOCAL_MODEL_MAX_BYTES = 2_048 * MIB
LOCAL_MODEL_TOKENS_MAX = 8_192
#: Without a question the process ends.
LOCAL_IDLE_SECONDS = 900.0
#: Texts of one message to it; between two messages a job can be cancelled.
LOCAL_MESSAGE_TEXTS = 16
LOCAL_MESSAGE_MAX_BYTES = 16 * MIB
#: Threads that compute one text. Two were slower than one where others work too.
LOCAL_THREADS = 1
