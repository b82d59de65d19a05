"""Reading and rewriting the YAML head of a page.

Reading is lenient. Rewriting changes the lines of a key that memoryd writes only where they say something
else by now; every other line, its order, its comments and its quotation marks stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.domain.front_matter import PageFacts, expiry_text, facts_from
from memory_core.errors import Invalid
from memory_core.wiki import yaml_head
from memory_core.wiki.yaml_head import Entry, Head

_BOM = "\ufeff"
_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
#: Text that YAML reads as that text without quotes.
_PLAIN = re.compile(r"[^\W\d_][\w/.() -]*", re.UNICODE)
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
#: Keys that are put right where they stand, and never added.
_ONLY_CORRECTED = ("last_modified_by",)
_EMPTY = Head()


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """The head of a page file: its YAML text, where the body begins, the values, what was wrong with it.

    With a `problem` there can still be values: those of the other keys.
    """

    text: str = ""
    #: Characters.
    body_start: int = 0
    head: Head = _EMPTY
    problem: str | None = None
    #: Nothing of it could be read: in a rewrite its lines become comments.
    is_unread: bool = False
    #: How lines end in most of the file, and whether it begins with a byte order mark.
    newline: str = "\n"
    has_bom: bool = False

    @property
    def values(self) -> Mapping[str, Any]:
        return self.head.values


def read(content: str) -> FrontMatter:
    """The front matter of a page file; never raises. What cannot be used has no value and is named in `problem`."""
    has_bom, newline = content.startswith(_BOM), newline_of(content)
    opening = _OPEN.match(content)
    closing = _CLOSE.search(content, opening.end()) if opening else None
    if opening is None or closing is None:
        return FrontMatter(body_start=len(_BOM) if has_bom else 0, newline=newline, has_bom=has_bom)
    text = content[opening.end() : closing.start()]
    head, is_unread = _EMPTY, False
    try:
        head = yaml_head.parse(text)
        problem = "; ".join(f"of the front matter is not read: {each}" for each in head.problems) or None
    except Invalid as error:
        problem, is_unread = f"the front matter cannot be read: {error}", True
    return FrontMatter(
        text=text,
        body_start=closing.end(),
        head=head,
        problem=problem,
        is_unread=is_unread,
        newline=newline,
        has_bom=has_bom,
    )


def newline_of(content: str) -> str:
    """How most lines of a text end: CRLF or LF."""
    windows = content.count("\r\n")
    return "\r\n" if windows and 2 * windows >= content.count("\n") else "\n"


def with_newlines(text: str, newline: str) -> str:
    """A text whose lines all end so."""
    return text.replace("\r\n", "\n").replace("\n", newline)


def body_of(content: str) -> str:
    return content[read(content).body_start :]


def render(
    facts: PageFacts,
    body: str,
    *,
    head: FrontMatter | None = None,
    older: FrontMatter | None = None,
    implied_kind: str | None = None,
    own: Mapping[str, Any] | None = None,
) -> tuple[str, int]:
    """A page file, and where its body begins (characters).

    `head` is the front matter that came with `body`, `older` that of the version before: all their
    keys are kept, a newer value at the place of the older one, and the line ends of the older one. Keys that memoryd writes get the values of
    `facts`; one that says so already stays as it is written. What only repeats the path (`implied_kind`)
    or says nothing (no tags, not pinned) is not added. `own` are further keys that memoryd writes, with JSON values.
    `Invalid` where the front matter would be too long to be read again.
    """
    heads = [each for each in (older, head) if each is not None]
    lines = [_lines_of(each) for each in heads]
    found = yaml_head.merged(lines[0] if lines else _EMPTY, lines[1] if lines[1:] else _EMPTY)
    wishes = _wishes(facts, implied_kind) | {key: _own(key, value) for key, value in (own or {}).items()}
    newline = heads[0].newline if heads else "\n"
    text = _text(found, wishes, newline)
    if not found.is_block or not _keeps(text, found, wishes):
        # In one piece, or two heads whose lines do not go together: the values stay, their form does not.
        text = _text(yaml_head.plain(found), wishes, newline)
    if all(with_newlines(each.text, newline) == each.text for each in heads):
        # What was written anew ends like the lines that were there.
        text = with_newlines(text, newline)
    if len(text.encode("utf-8", "surrogatepass")) > limits.FRONT_MATTER_MAX_BYTES:
        raise Invalid(
            f"the page's front matter would be longer than {limits.FRONT_MATTER_MAX_BYTES // limits.KIB} KB, and what is behind"
            " that could not be kept; shorten it in the page's file, or send less of it"
        )
    bom = _BOM if older is not None and older.has_bom else ""
    front = f"{bom}---{newline}{text}---{newline}"
    return front + body, len(front)


def _lines_of(read: FrontMatter) -> Head:
    return Head(before=yaml_head.commented(read.text)) if read.is_unread else read.head


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """What a key is to say, and its line; None: it need not be there."""

    value: object
    line: str | None
    #: It is no fact of a page, and its value is compared as it is.
    is_own: bool = False


def _wishes(facts: PageFacts, implied_kind: str | None) -> dict[str, _Wish]:
    kind, tags, expiry = facts.kind or implied_kind, facts.tags or (), facts.expires_at
    wishes = {
        "title": _Wish(value=facts.title, line=f"title: {_scalar(facts.title)}" if facts.title else None),
        "kind": _Wish(value=kind, line=f"kind: {_scalar(kind)}" if kind and kind != implied_kind else None),
        "tier": _Wish(value=facts.tier, line=f"tier: {facts.tier}" if facts.tier else None),
        "tags": _Wish(value=tags, line=f"tags: [{', '.join(map(_scalar, tags))}]" if tags else None),
        "pinned": _Wish(value=bool(facts.pinned), line="pinned: true" if facts.pinned else None),
        "expires_at": _Wish(
            value=expiry, line=f"expires_at: {_scalar(expiry_text(expiry))}" if expiry is not None else None
        ),
    }
    if facts.last_modified_by:
        line = f"last_modified_by: {_scalar(facts.last_modified_by)}"
        wishes["last_modified_by"] = _Wish(value=facts.last_modified_by, line=line)
    return wishes


def _own(key: str, value: Any) -> _Wish:
    # A JSON value is a YAML value.
    return _Wish(value=value, line=f"{key}: {_json(value)}", is_own=True)


def _text(head: Head, wishes: Mapping[str, _Wish], newline: str) -> str:
    last = {entry.key: number for number, entry in enumerate(head.entries)}
    pieces = [head.before]
    for number, entry in enumerate(head.entries):
        wish = wishes.get(entry.key)
        if wish is None or (last[entry.key] == number and _says(entry, wish)):
            pieces.append(entry.text)
        elif wish.line is not None and last[entry.key] == number:
            pieces.append(f"{head.indent}{wish.line}{newline}")
        pieces.append(entry.after)
    for key, wish in wishes.items():
        if key not in last and wish.line is not None and key not in _ONLY_CORRECTED:
            pieces.append(f"{head.indent}{wish.line}{newline}")
    return "".join(piece if not piece or piece[-1] in "\r\n" else piece + newline for piece in pieces)


def _says(entry: Entry, wish: _Wish) -> bool:
    if wish.is_own:
        return entry.problem is None and entry.value == wish.value
    facts, problems = facts_from({entry.key: entry.value})
    said = getattr(facts, entry.key)
    return entry.problem is None and not problems and (said or None) == (wish.value or None)


def _keeps(text: str, head: Head, wishes: Mapping[str, _Wish]) -> bool:
    """Whether a rewritten head still says what `head` said, apart from the keys that were to change."""
    if not head.before and all(entry.key in wishes for entry in head.entries):
        return True  # nothing of anybody else's is in it; most pages are so, and reading takes its time
    try:
        again = yaml_head.parse(text)
    except Invalid:
        return False
    others = [
        [(each.key, repr(each.value)) for each in one.entries if each.key not in wishes]
        for one in (head, again)
    ]
    return others[0] == others[1]


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and not text.endswith(" ") and text.lower() not in _WORDS:
        return text
    return _json(text)


def _json(value: Any) -> str:
    return _UNSAFE.sub(lambda char: f"\\u{ord(char.group()):04x}", json.dumps(value, ensure_ascii=False))
