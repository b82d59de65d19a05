"""Limits of recall: what is indexed as one unit, and what a search looks at."""

from __future__ import annotations

#: A part of a page or of a long turn that is indexed, and shown, as one.
CHUNK_CHARS = 1_200
#: A shorter part is joined with what follows, across a heading too.
CHUNK_MIN_CHARS = 300
#: Code between fences up to this size is not divided.
CHUNK_CODE_MAX_CHARS = 2_400
CHUNK_HEADING_MAX_CHARS = 200
