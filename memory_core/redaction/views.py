"""Looking through wrappings: the same text without colours, unescaped, decoded; offsets lead back.

A view is only made when its trigger occurs, so plain text costs a few searches.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from memory_core.redaction.lazy import lazy_pattern
from memory_core.redaction.scan import Finding, Match, OverBudget

#: Terminal colours, zero-width and soft characters, backslash-newline.
_NOISE = lazy_pattern(
    rb"\x1b(?:\[[0-9;:?]{0,32}[ -/]{0,2}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])"
    rb"|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad|\\\r?\n[ \t]{0,64}"
)
_ESCAPE = lazy_pattern(rb"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\"'\\/nrtbf])")
_PERCENT = lazy_pattern(rb"%[0-9a-fA-F]{2}")
BASE64_PATTERN = rb"[A-Za-z0-9+/_-]{24,}={0,2}"
_BASE64 = lazy_pattern(BASE64_PATTERN)
_SIMPLE = {0x6E: b"\n", 0x72: b"\r", 0x74: b"\t", 0x62: b"\x08", 0x66: b"\x0c"}

#: How deep escapes are looked through: JSON in JSON in JSON.
ESCAPE_DEPTH = 2
#: Most escapes of one text that are looked through; a text with more is not kept.
EDITS_MAX = 100_000
#: Longest run of base64 that is decoded, bytes; longer ones are pictures and archives.
BASE64_MAX_BYTES = 16 * 1024

Edit = tuple[int, int, bytes]


class View:
    """A text made from another by edits, and the way back."""

    __slots__ = ("_ends", "_origins", "_parent", "_starts", "data")

    def __init__(self, source: bytes, edits: list[Edit], parent: View | None = None) -> None:
        pieces: list[bytes] = []
        #: Segment i of the view begins at starts[i] and came from origins[i]:ends[i] of the source;
        #: a segment as long as its origin is a copy, any other stands for the whole of it.
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._ends: list[int] = []
        self._parent = parent
        position = length = 0
        for start, end, text in edits:
            for piece, first, last in ((source[position:start], position, start), (text, start, end)):
                if piece:
                    self._starts.append(length)
                    self._origins.append(first)
                    self._ends.append(last)
                    pieces.append(piece)
                    length += len(piece)
            position = end
        self._starts.append(length)
        self._origins.append(position)
        self._ends.append(len(source))
        pieces.append(source[position:])
        self.data = b"".join(pieces)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the part `start:end` of this view lies in the text at the bottom."""
        first, last = self._place(start)[0], self._place(end - 1)[1]
        return self._parent.origin(first, last) if self._parent else (first, last)

    def _place(self, at: int) -> tuple[int, int]:
        index = bisect_right(self._starts, at) - 1
        begin, origin, end = self._starts[index], self._origins[index], self._ends[index]
        following = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.data)
        if following - begin == end - origin:
            return origin + at - begin, origin + at - begin + 1
        return origin, end


def find_everywhere(
    data: bytes,
    find: Callable[[bytes], list[Finding]],
    runs: Callable[[bytes], Iterable[Match]] | None = None,
) -> list[Finding]:
    """What `find` sees in the text, in its views and in what is encoded in it; offsets are those of the text.

    `runs` finds `BASE64_PATTERN`; a linear engine does that ten times faster than `re`.
    """
    findings = find(data)
    for view in views(data):
        findings += [(*view.origin(start, end), kind) for start, end, kind in find(view.data) if start < end]
    for start, end, decoded in base64_runs(data, runs or _BASE64.finditer):
        inner = find(decoded)
        if inner:
            findings.append((start, end, inner[0][2]))
    return findings


def views(data: bytes) -> Iterator[View]:
    """The views of `data` that differ from it and may show more."""
    view: View | None = None
    source = data
    if b"\x1b" in data or b"\\\n" in data or b"\\\r" in data or not data.isascii() or b"\xc2\xad" in data:
        edits = _edits(_NOISE, data, lambda _: b"")
        if edits:
            view = View(data, edits)
            source = view.data
            yield view
    for _ in range(ESCAPE_DEPTH):
        if b"\\" not in source:
            break
        edits = _edits(_ESCAPE, source, _unescape)
        if not edits:
            break
        view = View(source, edits, view)
        source = view.data
        yield view
    if b"%" in source:
        edits = _edits(_PERCENT, source, lambda found: bytes.fromhex(found[1:].decode()))
        if edits:
            yield View(source, edits, view)


def _edits(pattern: re.Pattern[bytes], data: bytes, replacement: Callable[[bytes], bytes]) -> list[Edit]:
    edits = [
        (*match.span(), replacement(match.group())) for match in islice(pattern.finditer(data), EDITS_MAX)
    ]
    if len(edits) == EDITS_MAX:
        raise OverBudget
    return edits


def base64_runs(data: bytes, runs: Callable[[bytes], Iterable[Match]]) -> Iterator[tuple[int, int, bytes]]:
    """Runs of base64 that hold text: start, end, and the text."""
    for match in runs(data):
        start, end = match.span()
        if end - start > BASE64_MAX_BYTES:
            continue
        decoded = _decode(data[start:end])
        if decoded is not None:
            yield start, end, decoded


def _decode(run: bytes) -> bytes | None:
    body = run.rstrip(b"=")
    if len(body) % 4 == 1:
        body = body[:-1]
    # Sixteen characters tell text from bytes before the whole is decoded.
    if not _is_text(_to_bytes(body[:16])):
        return None
    decoded = _to_bytes(body)
    return decoded if decoded is not None and _is_text(decoded) else None


def _to_bytes(body: bytes) -> bytes | None:
    try:
        return binascii.a2b_base64(body.translate(_URL_SAFE) + b"=" * (-len(body) % 4))
    except binascii.Error:
        return None


def _is_text(data: bytes | None) -> bool:
    return data is not None and not data.translate(None, _TEXT)


_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TEXT = bytes(range(0x20, 0x7F)) + b"\t\r\n"


def _unescape(escape: bytes) -> bytes:
    sign = escape[1]
    if sign in b"ux":
        number = int(escape[2:], 16)
        return b"?" if 0xD800 <= number <= 0xDFFF else chr(number).encode()
    return _SIMPLE.get(sign, escape[1:2])
