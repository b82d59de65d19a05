"""The rules for what a page's front matter may say; reading and writing YAML is the wiki's business."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

from memory_core import limits
from memory_core.domain.page import Tier, clean_title, name_key
from memory_core.errors import Invalid

#: The keys that memoryd writes; all others are the person's and stay as they are.
WRITTEN_KEYS = ("title", "kind", "tier", "tags", "pinned", "expires_at")
#: Their values are taken as they are written: YAML would make `no` a truth value, `1.0` a number, `2031-05-01` a day.
TEXT_KEYS = ("title", "kind", "tier", "tags", "entities", "slot_kind", "last_modified_by")
#: What a slot holds: what never changes, or how things stand.
SLOT_KINDS = ("invariant", "state")
_KIND_MAX_CHARS = 32


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """What is known of a page beside its text. None: not said."""

    title: str | None = None
    kind: str | None = None
    tier: Tier | None = None
    tags: tuple[str, ...] | None = None
    pinned: bool | None = None
    #: UTC microseconds.
    expires_at: int | None = None
    #: Names of things that the page is about: lower case, each once.
    entities: tuple[str, ...] | None = None
    slot_kind: str | None = None
    #: A person's or a principal's name.
    last_modified_by: str | None = None


def tier_named(text: object) -> Tier:
    try:
        return Tier(str(text).strip().lower())
    except ValueError:
        raise Invalid(f"tier is one of {', '.join(Tier)}; not {str(text)[:40]!r}") from None


def kind_named(text: object) -> str:
    kind = name_key(str(text).strip())
    if not kind or len(kind) > _KIND_MAX_CHARS or not kind.replace("-", "").replace("_", "").isalnum():
        raise Invalid(f"kind is one word of at most {_KIND_MAX_CHARS} letters; not {str(text)[:40]!r}")
    return kind


def tags_from(value: object) -> tuple[str, ...]:
    """Tags of a list, or of text with commas; spelled as given, without `#`, each once."""
    if isinstance(value, str):
        items: Sequence[object] = value.split(",")
    elif isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
    else:
        raise Invalid("tags is a list of words")
    tags: dict[str, str] = {}
    for item in items:
        tag = clean_title(str(item)).lstrip("#").strip()
        if len(tag) > limits.TAG_MAX_CHARS:
            raise Invalid(f"a tag has at most {limits.TAG_MAX_CHARS} characters: {tag[:40]!r}…")
        if tag:
            tags.setdefault(name_key(tag), tag)
    if len(tags) > limits.TAGS_MAX:
        raise Invalid(f"a page has at most {limits.TAGS_MAX} tags; these are {len(tags)}")
    return tuple(tags.values())


def entities_from(value: object) -> tuple[str, ...]:
    """At most `ENTITIES_MAX` names of a list; lower case, spaces joined, each once."""
    if not isinstance(value, list | tuple):
        raise Invalid("entities is a list of names")
    names: dict[str, None] = {}
    for item in cast("Sequence[object]", value):
        text = unicodedata.normalize("NFC", str(item))
        if any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n" for char in text):
            raise Invalid("control characters cannot stand in the name of an entity")
        name = " ".join(text.split()).lower()
        if len(name) > limits.ENTITY_MAX_CHARS:
            raise Invalid(f"the name of an entity has at most {limits.ENTITY_MAX_CHARS} characters")
        if name:
            names[name] = None
    if len(names) > limits.ENTITIES_MAX:
        raise Invalid(f"a page has at most {limits.ENTITIES_MAX} entities; these are {len(names)}")
    return tuple(names)


def _slot_kind(value: object) -> str:
    kind = str(value).strip().lower()
    if kind not in SLOT_KINDS:
        raise Invalid(f"slot_kind is {' or '.join(SLOT_KINDS)}; not {kind[:40]!r}")
    return kind


def _person(value: object) -> str | None:
    """A name, or the first of a mapping's `username`, `name`, `email`."""
    if isinstance(value, Mapping):
        known = cast("Mapping[str, object]", value)
        value = next((known[key] for key in ("username", "name", "email") if known.get(key)), "")
    return clean_title(str(value)) or None


def expiry_from(value: object) -> int:
    """UTC microseconds of an RFC 3339 time (no offset: UTC) or of the end of a UTC day `YYYY-MM-DD`.

    Raises `Invalid` for what is neither, or lies outside of the years 1 to 9999 in UTC: it could be written nowhere.
    """
    try:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = _end_of(value)
        else:
            text = str(value).strip()
            moment = _end_of(date.fromisoformat(text)) if len(text) == 10 else datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        # In whole numbers: as a float, the last day that there is would be rounded to the one after it.
        return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise Invalid(
            f"expires_at is a time like 2031-05-01T12:00:00Z or a day like 2031-05-01; not {str(value)[:40]!r}"
        ) from None


def _end_of(day: date) -> datetime:
    return datetime.combine(day, time.max, tzinfo=UTC)


def expiry_text(us: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    return moment.isoformat().replace("+00:00", "Z")


def facts_from(values: Mapping[str, Any]) -> tuple[PageFacts, tuple[str, ...]]:
    """The facts in a parsed front matter, and a sentence for each value that could not be used.

    Lenient: a person's file is read as far as it makes sense.
    """
    problems: list[str] = []
    found: dict[str, Any] = {}
    readers: dict[str, Callable[[object], object]] = {
        "title": lambda value: clean_title(str(value)) or None,
        "kind": kind_named,
        "tier": tier_named,
        "tags": tags_from,
        "pinned": _flag,
        "expires_at": expiry_from,
        "entities": entities_from,
        "slot_kind": _slot_kind,
        "last_modified_by": _person,
    }
    for key, read in readers.items():
        if values.get(key) is None:
            continue
        try:
            found[key] = read(values[key])
        except Invalid as problem:
            problems.append(str(problem))
    return PageFacts(**found), tuple(problems)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0", ""):
        return False
    raise Invalid(f"pinned is true or false; not {word[:40]!r}")
