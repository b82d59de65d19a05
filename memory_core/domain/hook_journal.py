"""What hooks told of a session as the turns of its transcript. Pure: observations in, turns out.

A prompt begins a turn; before a tool runs its call is started, after it ran completed; a stop ends the turn. Hooks run beside each
other, come late, twice or not at all: a call whose end nobody told is `unobserved`, and nothing here is ever an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.session_event import TranscriptKind

MESSAGE: Final = "hook_message"
TURN: Final = "hook_turn"
UNOBSERVED: Final = "unobserved: nobody told how this call ended"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One observation, as far as the journal needs it; `seq` is its place among all."""

    seq: int
    kind: EventKind
    body: str = ""
    tool: str | None = None
    call_id: str | None = None
    command: str | None = None
    paths: tuple[str, ...] = ()
    outcome: Outcome = Outcome.UNKNOWN
    result: str | None = None
    #: Set on what a subagent did: its call is told by the agent that started it.
    agent_id: str | None = None


#: What is said aloud in a turn. The agent's own summary (`POST_COMPACTION`) is for itself, and stands for nothing here.
_SAID: Final = {
    EventKind.USER_PROMPT: TranscriptKind.USER_MESSAGE,
    EventKind.STOP: TranscriptKind.ASSISTANT_MESSAGE,
    EventKind.POST_COMPACTION: TranscriptKind.AUDIT,
}


class ClosedBy(StrEnum):
    """Why a turn ended."""

    STOP = "stop"
    #: The next prompt came, and no stop before it.
    PROMPT = "prompt"
    SESSION_END = "session_end"
    #: It is longer than one turn of a transcript is made; it goes on in the next one.
    CUT = "cut"


_ENDS: Final = {EventKind.STOP: ClosedBy.STOP, EventKind.SESSION_END: ClosedBy.SESSION_END}


@dataclass(frozen=True, kw_only=True)
class HookTurn:
    """Events in their order, each a kind and its payload, the last of which says what the turn was made of."""

    events: tuple[tuple[TranscriptKind, dict[str, Any]], ...]
    closed_by: ClosedBy
    #: Ids of calls whose end nobody told.
    unobserved: tuple[str, ...] = ()


@dataclass
class _Call:
    id: str
    has_own_id: bool
    tool: str
    command: str | None
    paths: tuple[str, ...]
    is_over: bool = False
    result: str = ""
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Turns in their order (one of boundaries only has no events), and the `seq` up to which nothing is left."""

    turns: tuple[HookTurn, ...]
    through: int


def fold(observed: Sequence[Observed], *, after: int, is_ended: bool, must_advance: bool = False) -> Folded:
    """The turns of the observations behind `after`, in their order, where a turn may begin.

    What is left at the end is a turn too if the session `is_ended`. Otherwise it is left for the next time; where these are
    all that are read at once (`must_advance`) and none of their turns has ended, the turn is cut, where no call is open if there is
    such a place.
    """
    turns: list[HookTurn] = []
    open_ones: list[Observed] = []
    through = after
    for each in observed:
        if each.kind is EventKind.USER_PROMPT and each.agent_id is None and open_ones:
            turns.append(_closed(open_ones, ClosedBy.PROMPT))
            through, open_ones = open_ones[-1].seq, []
        open_ones.append(each)
        if each.agent_id is None and each.kind in _ENDS:
            turns.append(_closed(open_ones, _ENDS[each.kind]))
            through, open_ones = each.seq, []
    if open_ones and is_ended:
        turns.append(_closed(open_ones, ClosedBy.SESSION_END))
        through = open_ones[-1].seq
    elif open_ones and must_advance and not turns:
        cut = open_ones[: _settled(open_ones) or len(open_ones)]
        turns.append(_closed(cut, ClosedBy.CUT))
        through = cut[-1].seq
    return Folded(turns=tuple(turns), through=through)


def _settled(some: Sequence[Observed]) -> int:
    """How many observations from the first on leave no call open, at most; 0 where there is no such place."""
    turn, settled = _Turn(), 0
    for count, each in enumerate(some, start=1):
        turn.take(each)
        if all(call.is_over for call in turn.calls):
            settled = count
    return settled


class _Turn:
    """A turn on its way: what was said, and calls in the order in which they were begun."""

    def __init__(self) -> None:
        self.items: list[tuple[TranscriptKind, str] | _Call] = []

    @property
    def calls(self) -> Iterator[_Call]:
        return (item for item in self.items if isinstance(item, _Call))

    def take(self, each: Observed) -> None:
        if each.agent_id is not None:
            return
        if each.kind is EventKind.PRE_TOOL_USE:
            if each.call_id is None or all(call.id != each.call_id for call in self.calls):
                self.items.append(_call(each))
        elif each.kind is EventKind.POST_TOOL_USE:
            self._complete(each)
        elif each.kind in _SAID and each.body.strip():
            self.items.append((_SAID[each.kind], each.body))

    def _complete(self, each: Observed) -> None:
        call = self._call_of(each)
        if call is None:
            # Nobody told that it began.
            call = _call(each)
            self.items.append(call)
        if not call.is_over:
            call.is_over = True
            call.result, call.outcome = each.result or each.body, each.outcome
            call.paths = call.paths or each.paths
            call.command = call.command or each.command

    def _call_of(self, each: Observed) -> _Call | None:
        """The call that an end belongs to: that of its id, else the oldest open one of the same tool and input, else of the tool.
        A call that was begun under another id is another call."""
        by_id = next((call for call in self.calls if call.id == each.call_id), None)
        if by_id is not None:
            return by_id
        open_ones = [
            call
            for call in self.calls
            if not call.is_over
            and call.tool == (each.tool or "unknown")
            and (each.call_id is None or not call.has_own_id)
        ]
        same = (call for call in open_ones if (call.command, call.paths) == (each.command, each.paths))
        return next(same, open_ones[0] if open_ones else None)


def _call(each: Observed) -> _Call:
    return _Call(
        # Of a vendor that names no calls the place of the observation does.
        id=each.call_id or f"observation-{each.seq}",
        has_own_id=each.call_id is not None,
        tool=each.tool or "unknown",
        command=each.command,
        paths=each.paths,
    )


def _closed(some: Sequence[Observed], by: ClosedBy) -> HookTurn:
    turn = _Turn()
    for each in some:
        turn.take(each)
    events: list[tuple[TranscriptKind, dict[str, Any]]] = []
    for item in turn.items:
        events += _of_call(item) if isinstance(item, _Call) else [_message(*item)]
    unobserved = tuple(call.id for call in turn.calls if not call.is_over)
    if events:
        about: dict[str, Any] = {
            "record": TURN,
            "version": 1,
            "first_observation": some[0].seq,
            "last_observation": some[-1].seq,
            "closed_by": by.value,
            "unobserved": list(unobserved),
        }
        events.append((TranscriptKind.AUDIT, about))
    return HookTurn(events=tuple(events), closed_by=by, unobserved=unobserved)


def _of_call(call: _Call) -> list[tuple[TranscriptKind, dict[str, Any]]]:
    """The call and its result stand together, whatever ran beside it: a history in which each call is answered."""
    arguments: dict[str, Any] = {}
    if call.command:
        arguments["command"] = call.command
    if call.paths:
        arguments["paths"] = list(call.paths)
    asked = _payload("assistant", "") | {
        "tool_calls": [{"id": call.id, "name": call.tool, "arguments": arguments}]
    }
    text = call.result if call.is_over else UNOBSERVED
    answered = _payload("tool", text) | {"tool_call_id": call.id, "origin": "tool"}
    if not call.is_over:
        answered["origin"] = "unobserved"
    if call.outcome is Outcome.ERROR:
        answered["is_error"] = True
    return [(TranscriptKind.TOOL_CALL, asked), (TranscriptKind.TOOL_RESULT, answered)]


def _message(kind: TranscriptKind, text: str) -> tuple[TranscriptKind, dict[str, Any]]:
    roles = {TranscriptKind.USER_MESSAGE: "user", TranscriptKind.ASSISTANT_MESSAGE: "assistant"}
    if kind not in roles:
        return kind, {"record": "hook_summary", "version": 1, "text": text}
    return kind, _payload(roles[kind], text)


def _payload(role: str, text: str) -> dict[str, Any]:
    return {
        "record": MESSAGE,
        "version": 1,
        "role": role,
        "content": [{"type": "text", "data": text}] if text else [],
        "tool_calls": [],
        "tool_call_id": None,
    }
