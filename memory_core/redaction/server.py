"""Redaction at the gate: the native scanner, the shared rules, and the context layer, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import Clock, SystemClock
from memory_core.redaction import context, document, rules, views
from memory_core.redaction.document import RedactedValue
from memory_core.redaction.linear import LinearRules
from memory_core.redaction.native import NativeScanner
from memory_core.redaction.scan import Finding, Redacted


class OverBudget(Exception):
    """Scanning took longer than the text's size allows."""


class Redactor:
    """Removes secrets from what the gate receives. Build it once, before the web server forks."""

    def __init__(self, key: bytes, cache_dir: Path | None = None, clock: Clock | None = None) -> None:
        """`key` is the install's key (markers); `cache_dir` is where the native scanner keeps its rules."""
        self._key = key
        self._clock = clock or SystemClock()
        self._native = NativeScanner(cache_dir)
        self._rules = LinearRules(rules.RULES + context.RULES)

    def redact_text(self, text: str) -> Redacted:
        """`text` without private parts and secrets; see `client.redact` for what is promised.

        Beyond the client's rules it looks through terminal colours, invisible characters, joined
        lines, escapes, percent-encoding and base64. It gives up, and replaces the whole text, after
        `limits.REDACTION_SECONDS_PER_MIB`.
        """
        return document.redact_text(text, self._finder(len(text)), self._key)

    def redact_value(self, value: Any) -> RedactedValue:
        """A JSON value with keys and texts redacted, scanned as one text."""
        return document.redact_value(value, self._finder(0), self._key)

    def _finder(self, size: int) -> Callable[[bytes], list[Finding]]:
        start = self._clock.monotonic()

        def find(data: bytes) -> list[Finding]:
            budget = limits.REDACTION_SECONDS_PER_MIB * max(1.0, max(size, len(data)) / limits.MIB)
            return self._find(data, start + budget)

        return find

    def _find(self, data: bytes, deadline: float) -> list[Finding]:
        findings = self._find_plain(data, deadline)
        for view in views.views(data):
            findings += [
                (*view.origin(s, e), kind) for s, e, kind in self._find_plain(view.data, deadline) if s < e
            ]
        for start, end, decoded in views.base64_runs(data):
            inner = self._find_plain(decoded, deadline)
            if inner:
                findings.append((start, end, inner[0][2]))
        return findings

    def _find_plain(self, data: bytes, deadline: float) -> list[Finding]:
        remaining = deadline - self._clock.monotonic()
        if remaining <= 0:
            raise OverBudget
        return self._rules.find(data) + self._native.find(data, remaining)
