"""Dividing a text into the parts that are found: at headings, then at paragraphs, then where it must be.

A part is a slice of the text, so it is stored as two numbers. Parts do not overlap, and together they hold every character
that is no white space.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.markdown_code import without_code

_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(?P<text>[^\n]*)")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$")
_SENTENCE_END = re.compile(r"[.!?;。！？][\"')\]]*\s|[。！？]")
_BETWEEN = " / "


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One part of a page's body: `body[start:end]`, characters."""

    #: From 0, in the order of the text.
    ord: int
    #: The headings that it stands below, outermost first; empty above the first one.
    heading: str
    start: int
    end: int


@dataclass(frozen=True)
class _Block:
    """Lines that belong together: a paragraph, code between fences, or one heading (`level` from 1, else 0)."""

    start: int
    end: int
    level: int = 0
    heading: str = ""
    is_code: bool = False


def chunks(body: str) -> list[Chunk]:
    """The parts of a page's body; one that is empty for a body without text, so that a title alone is found too."""
    made: list[Chunk] = []
    trail: list[tuple[int, str]] = []
    for part in _packed(_blocks(body)):
        trail = _followed(trail, part[0])
        heading = _BETWEEN.join(text for _, text in trail if text)[: limits.CHUNK_HEADING_MAX_CHARS]
        for block in part[1:]:
            trail = _followed(trail, block)
        for start, end in _cut(body, part):
            made.append(Chunk(ord=len(made), heading=heading, start=start, end=end))
    return made or [Chunk(ord=0, heading="", start=0, end=0)]


def pieces(text: str) -> list[tuple[int, int]]:
    """Where the parts of a long turn begin and end, characters; one that is empty for an empty text."""
    return [(chunk.start, chunk.end) for chunk in chunks(text)]


def embedded_text(title: str, heading: str, text: str) -> str:
    """What stands for a part where it is embedded: it says what it is a part of."""
    return "\n".join(line for line in (title, heading, text) if line)


def digest_of(text: str) -> bytes:
    """16 bytes that stand for an embedded text."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _blocks(body: str) -> Iterator[_Block]:
    shown = without_code(body)
    start = end = 0
    was_code = False
    for found in _LINE.finditer(shown):
        line = found.group()
        if not line:
            break
        if not line.strip():
            continue
        is_code = not line.strip("\0 \t\r\n")
        heading = None if is_code else _HEADING.match(line)
        # Empty lines between two lines of code may stand inside one fence.
        is_apart = end < found.start() and not (is_code and was_code)
        if end > start and (heading or is_apart or is_code != was_code):
            yield _Block(start, end, is_code=was_code)
            start = end
        if heading:
            text = body[found.start() + heading.start("text") : found.end()]
            yield _Block(
                found.start(), found.end(), len(heading.group(1)), _CLOSING.sub("", text.strip()).strip()
            )
            start = end = found.end()
            was_code = False
            continue
        if end == start:
            start = found.start()
        end, was_code = found.end(), is_code
    if end > start:
        yield _Block(start, end, is_code=was_code)


def _followed(trail: list[tuple[int, str]], block: _Block) -> list[tuple[int, str]]:
    if not block.level:
        return trail
    return [*(each for each in trail if each[0] < block.level), (block.level, block.heading)]


def _packed(blocks: Iterator[_Block]) -> Iterator[list[_Block]]:
    """Blocks that make one part, in order; one that is too long stands alone, below its heading."""
    part: list[_Block] = []
    for block in blocks:
        if part:
            size, whole = part[-1].end - part[0].start, block.end - part[0].start
            if size >= limits.CHUNK_MIN_CHARS if block.level else whole > limits.CHUNK_CHARS:
                kept = _without_last_headings(part)
                if kept:
                    yield part[:kept]
                    part = part[kept:]
        part.append(block)
    if part:
        yield part


def _without_last_headings(part: list[_Block]) -> int:
    """How many blocks stand before the headings that the part ends with: these go with what follows."""
    kept = len(part)
    while kept and part[kept - 1].level:
        kept -= 1
    return kept


def _cut(body: str, part: list[_Block]) -> Iterator[tuple[int, int]]:
    """The part itself, or several where it is too long."""
    start, last = part[0].start, part[-1].end
    most = limits.CHUNK_CODE_MAX_CHARS if any(block.is_code for block in part) else limits.CHUNK_CHARS
    while last - start > most:
        end = _place_to_cut(body, start, start + limits.CHUNK_CHARS)
        yield from _trimmed(body, start, end)
        start = end
    yield from _trimmed(body, start, last)


def _place_to_cut(body: str, start: int, most: int) -> int:
    """Behind a line, a sentence or a word of the second half; in its middle where there is none."""
    half = (start + most) // 2
    if (line := body.rfind("\n", half, most)) >= 0:
        return line + 1
    if ends := [found.end() for found in _SENTENCE_END.finditer(body, half, most)]:
        return ends[-1]
    text = body[half:most]
    word = "" if text[-1].isspace() else text.rsplit(None, 1)[-1]
    return most - len(word) if len(word) < len(text) else most


def _trimmed(body: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    text = body[start:end]
    if stripped := text.strip():
        begin = start + text.index(stripped[0])
        yield begin, begin + len(stripped)
