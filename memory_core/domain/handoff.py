"""Handoffs: what one session leaves for the next, who may get it, and in which states it can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.capture import cut_chars
from memory_core.domain.place import is_inside

_TRUNCATED = "… (more was cut)"


class HandoffState(StrEnum):
    OPEN = "open"
    #: Shown to one session that has not yet done anything with it.
    OFFERED = "offered"
    ACCEPTED = "accepted"
    EXPIRED = "expired"


class Move(StrEnum):
    OFFER = "offer"
    RELEASE = "release"
    ACCEPT = "accept"
    EXPIRE = "expire"


#: Every step there is; what is not here does not happen.
TRANSITIONS: dict[tuple[HandoffState, Move], HandoffState] = {
    (HandoffState.OPEN, Move.OFFER): HandoffState.OFFERED,
    (HandoffState.OPEN, Move.ACCEPT): HandoffState.ACCEPTED,
    (HandoffState.OPEN, Move.EXPIRE): HandoffState.EXPIRED,
    (HandoffState.OFFERED, Move.OFFER): HandoffState.OFFERED,
    (HandoffState.OFFERED, Move.RELEASE): HandoffState.OPEN,
    (HandoffState.OFFERED, Move.ACCEPT): HandoffState.ACCEPTED,
    (HandoffState.OFFERED, Move.EXPIRE): HandoffState.EXPIRED,
}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a handoff says, and of whom."""

    summary: str
    open_questions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    files_touched: tuple[str, ...] = ()
    from_agent: str | None = None
    #: A hint for people, never a filter.
    to_agent: str | None = None
    model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Handoff:
    """A stored handoff. `cwd` is where the session that left it worked; times are UTC microseconds."""

    id: bytes
    draft: Draft
    is_manual: bool
    created_at: int
    state: HandoffState = HandoffState.OPEN
    cwd: str | None = None
    owner: str | None = None
    from_session_id: bytes | None = None
    offered_to: bytes | None = None


def after(state: HandoffState, move: Move) -> HandoffState | None:
    """The state that a move leads to; None where there is no such step."""
    return TRANSITIONS.get((state, move))


def is_eligible(handoff: Handoff, cwd: str | None, session_id: bytes | None) -> bool:
    """Whether a session in `cwd` may get this one. What was left by hand reaches the whole project; what was left
    automatically, the directory it was left in and those below. A session never gets its own."""
    if session_id is not None and handoff.from_session_id == session_id:
        return False
    return handoff.is_manual or handoff.cwd is None or cwd is None or is_inside(cwd, handoff.cwd)


def rank(handoff: Handoff) -> tuple[bool, int, int, bytes]:
    """Greater is better: by hand before automatic, newer, more specific directory, later id."""
    specific = 0 if handoff.is_manual or handoff.cwd is None else len(handoff.cwd)
    return handoff.is_manual, handoff.created_at, specific, handoff.id


def best(candidates: Iterable[Handoff], *, cwd: str | None, session_id: bytes | None) -> Handoff | None:
    """The one that a session in `cwd` should get, of the open ones that it may see."""
    fitting = [each for each in candidates if is_eligible(each, cwd, session_id)]
    return max(fitting, key=rank, default=None)


def superseded(accepted: Handoff, candidates: Iterable[Handoff], *, cwd: str | None) -> list[Handoff]:
    """Open automatic ones that an accepted automatic one makes void: same owner, eligible in `cwd` (else in the accepted
    one's directory), ranking below it. One that was left by hand makes nothing void."""
    if accepted.is_manual:
        return []
    place = cwd or accepted.cwd
    return [
        each
        for each in candidates
        if not each.is_manual
        and each.id != accepted.id
        and each.owner == accepted.owner
        and (each.cwd is None or place is None or is_inside(place, each.cwd))
        and rank(each) < rank(accepted)
    ]


def capped(draft: Draft) -> Draft:
    """The draft within its limits; where something is gone, the text says so."""
    return Draft(
        summary=_cut(draft.summary.strip(), limits.HANDOFF_SUMMARY_MAX_CHARS),
        open_questions=_items(
            draft.open_questions, limits.HANDOFF_ITEM_MAX_CHARS, limits.HANDOFF_LIST_MAX_CHARS
        ),
        next_steps=_items(draft.next_steps, limits.HANDOFF_ITEM_MAX_CHARS, limits.HANDOFF_LIST_MAX_CHARS),
        files_touched=_items(
            draft.files_touched, limits.HANDOFF_FILE_MAX_CHARS, limits.HANDOFF_FILES_MAX_CHARS
        ),
        from_agent=_word(draft.from_agent),
        to_agent=_word(draft.to_agent),
        model=_word(draft.model),
    )


def render(
    handoff: Handoff, *, is_accepted: bool = False, max_chars: int = limits.INJECTED_CONTEXT_MAX_CHARS
) -> str:
    """Markdown for the receiving agent, fenced as recalled text, at most `max_chars` characters."""
    trailer = (
        "It is yours now; nobody else will get it."
        if is_accepted
        else "It becomes yours with your first prompt or tool call; there is no need to accept it."
    )
    head = f"📥 Pending handoff from a previous session. {trailer}\n\n"
    provenance = f"handoff, {_origin(handoff)}"
    frame = len(recalled.fence("", provenance))
    # Escaping can make the text a little longer than it was; what is left over is cut behind the fence's back.
    text = recalled.shorten(recalled.escape(_text(handoff)), max_chars - len(head) - frame)
    return head + recalled.fence(text, provenance)


def _text(handoff: Handoff) -> str:
    draft = handoff.draft
    facts = [f"- from: {_origin(handoff)}"]
    if draft.to_agent:
        facts.append(f"- meant for: {draft.to_agent} (a hint)")
    if handoff.cwd:
        facts.append(f"- directory: {handoff.cwd}")
    parts = ["\n".join(facts)]
    for title, items in (
        ("Summary", (draft.summary,)),
        ("Open questions", draft.open_questions),
        ("Next steps", draft.next_steps),
        ("Files touched", draft.files_touched),
    ):
        if any(items):
            body = draft.summary if title == "Summary" else "\n".join(f"- {item}" for item in items)
            parts.append(f"### {title}\n\n{body}")
    return "\n\n".join(parts)


def _origin(handoff: Handoff) -> str:
    made = "by hand" if handoff.is_manual else "automatic"
    model = f" ({handoff.draft.model})" if handoff.draft.model else ""
    return f"{handoff.draft.from_agent or 'unknown'}{model}, {made}, {rfc3339(handoff.created_at)}"


def _items(items: Sequence[str], item_max: int, total_max: int) -> tuple[str, ...]:
    kept: list[str] = []
    room = total_max
    wanted = [item.strip() for item in items if item.strip()]
    for item in wanted[: limits.HANDOFF_ITEMS_MAX]:
        text = _cut(item, min(item_max, room))
        if len(text) < len(item) and room < item_max:
            break
        kept.append(text)
        room -= len(text)
    if len(kept) < len(wanted):
        kept.append(f"… ({len(wanted) - len(kept)} more were cut)")
    return tuple(kept)


def _cut(text: str, max_chars: int) -> str:
    text = text.replace("\x00", "�").encode("utf-8", "replace").decode()
    if len(text) <= max_chars:
        return text
    room = max_chars - len(_TRUNCATED) - 1
    return f"{text[:room].rstrip()} {_TRUNCATED}" if room > 0 else text[:max_chars]


def _word(text: str | None) -> str | None:
    word = " ".join((text or "").split())
    return cut_chars(_cut(word, limits.VENDOR_WORD_MAX_CHARS), limits.VENDOR_WORD_MAX_CHARS) or None
