"""Reading and rewriting the YAML head of a page.

Reading is lenient. Rewriting replaces the lines of the keys that memoryd knows and leaves every other
line, its order and its comments as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from memory_core import limits
from memory_core.domain.front_matter import KNOWN_KEYS, PageFacts, expiry_text
from memory_core.errors import Invalid

_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY_LINE = re.compile(r"""(?:"([^"\\]+)"|'([^']+)'|([^\s#\-?:"'\[\]{},&*!|>%@`][^:#]*?))[ \t]*:(?=\s|\Z)""")
#: Text that YAML reads as that text without quotes.
_PLAIN = re.compile(r"[^\W\d_][\w/.() -]*", re.UNICODE)
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """The head of a page file: its YAML text, where the body begins, the values, what was wrong with it."""

    text: str = ""
    #: Characters.
    body_start: int = 0
    values: Mapping[str, Any]
    problem: str | None = None


def read(content: str) -> FrontMatter:
    """The front matter of a page file; never raises. A head that cannot be used has no values and a `problem`."""
    opening = _OPEN.match(content)
    closing = _CLOSE.search(content, opening.end()) if opening else None
    if opening is None or closing is None:
        return FrontMatter(values={})
    text = content[opening.end() : closing.start()]
    try:
        values, problem = _load(text), None
    except (yaml.YAMLError, ValueError, RecursionError, Invalid) as error:
        values, problem = {}, f"the front matter cannot be read: {_first_line(error)}"
    return FrontMatter(text=text, body_start=closing.end(), values=values, problem=problem)


def _load(text: str) -> dict[str, Any]:
    if len(text.encode()) > limits.FRONT_MATTER_MAX_BYTES:
        raise Invalid(f"it is longer than {limits.FRONT_MATTER_MAX_BYTES // limits.KIB} KB")
    # Events come before anything is built: an alias is refused before it can be expanded.
    parse = cast("Callable[..., Iterable[object]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    for event in parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Invalid("anchors and aliases are not taken")
        if getattr(event, "tag", None):
            raise Invalid("tags (!) are not taken")
    loaded: object = yaml.load(text, Loader=yaml.SafeLoader)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise Invalid("it is no set of key: value lines")
    return {str(key): value for key, value in cast("dict[Any, Any]", loaded).items()}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def body_of(content: str) -> str:
    return content[read(content).body_start :]


def render(facts: PageFacts, body: str, *, head: str = "") -> tuple[str, int]:
    """A page file, and where its body begins (characters).

    `head` is an earlier front matter text: its unknown keys stay as they are, its known keys get the
    values of `facts` at their old place (None: the key goes away), keys that are missing follow at the end.
    """
    rendered = _rendered(facts)
    lines: list[str] = []
    for key, block in _blocks(head):
        if key not in KNOWN_KEYS:
            lines.append(block if block.endswith("\n") else block + "\n")
        elif key in rendered:
            lines.append(rendered.pop(key))
    lines.extend(rendered.values())
    front = f"---\n{''.join(lines)}---\n"
    return front + body, len(front)


def _blocks(head: str) -> list[tuple[str | None, str]]:
    """The lines of a head grouped by the top-level key that they belong to (None: comments before any)."""
    blocks: list[tuple[str | None, str]] = []
    for line in head.splitlines(keepends=True):
        key = _KEY_LINE.match(line)
        if key:
            blocks.append((key.group(1) or key.group(2) or key.group(3), line))
        elif blocks and not (line.startswith("#") or (blocks[-1][0] is None)):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + line)
        else:
            blocks.append((None, line))
    return blocks


def _rendered(facts: PageFacts) -> dict[str, str]:
    lines: dict[str, str] = {}
    if facts.title:
        lines["title"] = f"title: {_scalar(facts.title)}\n"
    if facts.kind:
        lines["kind"] = f"kind: {_scalar(facts.kind)}\n"
    if facts.tier:
        lines["tier"] = f"tier: {facts.tier}\n"
    if facts.tags:
        lines["tags"] = f"tags: [{', '.join(_scalar(tag) for tag in facts.tags)}]\n"
    if facts.pinned:
        lines["pinned"] = "pinned: true\n"
    if facts.expires_at is not None:
        lines["expires_at"] = f"expires_at: {_scalar(expiry_text(facts.expires_at))}\n"
    return lines


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and not text.endswith(" ") and text.lower() not in _WORDS:
        return text
    return _UNSAFE.sub(lambda char: f"\\u{ord(char.group()):04x}", json.dumps(text, ensure_ascii=False))
