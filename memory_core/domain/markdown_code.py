"""Which parts of a Markdown text are code or comments: nothing in them is a link or a heading.

A subset of CommonMark, read line by line: fences, indented code, code spans, HTML comments. It errs on
the side of text only where lists and quotations are nested deeply.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

#: A line as CommonMark knows it.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_CONTAINER = re.compile(
    r"(?P<quotes>(?:[ ]{0,3}>[ ]?)*)(?P<item>[ ]*(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<indent>[ \t]*)"
)
_FENCE = re.compile(r"(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})")
#: Each way begins with a plain character, so that looking for it skips what lies between: a group there made it twenty times slower.
_INLINE = re.compile(r"\\.|``*|<!--", re.DOTALL)
_TICKS = re.compile("``*")
_BLANK = re.compile(r"\n[ \t>]*\r?\n")
_HIDDEN = re.compile(r"[^\r\n]")
_CODE_INDENT = 4
#: Without any of these no line is code.
_BEGINNINGS = ("```", "~~~", "<!--", "\n\t", "\n    ", "\r\t", "\r    ")
_INDENTS = ("\t", "    ")
_TEXT = ("#", "|", "[", "(", "!", '"')


@dataclass
class _State:
    """What the lines before this one leave open."""

    #: The fence that closes; empty: none is open.
    fence: str = ""
    is_quoted: bool = False
    in_comment: bool = False
    #: Where the text of the list item begins, columns; 0: no list.
    item_indent: int = 0
    after_blank: bool = True
    in_indented: bool = False


def without_code(text: str) -> str:
    """`text` with each character of code and comments replaced by NUL: the same length, the same lines."""
    if not (text.startswith(_INDENTS) or any(beginning in text for beginning in _BEGINNINGS)):
        return _without_inline(text)
    state = _State()
    lines: list[str] = []
    for found in _LINE.finditer(text):
        line = found.group()
        lines.append(_hidden(line) if _is_hidden(line, state) else line)
    return _without_inline("".join(lines))


def _hidden(text: str) -> str:
    return _HIDDEN.sub("\0", text)


def _is_hidden(line: str, state: _State) -> bool:
    bare = line.rstrip("\r\n")
    if not bare and not state.in_comment and not state.fence:
        state.after_blank = True
        return False
    if state.in_comment:
        state.in_comment = "-->" not in bare
        return True
    if not state.fence and (bare[:1].isalpha() or bare.startswith(_TEXT)):
        # Most lines of most texts: nothing begins with such a character.
        state.item_indent = 0 if state.after_blank else state.item_indent
        state.after_blank = state.in_indented = False
        return False
    found = _CONTAINER.match(bare)
    quotes = found.group("quotes") if found else ""
    rest = bare[len(quotes) :]
    if state.fence and (quotes or not state.is_quoted):
        _close_fence(rest, state)
        return True
    state.fence = ""
    if not rest.strip():
        state.after_blank = True
        return state.in_indented
    return _is_code(rest, found, state, is_quoted=bool(quotes))


def _close_fence(rest: str, state: _State) -> None:
    stripped = rest.strip()
    if len(stripped) >= len(state.fence) and not stripped.strip(state.fence[0]):
        state.fence = ""


def _is_code(rest: str, found: re.Match[str] | None, state: _State, *, is_quoted: bool) -> bool:
    columns = len(rest.expandtabs(4)) - len(rest.expandtabs(4).lstrip())
    limit = state.item_indent + _CODE_INDENT
    state.in_indented = columns >= limit and (state.after_blank or state.in_indented)
    if state.in_indented:
        state.after_blank = False
        return True
    item = found.group("item") if found else None
    content = rest
    if (item and not rest.startswith((" ", "\t"))) or (item and columns < limit):
        state.item_indent = len((item or "").expandtabs(4))
        content = rest[len(item or "") :]
    elif state.after_blank and columns < state.item_indent:
        state.item_indent = 0
    state.after_blank = False
    content = content.lstrip()
    fence = _FENCE.match(content)
    if fence:
        state.fence, state.is_quoted = fence.group("fence"), is_quoted
        return True
    if content.startswith("<!--"):
        state.in_comment = "-->" not in content
        # The rest of a comment's last line is not read as text: as in CommonMark.
        return True
    return False


def _without_inline(text: str) -> str:
    """Hide code spans and comments within paragraphs."""
    if "`" not in text and "<!--" not in text:
        return text
    runs: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text):
        runs.setdefault(len(run.group()), []).append(run.start())
    blanks = [blank.start() for blank in _BLANK.finditer(text)]
    kept: list[str] = []
    done = position = 0
    while found := _INLINE.search(text, position):
        position = found.end()
        end = _end_of(text, found, runs, blanks)
        if end:
            kept += [text[done : found.start()], _hidden(text[found.start() : end])]
            done = position = end
    kept.append(text[done:])
    return "".join(kept)


def _end_of(text: str, found: re.Match[str], runs: dict[int, list[int]], blanks: list[int]) -> int:
    """Where what begins here ends; 0: it is text. A code span does not reach over an empty line."""
    mark = found.group()
    if mark == "<!--":
        close = text.find("-->", found.end())
        return close + 3 if close >= 0 else len(text)
    if mark[0] != "`":
        return 0
    size = len(mark)
    starts = runs.get(size, [])
    later = bisect_right(starts, found.start())
    if later == len(starts):
        return 0
    paragraph = bisect_right(blanks, found.start())
    if paragraph < len(blanks) and starts[later] > blanks[paragraph]:
        return 0
    return starts[later] + size
