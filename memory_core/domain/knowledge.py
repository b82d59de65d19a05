"""Knowledge: a fact under a key, true in one directory. What may be said, what replaces what, and what its file says of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from memory_core import limits
from memory_core.domain.directory import DirectoryId
from memory_core.domain.page import PagePath, page_path, slug
from memory_core.errors import Invalid
from memory_core.ids import id_bytes, id_text

FOLDER = "knowledge"
#: What somebody wrote by hand is held to be true.
MANUAL_CONFIDENCE = 1.0
#: The key of a page's front matter by which a lost database finds the entry again.
HEAD_KEY = "memoryd-knowledge"
#: Hexadecimal digits of the identity in the name of the page; longer ones where a name is taken.
_HASH_CHARS = (8, 16, 32, 64)


class Origin(StrEnum):
    """Who said it, or who took it away."""

    #: A person, or an agent that was asked to: over the API, with a tool, in the file.
    MANUAL = "manual"
    DISTILLATION = "distillation"
    #: Nobody said it again for long: only of tombstones.
    AGE = "age"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The events of a durable session that a fact was drawn from; it outlives the session."""

    session_id: bytes
    first_sequence: int
    last_sequence: int
    #: The digest of the session's transcript at `last_sequence`.
    sha256: bytes


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How an entry stands when something automatic wants to change it."""

    content: str
    confidence: float
    #: Of the active version.
    origin: Origin
    is_pinned: bool
    is_forgotten: bool
    #: A person forgot it: nothing but age or another session took it away otherwise.
    is_forgotten_by_hand: bool = False


class Verdict(StrEnum):
    """What becomes of something automatic."""

    #: It holds from now on.
    TAKE = "take"
    #: It is kept as a version, and what was active stays.
    KEEP_ASIDE = "keep_aside"
    #: Nothing changes.
    SKIP = "skip"


def verdict_on_upsert(
    standing: Standing, content: str, confidence: float, *, was_said_before: bool
) -> Verdict:
    """What becomes of a distilled fact whose key is known. `was_said_before`: some version of the entry says just that.

    What says nothing new is passed over; so is what a person forgot, until it is said otherwise. A pin keeps what was
    written by hand, and gives way only to a distilled fact that is at least as sure as the one before. What
    was written by hand without a pin gives way to `OVERRULE_CONFIDENCE_MIN`.
    """
    if standing.is_forgotten:
        is_known = standing.is_forgotten_by_hand and was_said_before
        return Verdict.SKIP if is_known else Verdict.TAKE
    if content == standing.content and confidence <= standing.confidence:
        return Verdict.SKIP
    if standing.is_pinned:
        gives_way = standing.origin is not Origin.MANUAL and confidence >= standing.confidence
    else:
        gives_way = standing.origin is not Origin.MANUAL or confidence >= limits.OVERRULE_CONFIDENCE_MIN
    if gives_way:
        return Verdict.TAKE
    return Verdict.SKIP if was_said_before else Verdict.KEEP_ASIDE


def takes_away(standing: Standing, confidence: float) -> bool:
    """Whether a distilled tombstone hides an entry: never a pinned one, never one that is hidden already."""
    if standing.is_pinned or standing.is_forgotten:
        return False
    return standing.origin is not Origin.MANUAL or confidence >= limits.OVERRULE_CONFIDENCE_MIN


# --- what may be said ------------------------------------------------------------------------------


def checked_key(text: str) -> str:
    """A key as it is; `Invalid` for one that is blank, too long, or no text. There is no other grammar; case counts."""
    return _checked(text, "a key", limits.KNOWLEDGE_KEY_MAX_BYTES)


def checked_content(text: str) -> str:
    """A fact's text as it is; `Invalid` for one that is blank, too long, or no text."""
    return _checked(text, "what is remembered", limits.KNOWLEDGE_CONTENT_MAX_BYTES)


def checked_query(text: str) -> str:
    return _checked(text, "what is searched for", limits.KNOWLEDGE_QUERY_MAX_BYTES)


def _checked(text: str, what: str, most_bytes: int) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{what} holds half a character; send it again as whole UTF-8") from None
    if not text.strip():
        raise Invalid(f"{what} is empty")
    if "\x00" in text:
        raise Invalid(f"{what} holds a NUL character, which no file of text can; leave it out")
    if size > most_bytes:
        raise Invalid(f"{what} has at most {most_bytes} bytes; this has {size}")
    return text


def checked_confidence(value: float) -> float:
    """`Invalid` for what lies outside 0 to 1 or is no number."""
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise Invalid("confidence is a number from 0 to 1")
    return float(value)


# --- identity, and the page that shows it ------------------------------------------------------------


def directory_of_project(project_id: bytes) -> DirectoryId:
    """The identity of what is known of a project without a directory of its own. No directory on a disk has device 0."""
    return DirectoryId(host=f"project-{id_text(project_id)}", device="0", inode="0")


def identity_hash(directory: DirectoryId, key: str) -> str:
    """SHA-256, hexadecimal, of (directory, key): each part behind its length, so that no two identities give one text."""
    parts = (directory.host, directory.device, directory.inode, key)
    joined = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return hashlib.sha256(joined).hexdigest()


def page_paths(directory: DirectoryId, key: str) -> Iterator[PagePath]:
    """Where the page of an entry may lie: `knowledge/<slug>-<8 hex of the identity>.md`, then with more of it."""
    name, digest = slug(key), identity_hash(directory, key)
    for chars in _HASH_CHARS:
        yield page_path(f"{FOLDER}/{name}-{digest[:chars]}.md")


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the front matter of a knowledge page says of the version that memoryd wrote into it."""

    id: bytes
    directory: DirectoryId
    key: str
    version: int
    confidence: float
    origin: Origin
    provenance: Provenance | None
    #: Of the text below it: a person's edit of the file is known by it.
    digest: str

    def says(self, content: str) -> bool:
        return self.digest == content_digest(content)


def content_digest(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def head_values(head: Head) -> dict[str, Any]:
    """The value of `HEAD_KEY`."""
    source = head.provenance
    values: dict[str, Any] = {
        "id": id_text(head.id),
        "host": head.directory.host,
        "device": head.directory.device,
        "inode": head.directory.inode,
        "about": head.key,
        "version": head.version,
        "confidence": head.confidence,
        "origin": str(head.origin),
        "digest": head.digest,
    }
    if source is not None:
        values["source"] = {
            "session": id_text(source.session_id),
            "first": source.first_sequence,
            "last": source.last_sequence,
            "sha256": source.sha256.hex(),
        }
    return values


def read_head(values: Mapping[str, Any]) -> Head | None:
    """What a front matter says of an entry; None where it says nothing, or nothing that can be one."""
    found = values.get(HEAD_KEY)
    if not isinstance(found, Mapping):
        return None
    said = cast("Mapping[str, Any]", found)
    try:
        version = int(said["version"])
        origin = Origin(str(said["origin"]))
        if not 1 <= version <= limits.KNOWLEDGE_VERSION_MAX or origin is Origin.AGE:
            return None
        directory = DirectoryId(host=str(said["host"]), device=str(said["device"]), inode=str(said["inode"]))
        directory.check()
        return Head(
            id=id_bytes(str(said["id"])),
            directory=directory,
            key=checked_key(str(said["about"])),
            version=version,
            confidence=checked_confidence(float(said["confidence"])),
            origin=origin,
            provenance=_read_provenance(said.get("source")),
            digest=str(said["digest"]),
        )
    except (KeyError, ValueError, TypeError, OverflowError, Invalid):
        return None


def _read_provenance(value: Any) -> Provenance | None:
    if not isinstance(value, Mapping):
        return None
    said = cast("Mapping[str, Any]", value)
    made = Provenance(
        session_id=id_bytes(str(said["session"])),
        first_sequence=int(said["first"]),
        last_sequence=int(said["last"]),
        sha256=bytes.fromhex(str(said["sha256"])),
    )
    is_sound = 0 < made.first_sequence <= made.last_sequence < 2**63 and len(made.sha256) == 32
    return made if is_sound else None


# --- recall ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecallBounds:
    """What is given unasked: entries of at least `confidence`, at most `entries` of them, at most `size_bytes` of JSON."""

    entries: int = limits.RECALL_ENTRIES
    size_bytes: int = limits.RECALL_BYTES
    confidence: float = limits.RECALL_CONFIDENCE_MIN

    def tightened(self, other: RecallBounds) -> RecallBounds:
        """The stricter of both in each respect."""
        return RecallBounds(
            entries=min(self.entries, other.entries),
            size_bytes=min(self.size_bytes, other.size_bytes),
            confidence=max(self.confidence, other.confidence),
        )


def fitting(sizes: Iterable[int], most_bytes: int) -> int:
    """How many of the first items fit into a JSON array of `most_bytes`; the first that does not ends it. `sizes` are those of
    the items' own texts."""
    left, count = most_bytes - len("[]"), 0
    for size in sizes:
        left -= size + (1 if count else 0)
        if left < 0:
            break
        count += 1
    return count
