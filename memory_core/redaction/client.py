"""Redaction at the client, before anything is spooled: all rules on `re`, nothing to install."""

from __future__ import annotations

import time

from memory_core import limits
from memory_core.redaction import context, document, scan, views
from memory_core.redaction.document import RedactedValue
from memory_core.redaction.rules import RULES, Rule, compile_with_re
from memory_core.redaction.scan import Budget, Finding, Redacted

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes milliseconds to load
    from typing import Any

_ALL = RULES + context.RULES


def redact(text: str, key: bytes) -> Redacted:
    """`text` without private parts and secrets; `key` is the client's own marker key.

    Of the text at most `limits.FIELD_REDACTED_MAX_BYTES` are looked at, the rest is dropped. Never
    raises for any text: what cannot be scanned becomes `[REDACTED:unscanned:xxxx]`. Redacting the
    result again changes nothing.
    """
    return document.redact_text(text, _find, _budget, key)


def redact_json(value: Any, key: bytes) -> RedactedValue:
    """A JSON value (dicts, lists, texts, numbers) with its keys and texts redacted as `redact` does."""
    return document.redact_value(value, _find, _budget, key)


def _budget(size: int) -> Budget:
    seconds = limits.CLIENT_REDACTION_SECONDS_PER_MIB * max(1.0, size / limits.MIB)
    return Budget(seconds, time.thread_time)


def _find(data: bytes, budget: Budget) -> list[Finding]:
    def find(part: bytes) -> list[Finding]:
        return scan.find(part, _candidates, compile_with_re, budget.check)

    return views.find_everywhere(data, find)


def _candidates(data: bytes, lowered: bytes) -> list[Rule]:
    found: list[Rule] = []
    for rule in _ALL:
        text = lowered if rule.fold else data
        for anchor in rule.anchors:
            if anchor in text:
                found.append(rule)
                break
    return found
