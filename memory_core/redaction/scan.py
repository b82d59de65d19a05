"""From findings to redacted bytes: merging, sparing what is marked already, replacing, and clipping."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from memory_core import limits
from memory_core.redaction import marker
from memory_core.redaction.rules import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes milliseconds to load
    from typing import Protocol
else:
    Protocol = object

#: Start and end in the scanned bytes, and the kind.
Finding = tuple[int, int, str]
#: (text, text in lower case) → the rules one of whose anchors occurs in it.
Candidates = Callable[[bytes, bytes], Iterable[Rule]]
_NOWHERE = (-1, -1)
_CHECK_EVERY = 64
#: Rules run over so little text in microseconds; asking the CPU clock before each would cost as much again.
_SHORT_BYTES = 16 * 1024


class Match(Protocol):
    """What a match of `re` and of RE2 have in common."""

    def span(self, group: int = 0, /) -> tuple[int, int]: ...


class Pattern(Protocol):
    """What a pattern of `re` and of RE2 have in common."""

    @property
    def groups(self) -> int: ...

    def finditer(self, data: bytes, /) -> Iterator[Match]: ...


class OverBudget(Exception):
    """Scanning takes longer than the text's size allows."""


class Budget:
    """How long scanning may take, on a clock of CPU seconds; made anew for each text."""

    __slots__ = ("_deadline", "_seconds")

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = clock
        self._deadline = clock() + seconds

    def check(self) -> float:
        """Seconds left; raises `OverBudget` when there are none."""
        left = self._deadline - self._seconds()
        if left <= 0:
            raise OverBudget
        return left


class Redacted:
    """A text without its secrets, and how many of each kind there were."""

    __slots__ = ("counts", "text")

    def __init__(self, text: str, counts: dict[str, int]) -> None:
        self.text = text
        self.counts = counts

    @property
    def is_unscanned(self) -> bool:
        """The text could not be scanned and was replaced as a whole."""
        return marker.UNSCANNED in self.counts


def find(
    data: bytes, candidates: Candidates, compiled: Callable[[Rule], Pattern], check: Callable[[], object]
) -> list[Finding]:
    """What the rules find, in no order; findings may overlap. `check` is called once, and over a long text often; what it
    raises ends the scan."""
    findings: list[Finding] = []
    lowered = data.lower()
    check()
    is_long = len(data) > _SHORT_BYTES
    for rule in candidates(data, lowered):
        if is_long:
            check()
        text = lowered if rule.fold else data
        pattern = compiled(rule)
        has_group = pattern.groups > 0
        for number, match in enumerate(pattern.finditer(text)):
            inner = match.span(1) if has_group else _NOWHERE
            findings += [(s, e, rule.kind) for s, e in rule.take(data, match.span(), inner) if s < e]
            if number % _CHECK_EVERY == 0 and is_long:
                check()
    return findings


def merge(findings: list[Finding], kept: list[tuple[int, int]]) -> list[Finding]:
    """Sorted, without overlaps, and without the parts that `kept` (existing markers) covers.

    Overlapping findings become one, which has the kind of the longest.
    """
    ends = [last for _, last in kept]
    if kept:
        # A marker's own kind can read like a name with a value behind it.
        findings = [finding for finding in findings if not _starts_inside(finding[0], kept, ends)]
    merged: list[Finding] = []
    longest = 0
    for start, end, kind in sorted(findings, key=lambda f: (f[0], -f[1])):
        if merged and start < merged[-1][1]:
            first, last, old = merged[-1]
            longer = end - start > longest
            merged[-1] = (first, max(last, end), kind if longer else old)
            longest = max(longest, end - start)
        else:
            merged.append((start, end, kind))
            longest = end - start
    return [piece for finding in merged for piece in _without(finding, kept, ends)] if kept else merged


def _starts_inside(start: int, kept: list[tuple[int, int]], ends: list[int]) -> bool:
    index = bisect_right(ends, start)
    return index < len(kept) and kept[index][0] < start


def _without(finding: Finding, kept: list[tuple[int, int]], ends: list[int]) -> Iterator[Finding]:
    start, end, kind = finding
    for first, last in islice(kept, bisect_right(ends, start), None):
        if first >= end:
            break
        if start < first:
            yield start, first, kind
        start = max(start, last)
    if start < end:
        yield start, end, kind


def replace(data: bytes, findings: list[Finding], key: bytes, counts: dict[str, int]) -> bytes:
    """`data` with a marker for each finding (sorted, without overlaps); adds to `counts`."""
    pieces: list[bytes] = []
    position = 0
    for start, end, kind in findings:
        pieces += (data[position:start], marker.marker(kind, data[start:end], key))
        counts[kind] = counts.get(kind, 0) + 1
        position = end
    pieces.append(data[position:])
    return b"".join(pieces)


def clip(data: bytes, max_bytes: int = limits.FIELD_REDACTED_MAX_BYTES) -> bytes:
    """At most `max_bytes`, cut at white space.

    A secret that the limit cuts in two might not be recognised by its first half, so the last word,
    of up to 4 KiB, goes with the rest.
    """
    if len(data) <= max_bytes:
        return data
    floor = max(0, max_bytes - 4096)
    cut = max(data.rfind(b" ", floor, max_bytes), data.rfind(b"\n", floor, max_bytes))
    return data[: cut if cut >= 0 else floor].decode("utf-8", "ignore").encode()
