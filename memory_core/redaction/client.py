"""Redaction at the client, before anything is spooled: the shared rules on `re`, nothing to install."""

from __future__ import annotations

from typing import Any

from memory_core.redaction import document, scan
from memory_core.redaction.document import RedactedValue
from memory_core.redaction.rules import RULES, Rule, compile_with_re
from memory_core.redaction.scan import Finding, Redacted


def redact(text: str, key: bytes) -> Redacted:
    """`text` without private parts and secrets; `key` is the client's own marker key.

    Of the text at most `limits.FIELD_REDACTED_MAX_BYTES` are looked at, the rest is dropped. Never
    raises for any text: what cannot be scanned becomes `[REDACTED:unscanned:xxxx]`. Redacting the
    result again changes nothing.
    """
    return document.redact_text(text, _find, key)


def redact_json(value: Any, key: bytes) -> RedactedValue:
    """A JSON value (dicts, lists, texts, numbers) with its keys and texts redacted as `redact` does."""
    return document.redact_value(value, _find, key)


def _find(data: bytes) -> list[Finding]:
    return scan.find(data, _candidates, compile_with_re)


def _candidates(data: bytes, lowered: bytes) -> list[Rule]:
    found: list[Rule] = []
    for rule in RULES:
        text = lowered if rule.fold else data
        for anchor in rule.anchors:
            if anchor in text:
                found.append(rule)
                break
    return found
