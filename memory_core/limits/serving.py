"""What is given back: the web process and recall."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB

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
#: Tokens that are kept, revoked ones included; the longest time for which one may be given out.
TOKENS_MAX = 1_000
TOKEN_DAYS_MAX = 3_650
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
#: Of an answer that is streamed, what is sent at once.
STREAM_PIECE_BYTES = 64 * KIB
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
#: Beginnings of names that one question asks for.
ASKED_NAMES_MAX = 12
ASKED_NAME_MIN_CHARS = 3
#: Of a beginning that more names have, only names that end with it are taken.
ENTITY_STARTS_COMMON = 256
#: Names that one question is taken for, and a name that more pages say is not asked for beside rarer ones.
ENTITIES_MATCHED_MAX = 64
ENTITY_PAGES_COMMON = 400
#: What is walked from the pages that answer first: steps, pages looked at, ends of one page in one direction, and
#: pages that share a name.
GRAPH_DEPTH = 2
GRAPH_STEPS_MAX = 400
GRAPH_ENDS_MAX = 32
GRAPH_SHARED_MAX = 16
GRAPH_SEEDS = 8
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
#: The sentences of `memory_explore`, and one title in them.
EXPLORE_PROSE_MAX_CHARS = 6_000
EXPLORE_TITLE_MAX_CHARS = 100
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
