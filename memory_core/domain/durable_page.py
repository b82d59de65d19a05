"""Exact events of a session as its page and its handoff see them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from memory_core import limits
from memory_core.domain.capture import cut_chars, first_line
from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.excerpt import Excerpt, TranscriptReader, Voice
from memory_core.domain.session_event import SessionEvent
from memory_core.domain.session_page import Observed

_SPOKEN: Final = {
    Voice.PROMPT: EventKind.USER_PROMPT,
    Voice.ANSWER: EventKind.STOP,
    Voice.SUMMARY: EventKind.POST_COMPACTION,
}


def observed(events: Iterable[SessionEvent]) -> list[Observed]:
    """What was asked, answered, called and summed up, in its order. A call has the outcome of its result."""
    reader, found = TranscriptReader(), list[Observed]()
    #: Of each tool, where its calls without a result stand.
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for event in events:
        for excerpt in reader.read(event.sequence, event.kind.value, event.payload_json):
            if excerpt.voice is Voice.RESULT:
                if waiting[excerpt.tool]:
                    index = waiting[excerpt.tool].popleft()
                    outcome = Outcome.ERROR if excerpt.is_error else Outcome.SUCCESS
                    found[index] = replace(found[index], outcome=outcome)
            elif excerpt.voice is Voice.CALL:
                waiting[excerpt.tool].append(len(found))
                found.append(_called(excerpt, event.created_at))
            elif excerpt.voice in _SPOKEN:
                found.append(_spoken(excerpt, event.created_at))
    return found


def _spoken(excerpt: Excerpt, at: int) -> Observed:
    kind = _SPOKEN[excerpt.voice]
    return Observed(kind=kind, title=_title(excerpt.text), at=at, body=excerpt.text)


def _called(excerpt: Excerpt, at: int) -> Observed:
    about = first_line(excerpt.text)
    return Observed(
        kind=EventKind.POST_TOOL_USE,
        title=_title(f"{excerpt.tool}: {about}" if about else excerpt.tool),
        at=at,
        tool=excerpt.tool,
        tool_family="file" if excerpt.paths else "non-file",
        command=None if excerpt.paths else about or None,
        paths=excerpt.paths,
    )


def _title(text: str) -> str:
    """As long as that of what hooks tell."""
    return cut_chars(first_line(text), limits.TITLE_MAX_CHARS)
