"""The part of a transcript that fits: whole where it can be, else what tells most of it. And what fits into a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memory_core import limits
from memory_core.domain.excerpt import Excerpt, Voice

#: What stays first where not everything fits; of one rank the newest stay.
_RANKS: Final = {
    Voice.SUMMARY: 0,
    Voice.PROMPT: 1,
    Voice.ANSWER: 2,
    Voice.ERROR: 3,
    Voice.RESULT: 4,
    Voice.CALL: 5,
}


class TranscriptWindow:
    """Takes the excerpts of a transcript in their order, and never holds more than twice of `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: list[Excerpt] = []
        self._size = 0
        self._left_out = 0
        self._is_cut = False

    def add(self, excerpts: Iterable[Excerpt]) -> None:
        for excerpt in excerpts:
            self._is_cut = self._is_cut or excerpt.is_cut
            self._kept.append(excerpt)
            self._size += excerpt.size_bytes
            if self._size > 2 * self._max_bytes:
                self._narrow()

    @property
    def is_whole(self) -> bool:
        """Whether what it holds is all that was said. Asked after `excerpts`."""
        return not self._left_out and not self._is_cut

    @property
    def left_out(self) -> int:
        """Excerpts that did not fit. Asked after `excerpts`."""
        return self._left_out

    def excerpts(self) -> tuple[Excerpt, ...]:
        """What fits into `max_bytes`, in its order."""
        self._narrow()
        return tuple(self._kept)

    def _narrow(self) -> None:
        if self._size <= self._max_bytes:
            return
        order = sorted(range(len(self._kept)), key=lambda at: (_RANKS[self._kept[at].voice], -at))
        room, kept = self._max_bytes, list[int]()
        for at in order:
            size = self._kept[at].size_bytes
            if size <= room:
                room -= size
                kept.append(at)
        self._left_out += len(self._kept) - len(kept)
        self._kept = [self._kept[at] for at in sorted(kept)]
        self._size = self._max_bytes - room


def window(excerpts: Iterable[Excerpt], max_bytes: int) -> tuple[Excerpt, ...]:
    """Of some excerpts, those that tell most in `max_bytes`."""
    made = TranscriptWindow(max_bytes)
    made.add(excerpts)
    return made.excerpts()


def size_bytes(excerpts: Iterable[Excerpt]) -> int:
    return sum(excerpt.size_bytes for excerpt in excerpts)


def output_tokens(context_tokens: int, configured_tokens: int) -> int:
    """How long an answer may be: never more than a quarter of the model's context."""
    quarter = max(1, context_tokens // 4)
    return max(1, min(limits.SOURCE_OUTPUT_MAX_TOKENS, configured_tokens, quarter))


def source_max_bytes(context_tokens: int, output_max_tokens: int) -> int:
    """How much of a transcript a model may be shown. A byte counts as a token, which no tokenizer exceeds in practice."""
    room = context_tokens - output_max_tokens - limits.SOURCE_PROMPT_RESERVE_BYTES
    return max(0, min(room, limits.SOURCE_MAX_BYTES))
