"""The rules on RE2, whose time is linear in the text whatever the text is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from memory_core.redaction.rules import Rule
from memory_core.redaction.scan import Finding, Pattern, find

#: A set of literals needs some hundred kilobytes; if it had too little, it would say *no match*.
_SET_MAX_BYTES = 32 * 1024 * 1024


class LinearRules:
    """Rules compiled once; one pass over the text tells which of them need to run."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._patterns = {rule.pattern: compile_linear(rule.pattern) for rule in rules}
        self._cased = _Anchors([rule for rule in rules if not rule.fold])
        self._folded = _Anchors([rule for rule in rules if rule.fold])

    def find(self, data: bytes, check: Callable[[], object]) -> list[Finding]:
        """See `scan.find`."""
        return find(data, self._candidates, lambda rule: self._patterns[rule.pattern], check)

    def _candidates(self, data: bytes, lowered: bytes) -> list[Rule]:
        return self._cased.rules_in(data) + self._folded.rules_in(lowered)


class _Anchors:
    """Which rules have one of their anchors in a text. Literals only: their automaton cannot grow with the text."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._owners: list[int] = []
        self._set: Any = cast("Any", re2).Set.SearchSet(_options(_SET_MAX_BYTES))
        for index, rule in enumerate(rules):
            for anchor in rule.anchors:
                self._set.Add(cast("Any", re2).escape(anchor))
                self._owners.append(index)
        self._set.Compile()

    def rules_in(self, data: bytes) -> list[Rule]:
        hits: list[int] | None = self._set.Match(data)
        if not hits:
            return []
        return [self._rules[index] for index in sorted({self._owners[hit] for hit in hits})]


def compile_linear(pattern: bytes) -> Pattern:
    return cast("Pattern", cast("Any", re2).compile(pattern, options=_options()))


def _options(max_bytes: int | None = None) -> Any:
    options: Any = cast("Any", re2).Options()
    options.encoding = options.Encoding.LATIN1  # bytes in, bytes out: offsets need no conversion
    options.log_errors = False
    if max_bytes is not None:
        options.max_mem = max_bytes
        options.never_capture = True
    return options
