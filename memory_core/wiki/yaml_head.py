"""A front matter as lines: what each top-level key says, and the very text that says it.

The text is YAML, read by a library. Its anchors, aliases, tags and merge keys are not: a key that uses
one has no value here, but its lines are kept like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, cast

import yaml
from yaml.constructor import SafeConstructor

from memory_core import limits
from memory_core.domain.front_matter import TEXT_KEYS
from memory_core.errors import Invalid

#: The C parser where the library was built with it: it takes a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Of what is not read something stands in a text that holds it; one of the others begins each level of nesting.
_SIGNS, _OPENERS = ("&", "*", "!", "<<"), "[{?:-"
_MERGE = "<<"
_NULL = "tag:yaml.org,2002:null"
_parse = cast("Callable[..., Iterable[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
_compose = cast("Callable[..., Any]", yaml.compose)  # pyright: ignore[reportUnknownMemberType]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One top-level key. Its lines are `text + after`; `after` are the comments and empty lines behind it."""

    key: str
    text: str
    after: str = ""
    value: Any = None
    #: Why it has no value.
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class Head:
    """A front matter: the lines before its first key, then the keys in their order."""

    before: str = ""
    entries: tuple[Entry, ...] = ()
    #: In front of each key.
    indent: str = ""
    #: False: `{key: value}` in one piece, whose lines cannot be told apart.
    is_block: bool = True

    @property
    def values(self) -> dict[str, Any]:
        return {entry.key: entry.value for entry in self.entries if entry.problem is None}

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"{entry.key}: {entry.problem}" for entry in self.entries if entry.problem)


def parse(text: str) -> Head:
    """The keys of a front matter. `Invalid` for a text that is too long, no YAML, or no set of `key: value` lines."""
    if len(text.encode("utf-8", "surrogatepass")) > limits.FRONT_MATTER_MAX_BYTES:
        raise Invalid(f"it is longer than {limits.FRONT_MATTER_MAX_BYTES // limits.KIB} KB")
    try:
        refused = None if _is_plain(text) else list(_refused(_parse(text, Loader=_LOADER)))
        root = _compose(text, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise Invalid(" ".join(str(error).split())[:200]) from error
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        return Head(before=text)
    if not isinstance(root, yaml.MappingNode):
        raise Invalid("it is no set of key: value lines")
    pairs = cast("list[tuple[Any, Any]]", root.value)
    return _head(text, pairs, refused or [None] * len(pairs), is_block=not root.flow_style)


def _is_plain(text: str) -> bool:
    """Whether there is nothing in it to refuse, as far as its letters tell: so most are, and are gone through once."""
    levels = sum(map(text.count, _OPENERS))
    return levels <= limits.FRONT_MATTER_DEPTH_MAX and not any(sign in text for sign in _SIGNS)


def _refused(events: Iterable[Any]) -> Iterator[str | None]:
    """For each top-level key, why it is not read: found before anything is built of the events."""
    depth = position = 0
    why: str | None = None
    for event in events:
        is_end = isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent)
        depth -= is_end
        if depth > limits.FRONT_MATTER_DEPTH_MAX:
            raise Invalid(f"it is nested deeper than {limits.FRONT_MATTER_DEPTH_MAX} levels")
        if depth:
            why = why or _reason(event)
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            continue
        if depth == 1 and isinstance(event, yaml.NodeEvent | yaml.MappingEndEvent | yaml.SequenceEndEvent):
            position += 1
            if position % 2 == 0:
                yield why
                why = None


def _reason(event: Any) -> str | None:
    if isinstance(event, yaml.AliasEvent):
        return "anchors and aliases are not taken"
    if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
        return None
    if event.anchor:
        return "anchors and aliases are not taken"
    if event.tag:
        return "tags (!) are not taken"
    if isinstance(event, yaml.ScalarEvent) and event.value == _MERGE and event.implicit[0]:
        return "merge keys (<<) are not taken"
    return None


def _head(text: str, pairs: Sequence[tuple[Any, Any]], refused: list[str | None], *, is_block: bool) -> Head:
    build = cast("Callable[..., Any]", SafeConstructor().construct_object)  # pyright: ignore[reportUnknownMemberType]
    named = [
        (
            name,
            partial(_written, name, value, text) if name in TEXT_KEYS else partial(build, value, deep=True),
        )
        for name, value in ((_name(key), value) for key, value in pairs)
    ]
    if not is_block:
        entries = tuple(
            _entry(name, "", value, why) for (name, value), why in zip(named, refused, strict=True)
        )
        return Head(before=text, entries=entries, is_block=False)
    lines = _lines(text)
    starts: list[int] = [key.start_mark.line for key, _ in pairs]
    blocks = ["".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)])]
    first = lines[starts[0]] if starts else ""
    return Head(
        before="".join(lines[: starts[0]]) if starts else text,
        entries=tuple(
            _entry(name, block, value, why)
            for (name, value), block, why in zip(named, blocks, refused, strict=True)
        ),
        indent=first[: len(first) - len(first.lstrip(" "))],
    )


def _lines(text: str) -> list[str]:
    """The lines as YAML 1.1 knows them: what else Python ends a line at stands in no text that YAML can read."""
    return text.splitlines(keepends=True)


def _written(name: str, node: Any, source: str) -> Any:
    """The value of one of `TEXT_KEYS`, with every scalar as the text that somebody wrote; None where there is nothing.

    A title may be any text; in place of a list YAML's words for nothing (`~`, `null`) are nothing.
    """
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == _NULL and (name != "title" or not node.value) else node.value
    if name == "title":
        return _source(node, source)
    if isinstance(node, yaml.SequenceNode):
        return [_source(item, source) for item in cast("list[Any]", node.value)]
    return {_name(key): _source(item, source) for key, item in cast("list[tuple[Any, Any]]", node.value)}


def _source(node: Any, source: str) -> str:
    return (
        node.value
        if isinstance(node, yaml.ScalarNode)
        else source[node.start_mark.index : node.end_mark.index]
    )


def _entry(name: str, block: str, value: Callable[[], Any], why: str | None) -> Entry:
    lines = _lines(block)
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    text, after = "".join(lines[:end]), "".join(lines[end:])
    if why is not None:
        return Entry(key=name, text=text, after=after, problem=why)
    try:
        return Entry(key=name, text=text, after=after, value=value())
    except (yaml.YAMLError, ValueError, OverflowError, TypeError) as error:
        reason = " ".join(str(error).split())[:100]
        return Entry(key=name, text=text, after=after, problem=f"cannot be read: {reason}")


def _name(key: Any) -> str:
    return key.value if isinstance(key, yaml.ScalarNode) else "?"


def merged(older: Head, newer: Head) -> Head:
    """The keys of two heads in the order of the older one. Where both have a key, the newer value; its lines are
    the older ones if they say the same."""
    before = newer.before if newer.before == older.before else older.before + newer.before
    if not newer.entries or not older.entries:
        return replace(newer if newer.entries else older, before=before)
    if not (older.is_block and newer.is_block and older.indent == newer.indent):
        older, newer = plain(older), plain(newer)
        before = older.before + newer.before
    latest = {entry.key: entry for entry in newer.entries}
    places = {entry.key: number for number, entry in reversed(list(enumerate(older.entries)))}
    kept: list[Entry] = []
    for number, entry in enumerate(older.entries):
        if entry.key not in latest:
            kept.append(entry)
        elif places[entry.key] == number:
            kept.append(_newer(entry, latest[entry.key]))
    kept.extend(entry for entry in newer.entries if entry.key not in places)
    return Head(before=before, entries=tuple(kept), indent=newer.indent)


def _newer(older: Entry, newer: Entry) -> Entry:
    if older.problem is None and newer.problem is None and older.value == newer.value:
        return older
    return newer if newer.after.strip() else replace(newer, after=older.after)


def plain(head: Head) -> Head:
    """The same values, each key on lines of its own and written anew; what could not be read becomes a comment."""
    refused = [entry for entry in head.entries if entry.problem]
    if head.is_block:
        before = head.before + commented("".join(entry.text for entry in refused))
    else:
        before = commented(head.before) if refused else ""
    entries = [replace(entry, text=_dump(entry), after="") for entry in head.entries if not entry.problem]
    return Head(before=before, entries=tuple(entries))


def commented(text: str) -> str:
    """Lines as comments, so that people still see them where nothing can read them."""
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join(f"# {line}".rstrip() + newline for line in text.splitlines())


def _dump(entry: Entry) -> str:
    write = cast("Callable[..., str]", yaml.safe_dump)  # pyright: ignore[reportUnknownMemberType]
    return write({entry.key: entry.value}, allow_unicode=True, sort_keys=False, width=1_000_000)
