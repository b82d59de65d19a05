"""When a transcript is compacted, and up to where. Pure: sizes of events in, a boundary out.

A byte of a stored payload counts as one token: an upper bound that needs no tokenizer and is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_core import limits
from memory_core.errors import Corrupt, Invalid


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Raises `Invalid` for numbers that no plan can be made with."""

    context_window_tokens: int
    preserved_turns: int = limits.COMPACTION_PRESERVED_TURNS_DEFAULT

    def __post_init__(self) -> None:
        if not 1 <= self.context_window_tokens <= limits.CONTEXT_WINDOW_MAX_TOKENS:
            raise Invalid(f"context_window lies between 1 and {limits.CONTEXT_WINDOW_MAX_TOKENS} tokens")
        if not 1 <= self.preserved_turns <= limits.COMPACTION_PRESERVED_TURNS_MAX:
            raise Invalid(f"preserve_recent_turns lies between 1 and {limits.COMPACTION_PRESERVED_TURNS_MAX}")

    @property
    def trigger_tokens(self) -> int:
        return (self.context_window_tokens * limits.COMPACTION_TRIGGER_PERCENT + 99) // 100

    @property
    def target_tokens(self) -> int:
        return self.context_window_tokens * limits.COMPACTION_TARGET_PERCENT // 100


@dataclass(frozen=True, kw_only=True)
class EventSize:
    """One event of a transcript, as far as a plan needs it."""

    sequence: int
    turn_id: bytes
    turn_index: int
    turn_size: int
    #: Of its stored payload.
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Events that were written together."""

    first_sequence: int
    last_sequence: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The last compaction that took effect: up to where, and the sequence and size of its summary's event."""

    through_sequence: int
    summary_sequence: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything up to `through_sequence`, the last event of a turn, is to become a summary."""

    through_sequence: int
    current_tokens: int
    trigger_tokens: int
    target_tokens: int
    estimated_removed_tokens: int
    preserved_turns: int


def turns_of(events: Iterable[EventSize]) -> list[Turn]:
    """The turns of events in their order. Raises `Corrupt` where they are not complete turns, one behind the other."""
    turns: list[Turn] = []
    begun: EventSize | None = None
    tokens = 0
    sequence: int | None = None
    index = 0
    for event in events:
        is_next = sequence is None or event.sequence == sequence + 1
        if begun is None:
            begun, tokens, index = event, 0, 0
        is_fitting = (event.turn_id, event.turn_size, event.turn_index) == (
            begun.turn_id,
            begun.turn_size,
            index,
        )
        if not (is_next and is_fitting):
            raise Corrupt(f"the transcript is not in order at event {event.sequence}")
        sequence, index = event.sequence, index + 1
        tokens += max(1, event.size_bytes)
        if index == event.turn_size:
            turns.append(Turn(first_sequence=begun.sequence, last_sequence=event.sequence, tokens=tokens))
            begun = None
    if begun is not None:
        raise Corrupt(f"the transcript ends in the middle of a turn, at event {sequence}")
    return turns


def total_tokens(turns: Iterable[Turn]) -> int:
    """What the turns take of a context window: what counts as its use where the client reports none."""
    return sum(turn.tokens for turn in turns)


def plan(
    turns: Sequence[Turn],
    policy: Policy,
    *,
    current_tokens: int | None = None,
    earlier: Earlier | None = None,
) -> Plan | None:
    """Up to where to compact, or None: the window is not full, or too little of it is older than the newest turns.

    `turns` are those behind `earlier.through_sequence`, the earlier summary among them; `current_tokens` is what the client
    reports of its use, else the turns are counted. The earlier summary takes part as what it is in a replay, the oldest
    text, and is not one of the turns that are preserved; no boundary lies before it, since two summaries never
    stand beside each other.
    """
    current = total_tokens(turns) if current_tokens is None else current_tokens
    if current < policy.trigger_tokens:
        return None
    least = earlier.summary_sequence if earlier is not None else 0
    summaries = [turn for turn in turns if earlier is not None and turn.last_sequence == least]
    said = [turn for turn in turns if turn.last_sequence != least]
    removable = said[: max(0, len(said) - policy.preserved_turns)]
    removed = total_tokens(summaries)
    for at, turn in enumerate(removable):
        removed += turn.tokens
        boundary = turn.last_sequence
        if boundary < least and _covers(said, at, least):
            boundary = least
        if removed >= current - policy.target_tokens and boundary >= least:
            return Plan(
                through_sequence=boundary,
                current_tokens=current,
                trigger_tokens=policy.trigger_tokens,
                target_tokens=policy.target_tokens,
                estimated_removed_tokens=removed,
                preserved_turns=policy.preserved_turns,
            )
    return None


def _covers(said: Sequence[Turn], at: int, least: int) -> bool:
    """Whether the turn is the last one before the earlier summary."""
    return at + 1 == len(said) or said[at + 1].first_sequence > least
