"""Redaction at the gate: the native scanner, the shared rules, and the context layer, in linear time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.redaction import context, document, rules, views
from memory_core.redaction.document import RedactedValue
from memory_core.redaction.linear import LinearRules, compile_linear
from memory_core.redaction.native import NativeScanner
from memory_core.redaction.scan import Budget, Finding, Redacted

#: The native scanner's time limit is by the wall clock, and on a busy machine that runs several times faster.
_NATIVE_PATIENCE = 4
#: How often it may begin anew where the wall clock ran out and the thread had hardly run.
_NATIVE_TRIES = 5


class Redactor:
    """Removes secrets from what the gate receives. Build it once, before the web server forks."""

    def __init__(
        self, key: bytes, cache_dir: Path | None = None, cpu_seconds: Callable[[], float] = time.thread_time
    ) -> None:
        """`key` is the install's key (markers); `cache_dir` is where the native scanner keeps its rules.

        The budget is counted in the thread's own CPU seconds: a machine that is busy with other
        things must not cost a memory.
        """
        self._key = key
        self._cpu_seconds = cpu_seconds
        self._native = NativeScanner(cache_dir)
        self._base64 = compile_linear(views.BASE64_PATTERN)
        self._rules = LinearRules(rules.RULES + context.RULES)

    def redact_text(self, text: str) -> Redacted:
        """`text` without private parts and secrets; see `client.redact` for what is promised.

        It gives up, and replaces the whole text, after `limits.REDACTION_SECONDS_PER_MIB`.
        """
        return document.redact_text(text, self._find, self._budget, self._key)

    def redact_value(self, value: Any) -> RedactedValue:
        """A JSON value with keys and texts redacted, scanned as one text."""
        return document.redact_value(value, self._find, self._budget, self._key)

    def _budget(self, size: int) -> Budget:
        seconds = limits.REDACTION_SECONDS_PER_MIB * max(1.0, size / limits.MIB)
        return Budget(seconds, self._cpu_seconds)

    def _find(self, data: bytes, budget: Budget) -> list[Finding]:
        def find(part: bytes) -> list[Finding]:
            return self._native_findings(part, budget) + self._rules.find(part, budget.check)

        return views.find_everywhere(data, find, self._base64.finditer)

    def _native_findings(self, part: bytes, budget: Budget) -> list[Finding]:
        for _ in range(_NATIVE_TRIES - 1):
            try:
                return self._native.find(part, _NATIVE_PATIENCE * budget.check())
            except TimeoutError:
                continue  # `check` ends it where the thread itself has used up its time
        return self._native.find(part, _NATIVE_PATIENCE * budget.check())
