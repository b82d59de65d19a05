"""Knowledge from a transcript without a model: what a person asked to be remembered, conventions, decisions.

Each rule gives back a sentence as it was said; none concludes anything. What may hold a secret is never kept; what
speaks of a passing state is kept only where a person asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from memory_core import limits
from memory_core.domain.capture import cut_bytes
from memory_core.domain.distillation import Candidate, Upsert, checked
from memory_core.domain.excerpt import Excerpt, Voice
from memory_core.domain.page import short_hash
from memory_core.domain.statements import (
    is_convention,
    is_decision,
    is_passing,
    may_hold_secret,
    sentences,
    told_to_remember,
)

#: Above and below what is recalled without being asked for (0.70).
TOLD_CONFIDENCE: Final = 0.9
FOUND_CONFIDENCE: Final = 0.5
_MARK_CHARS: Final = 8
_WORDS = re.compile(r"[^\W_]+(?:['’./:_@+-]+[^\W_]+)*")


def distil(excerpts: Iterable[Excerpt]) -> tuple[Candidate, ...]:
    """Candidates with keys that are unique, what was told first and of each sort the newest; never more than the most
    there may be."""
    told: dict[str, Candidate] = {}
    found: dict[str, Candidate] = {}
    for excerpt in excerpts:
        for sentence, confidence in _statements(excerpt):
            key = key_of(sentence)
            if not key:
                continue
            # Said again, it is new again.
            into = told if confidence == TOLD_CONFIDENCE else found
            into.pop(key, None)
            into[key] = Upsert(key=key, content=sentence, confidence=confidence)
    newest = [*reversed(told.values()), *(each for key, each in reversed(found.items()) if key not in told)]
    return checked(newest[: limits.DISTILLATION_ASKED_FOR])


def key_of(statement: str) -> str:
    """The words of a statement, in lower case: the same words are the same fact, whatever stands between them. Of a long one
    the first words, and a mark of all of them."""
    words = " ".join(_WORDS.findall(statement.casefold()))
    if len(words) <= limits.STATEMENT_KEY_MAX_CHARS:
        return cut_bytes(words, limits.KNOWLEDGE_KEY_MAX_BYTES)
    first = words[: limits.STATEMENT_KEY_MAX_CHARS]
    # Not inside a word, where there are spaces at all.
    first = first[: first.rfind(" ")] if " " in first else first
    return f"{cut_bytes(first, limits.KNOWLEDGE_KEY_MAX_BYTES - _MARK_CHARS - 1)} {short_hash(words)}"


def _statements(excerpt: Excerpt) -> Iterator[tuple[str, float]]:
    if excerpt.voice not in (Voice.PROMPT, Voice.ANSWER):
        return
    is_person = excerpt.voice is Voice.PROMPT
    for sentence in sentences(excerpt.text):
        told = told_to_remember(sentence) if is_person else None
        if told is not None:
            confidence = TOLD_CONFIDENCE
        elif is_decision(sentence) or (is_person and is_convention(sentence)):
            if is_passing(sentence):
                continue
            told, confidence = sentence, FOUND_CONFIDENCE
        else:
            continue
        if not may_hold_secret(sentence):
            yield told, confidence
