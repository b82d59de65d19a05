"""Redacting a whole JSON value: keys and values are joined to one text, scanned once, and cut apart again.

So a name finds its value, a key block that is spread over a list of lines is seen, and a payload
of twenty short strings costs one scan. What finds the secrets is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memory_core import limits
from memory_core.redaction import marker, scan, strength
from memory_core.redaction.lazy import lazy_pattern
from memory_core.redaction.private import drop_private
from memory_core.redaction.scan import Budget, Finding, Redacted

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes milliseconds to load
    from typing import Any

#: Finds secrets in UTF-8 bytes within a budget; findings may overlap. What it raises costs the whole value.
Finder = Callable[[bytes, Budget], list[Finding]]
#: Makes the budget of a text of so many bytes.
BudgetFor = Callable[[int], Budget]

#: Findings are looked for again in the redacted text until there are none; more rounds mean it never settles.
ROUNDS_MAX = 5

# Tuples and not unions: `isinstance` with a union costs three times as much, and this runs for each text of each event.
_LISTS = (list, tuple)
_NUMBERS = (int, float)
#: Keys that are kept when a value could not be scanned: too wordy to be a secret.
_PLAIN_KEY = lazy_pattern(r"[a-z_]{1,40}", re.ASCII)


class RedactedValue:
    """A JSON value without its secrets, and how many of each kind there were."""

    __slots__ = ("counts", "value")

    def __init__(self, value: Any, counts: dict[str, int]) -> None:
        self.value = value
        self.counts = counts

    @property
    def is_unscanned(self) -> bool:
        """The value could not be scanned; each text in it was replaced as a whole."""
        return marker.UNSCANNED in self.counts


class _Unsettled(Exception):
    """Replacing findings keeps making new ones."""


def redact_text(text: str, finder: Finder, budget_for: BudgetFor, key: bytes) -> Redacted:
    """See `client.redact`."""
    try:
        strings = _Strings()
        strings.add(text, b"")
        counts = strings.redact(finder, budget_for, key)
        return Redacted(strings.texts()[0], counts)
    except Exception:  # fail closed: an error must never let the text through
        return Redacted(_unscanned(text, key), {marker.UNSCANNED: 1})


def redact_value(value: Any, finder: Finder, budget_for: BudgetFor, key: bytes) -> RedactedValue:
    """See `client.redact_json`."""
    try:
        strings = _Strings()
        _collect(value, strings, "", 0)
        counts = strings.redact(finder, budget_for, key)
        return RedactedValue(_rebuild(value, iter(strings.texts())), counts)
    except Exception:  # fail closed: an error must never let the value through
        return RedactedValue(_without_texts(value, key, 0), {marker.UNSCANNED: 1})


class _Strings:
    """The texts of a value in order, as bytes, with what separates them in the joined text."""

    def __init__(self) -> None:
        self._originals: list[str] = []
        self._parts: list[bytes] = []
        self._separators: list[bytes] = []
        self._changed: set[int] = set()
        #: Index of a value whose key names a secret → that key.
        self._named: dict[int, str] = {}
        self._private = 0

    def add(self, text: str, separator: bytes, name: str = "") -> None:
        index = len(self._parts)
        part = raw = text.encode("utf-8", "replace")
        if b"<" in part:
            part, dropped = drop_private(part)
            self._private += dropped
        if len(part) > limits.FIELD_REDACTED_MAX_BYTES:
            part = scan.clip(part)
        if part is not raw or (b"?" in raw and not text.isascii() and raw.decode() != text):
            self._changed.add(index)  # shortened, or a lone surrogate was replaced
        if name and strength.is_secret_name(name):
            self._named[index] = name
        self._originals.append(text)
        self._parts.append(part)
        self._separators.append(separator)

    def redact(self, finder: Finder, budget_for: BudgetFor, key: bytes) -> dict[str, int]:
        counts: dict[str, int] = {"private": self._private} if self._private else {}
        budget = None
        for _ in range(ROUNDS_MAX):
            joined = self._joined()
            budget = budget or budget_for(len(joined))
            findings = scan.merge(finder(joined, budget) + self._named_findings(), marker.spans(joined))
            if not findings or not self._apply(findings, key, counts):
                return counts
        raise _Unsettled

    def texts(self) -> list[str]:
        if not self._changed:
            return self._originals
        return [
            self._parts[i].decode("utf-8", "replace") if i in self._changed else text
            for i, text in enumerate(self._originals)
        ]

    def _joined(self) -> bytes:
        if len(self._parts) == 1:
            return self._parts[0]
        pieces = [b""] * (2 * len(self._parts))
        pieces[::2], pieces[1::2] = self._parts, self._separators
        return b"".join(pieces)

    def _named_findings(self) -> list[Finding]:
        if not self._named:
            return []
        findings: list[Finding] = []
        start = 0
        for index, (part, separator) in enumerate(zip(self._parts, self._separators, strict=True)):
            name = self._named.get(index)
            if name and strength.is_assigned_secret(name, part, quoted=True):
                findings.append((start, start + len(part), "secret"))
            start += len(part) + len(separator)
        return findings

    def _apply(self, findings: list[Finding], key: bytes, counts: dict[str, int]) -> bool:
        """Replace in each part what the findings cover of it; whether anything was."""
        start = 0
        pending = 0
        replaced = False
        for index, part in enumerate(self._parts):
            end = start + len(part)
            while pending < len(findings) and findings[pending][1] <= start:
                pending += 1
            inside: list[Finding] = []
            at = pending
            while at < len(findings) and findings[at][0] < end:
                first, last, kind = findings[at]
                inside.append((max(first, start) - start, min(last, end) - start, kind))
                at += 1
            if inside and part:
                self._parts[index] = scan.clip(scan.replace(part, inside, key, counts))
                self._changed.add(index)
                replaced = True
            start = end + len(self._separators[index])
        return replaced


def _collect(value: Any, strings: _Strings, name: str, depth: int) -> None:
    if isinstance(value, str):
        strings.add(value, b"\n", name)
    elif isinstance(value, dict):
        if depth > limits.REDACTED_DEPTH_MAX:
            raise RecursionError
        for key, item in _untyped(value).items():
            if isinstance(item, str):
                strings.add(key, b": ")
                strings.add(item, b"\n", key)
            else:
                strings.add(key, b":\n")
                if item is not None and not isinstance(item, _NUMBERS):
                    _collect(item, strings, key, depth + 1)
    elif isinstance(value, _LISTS):
        if depth > limits.REDACTED_DEPTH_MAX:
            raise RecursionError
        for item in _untyped(value):
            if isinstance(item, str):
                strings.add(item, b"\n", name)
            else:
                _collect(item, strings, name, depth + 1)


def _untyped(value: Any) -> Any:
    """`value` again, for a type checker that cannot know what it holds."""
    return value


def _shape(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "dict"
    return "list" if isinstance(value, _LISTS) else ""


def _rebuild(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, dict):
        rebuilt: dict[str, Any] = {}
        for key, item in _untyped(value).items():
            new_key = next(texts)
            while new_key in rebuilt:
                new_key += "~"  # two secrets with one marker: neither value may be lost
            if isinstance(item, _NUMBERS) and strength.is_secret_number(key, item):
                rebuilt[new_key] = "[REDACTED:number:0000]"
            else:
                rebuilt[new_key] = _rebuild(item, texts)
        return rebuilt
    if isinstance(value, _LISTS):
        return [next(texts) if isinstance(item, str) else _rebuild(item, texts) for item in _untyped(value)]
    return value


def _without_texts(value: Any, key: bytes, depth: int) -> Any:
    """The shape of a value with a marker in place of each text."""
    if _shape(value) == "dict" and depth <= limits.REDACTED_DEPTH_MAX:
        return {
            name if _PLAIN_KEY.fullmatch(name) else _unscanned(name, key): _without_texts(
                item, key, depth + 1
            )
            for name, item in value.items()
        }
    if _shape(value) == "list" and depth <= limits.REDACTED_DEPTH_MAX:
        return [_without_texts(item, key, depth + 1) for item in value]
    if value is None or isinstance(value, bool):
        return value
    return _unscanned("" if _shape(value) else str(value), key)


def _unscanned(text: str, key: bytes) -> str:
    return marker.marker(marker.UNSCANNED, text.encode("utf-8", "replace"), key).decode()
