"""Limits of recall: what is indexed as one unit, and what a search looks at."""

from __future__ import annotations

#: A part of a page or of a long turn that is indexed, and shown, as one.
CHUNK_CHARS = 1_200
#: A shorter part is joined with what follows, across a heading too.
CHUNK_MIN_CHARS = 300
#: Code between fences up to this size is not divided.
CHUNK_CODE_MAX_CHARS = 2_400
CHUNK_HEADING_MAX_CHARS = 200

#: Of rows that one word of a question is found in, so many are weighed; a word in more of them tells little.
TERM_ROWS_MAX = 1_000
#: Parts of pages, and turns, whose text is looked at, the best by which words they hold: as many as are asked for, and at least so many.
CHUNKS_WEIGHED_MIN = 60
TURNS_WEIGHED_MIN = 150
#: Of turns three are looked at for each that is given: the best one of a session may stand far behind those of another.
TURNS_WEIGHED_PER_UNIT = 3
#: Units that each stream of a search gives, for each result that is wanted, and at least.
STREAM_UNITS_PER_RESULT = 4
STREAM_UNITS_MIN = 40
#: Searches that are under way at once in one process; what they do in SQLite and numpy can go on side by side.
SEARCHES_AT_ONCE = 2
#: Who waits longer for a turn has one more process started that only searches; so many at most, whatever the number of cores.
SEARCH_WAIT_SECONDS = 0.03
SEARCH_PROCESSES_MAX = 3
#: Until such a process can be asked, for one answer of it, and without a question until it ends.
SEARCH_PROCESS_START_SECONDS = 20.0
SEARCH_PROCESS_ANSWER_SECONDS = 15.0
SEARCH_PROCESS_IDLE_SECONDS = 300.0
#: A question or an answer between them.
SEARCH_MESSAGE_MAX_BYTES = 4_194_304
#: Turns of one session among the results, at least; of many results four fifths.
SESSION_HITS_MIN = 4
#: So many results come as they are ranked; behind them a session that has so many among them lets others go first.
HITS_AS_THEY_COME = 10
SESSION_HITS_LATER = 2
#: Sessions whose best turn is looked at although it is worth little.
SESSIONS_FOUND_MAX = 40

# --- judging the best hits of a search once more --------------------------------------------------
#: Candidates that are judged for each result that is asked for, and at most.
RERANK_PER_RESULT = 3
RERANK_CANDIDATES_MAX = 30
#: Questions that one process has judged at once; one more keeps its order.
RERANKS_AT_ONCE = 4
#: One judgement in all, with tries and a repair.
RERANK_SECONDS = 20
#: What is shown of a question, of a candidate's title and of its text.
RERANK_QUERY_MAX_BYTES = 1_000
RERANK_TITLE_MAX_BYTES = 200
RERANK_TEXT_MAX_BYTES = 600
#: Tokens of the answer with the scores, hidden reasoning too.
RERANK_ANSWER_TOKENS = 2_048
#: A model's call for a question that was not settled by then is taken to have used all that was reserved.
QUESTION_CALL_LOST_SECONDS = 120
