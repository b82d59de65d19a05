"""Feedback on a page: the signals there are, and what each does to how much the page counts."""

from __future__ import annotations

import unicodedata
from enum import StrEnum

from memory_core import limits

SALIENCE_DEFAULT = 1.0
SALIENCE_MIN = 0.25
SALIENCE_MAX = 2.0
_STEP = 0.25


class Signal(StrEnum):
    HELPFUL = "helpful"
    NOT_HELPFUL = "not_helpful"
    #: Was true once.
    STALE = "stale"
    WRONG = "wrong"


#: They count against the page until somebody writes it anew.
FLAGS = frozenset({Signal.STALE, Signal.WRONG})


def salience_after(salience: float | None, signal: Signal) -> float:
    """A page's salience (None: never rated, 1.0) after a signal, 0.25 to 2.0: a quarter up or down, and down to the
    least at once for what is stale or wrong."""
    if signal in FLAGS:
        return SALIENCE_MIN
    step = _STEP if signal is Signal.HELPFUL else -_STEP
    now = SALIENCE_DEFAULT if salience is None else salience
    return min(max(now + step, SALIENCE_MIN), SALIENCE_MAX)


def clean_reason(text: str | None) -> str | None:
    """A reason on one line without control characters, at most `FEEDBACK_REASON_MAX_CHARS`; None when nothing is left."""
    plain = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") else char for char in text or ""
    )
    line = " ".join(plain.split())
    if len(line) > limits.FEEDBACK_REASON_MAX_CHARS:
        line = line[: limits.FEEDBACK_REASON_MAX_CHARS - 1].rstrip() + "…"
    return line or None
