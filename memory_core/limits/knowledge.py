"""Knowledge: single facts with their versions, and what of them is recalled unasked."""

from __future__ import annotations

from memory_core.limits.sizes import KIB, MIB
from memory_core.limits.wiki import PAGE_BODY_MAX_BYTES

# --- knowledge ----------------------------------------------------------------------------------
KNOWLEDGE_KEY_MAX_BYTES = 256
#: A fact lies in a page of its own, together with the front matter that says whose it is.
KNOWLEDGE_CONTENT_MAX_BYTES = PAGE_BODY_MAX_BYTES - 8 * KIB
#: What the table takes: facts that were written into their files by hand may be a little longer.
KNOWLEDGE_STORED_MAX_BYTES = 1 * MIB
#: No entry has more versions; a further one is refused.
KNOWLEDGE_VERSION_MAX = 2**32 - 1
KNOWLEDGE_QUERY_MAX_BYTES = 256
#: Entries of one answer, and their text in all; one entry is always given.
KNOWLEDGE_LIST_DEFAULT = 20
KNOWLEDGE_LIST_MAX = 100
KNOWLEDGE_LIST_MAX_BYTES = 4 * MIB
#: Of a fact, what a list shows to people.
KNOWLEDGE_EXCERPT_MAX_CHARS = 200

#: What is recalled unasked: from this confidence on, so many entries, so many bytes of JSON. Settings can change it.
RECALL_CONFIDENCE_MIN = 0.70
RECALL_ENTRIES = 8
RECALL_BYTES = 6_144
RECALL_ENTRIES_MAX = 100
RECALL_BYTES_MAX = 1 * MIB
#: An automatic change of what somebody wrote by hand takes so much confidence.
OVERRULE_CONFIDENCE_MIN = 0.70
