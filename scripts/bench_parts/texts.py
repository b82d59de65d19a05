"""Invented words and events. An event's text follows from its number alone, so that what was stored can be checked.

Words are drawn with Zipf's frequencies from made-up syllables: some in nearly every text, most in few.
"""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_VOCABULARY = 20_000
#: Events go round through so many texts, each under its own marker.
_TEXTS = 64
_MARK_CHARS = len("evt000000x00000000")


class Words:
    """A vocabulary of invented words; the same for the same seed."""

    def __init__(self, seed: int = 7, size: int = _VOCABULARY) -> None:
        chance = random.Random(seed)
        found: dict[str, None] = {}
        while len(found) < size:
            found["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 3, 3, 4))))] = None
        self.all = list(found)
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(size)))

    def some(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self.all, cum_weights=self._weights, k=count)

    def text(self, chance: random.Random, max_bytes: int) -> str:
        """Sentences of at most `max_bytes` bytes."""
        return " ".join(self.some(chance, max_bytes // 5))[:max_bytes].rsplit(" ", 1)[0]


@dataclass(frozen=True)
class Events:
    """The events of one run of load; a fourth are prompts, the others tool uses, as an agent's day goes."""

    #: Six hexadecimal digits, different for each run on one data directory.
    run: str
    #: Of the JSON of one event, about.
    size_bytes: int
    sessions: int = 64

    def marker(self, number: int) -> str:
        return f"evt{self.run}x{number:08d}"

    def text(self, number: int) -> str:
        """What the event says; begins with its marker."""
        return f"{self.marker(number)} {self._texts[number % _TEXTS]}"

    def session(self, number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.run}-{number % self.sessions}"))

    def is_prompt(self, number: int) -> bool:
        return number % 4 == 0

    def payload(self, number: int) -> dict[str, Any]:
        """As Claude Code sends it."""
        common: dict[str, Any] = {
            "session_id": self.session(number),
            "transcript_path": "/home/mira/.claude/projects/-home-mira-src-harbour/session.jsonl",
            "cwd": "/home/mira/src/harbour",
            "permission_mode": "acceptEdits",
        }
        if self.is_prompt(number):
            return {**common, "hook_event_name": "UserPromptSubmit", "prompt": self.text(number)}
        return {
            **common,
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": f"pytest -q tests/test_{number % 97}.py", "timeout": 120000},
            "tool_response": {"stdout": self.text(number), "stderr": "", "interrupted": False},
            "tool_use_id": f"toolu_{self.marker(number)}",
        }

    def query(self, number: int) -> str:
        event = "UserPromptSubmit" if self.is_prompt(number) else "PostToolUse"
        return f"/hook?agent=claude-code&event={event}"

    @cached_property
    def _texts(self) -> list[str]:
        words, chance = _words(), random.Random(11)
        overhead = len(json.dumps(_ENVELOPE)) + _MARK_CHARS
        return [words.text(chance, max(40, self.size_bytes - overhead)) for _ in range(_TEXTS)]


#: About what an event weighs beside its text.
_ENVELOPE = {
    "session_id": "0" * 36,
    "transcript_path": "/home/mira/.claude/projects/-home-mira-src-harbour/session.jsonl",
    "cwd": "/home/mira/src/harbour",
    "permission_mode": "acceptEdits",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "pytest -q tests/test_12.py", "timeout": 120000},
    "tool_response": {"stdout": "", "stderr": "", "interrupted": False},
    "tool_use_id": "toolu_evt000000x00000000",
}
_made: list[Words] = []


def _words() -> Words:
    if not _made:
        _made.append(Words())
    return _made[0]
