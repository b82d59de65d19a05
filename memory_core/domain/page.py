"""What a page is called and what it is: path rules, slugs, titles, kinds, tiers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from memory_core import limits
from memory_core.domain.drafts import is_draft
from memory_core.errors import Forbidden, Invalid

SUFFIX = ".md"
#: How the mark begins that stands in a text where a secret stood.
_REDACTED = "[REDACTED:"


class Tier(StrEnum):
    """How long a page is meant to be true: of the moment, of one event, of the world, of a way to do things."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


#: The first folder of a path says the kind, unless the front matter does; anything else is a fact.
KIND_OF_FOLDER = {
    "_rules": "rule",
    "_slots": "slot",
    "sessions": "session",
    "decisions": "decision",
    "gotchas": "gotcha",
    "concepts": "concept",
    "procedures": "procedure",
    "notes": "note",
}
DEFAULT_KIND = "fact"
SESSIONS_FOLDER = "sessions"
DEFAULT_FOLDER = "notes"

#: Paths that nobody writes a page to, compared with path keys, and why.
_RESERVED = (
    (re.compile(r"index\.md|log-\d{4}-\d{2}\.md"), "memoryd renders it from its tables"),
    (re.compile(r"(?:.*/)?_meta\.md|log\.md|bootstrap\.md"), "it is one of memoryd's own files"),
    (re.compile(r"_pending/.*"), "what waits there for somebody's word is written by memoryd"),
    (
        re.compile(r"_(?:rules|slots|prompts|lint|pending)\.md"),
        "that name is a folder's; use a page in it, for example _rules/<name>.md",
    ),
    (
        re.compile(r"_slots/.*/.*"),
        "a folder in _slots is kept for the slots of one person; use _slots/<name>.md",
    ),
)
#: Folders whose pages are handed to agents or models unasked.
_GIVEN_UNASKED = ("_rules/", "_slots/", "_prompts/")
_MAY_GUIDE = ("admin", "write")
_MAY_WRITE_ANYWHERE = (*_MAY_GUIDE, "pool")
#: Names that Windows keeps for devices, with any suffix; a wiki is also checked out there.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\..*)?")
#: Characters that Windows takes in no name (a colon would name a hidden stream of the file).
_NOT_ON_WINDOWS = re.compile('[<>:"|?*]')
#: What Windows calls `.git` where it makes short names.
_SHORT_GIT = re.compile(r"git~[0-9]+")
_DRIVE = re.compile(r"[A-Za-z]:")
#: Bidirectional overrides, separators, and characters without width (those apart that some scripts
#: and emoji need): a name that shows as another one.
_DECEPTIVE = re.compile(
    "[\u00ad\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_HASH_CHARS = 8


@dataclass(frozen=True, kw_only=True)
class PagePath:
    """A page's place in its project: `path` as it is spelled, `key` by which two spellings are one page."""

    path: str
    key: str

    @property
    def stem(self) -> str:
        return self.path.rsplit("/", 1)[-1][: -len(SUFFIX)]

    @property
    def is_slot(self) -> bool:
        """Slots are always pinned."""
        return self.key.startswith("_slots/")


def has_hidden_characters(text: str) -> bool:
    """Whether it holds what cannot be seen or turns what is seen around: controls, marks of direction, lone surrogates."""
    if text.isprintable():
        return False
    return bool(_DECEPTIVE.search(text)) or any(unicodedata.category(char) in ("Cc", "Cs") for char in text)


def name_key(name: str) -> str:
    """The canonical caseless form of a name (Unicode, D145): equal keys mean the same name."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
    return unicodedata.normalize("NFC", folded)


def page_path(text: str) -> PagePath:
    """The path that `text` names: relative, parts joined by `/`, NFC, `.md` appended when missing.

    Raises `Invalid`, saying what is wrong, for a path that could leave its project, hide, or not be
    checked out everywhere. Idempotent.
    """
    return _checked(unicodedata.normalize("NFC", text).strip())


# Called several times for each file of the wiki. What is refused is not kept, so what is kept is short.
@lru_cache(maxsize=4096)
def _checked(path: str) -> PagePath:
    if not path:
        raise Invalid("a page needs a path, for example notes/testing.md")
    if _REDACTED in path:
        # Said first: what is wrong with the mark that stands in place of the secret is nothing to tell.
        raise Invalid("the path holds a secret, which memoryd never keeps; give the page a path without one")
    if "\\" in path:
        raise Invalid(f"{_shown(path)}: use / between folders, not a backslash")
    if path.startswith("/") or _DRIVE.match(path):
        raise Invalid(f"{_shown(path)}: a page path is relative to its project")
    if has_hidden_characters(path):
        raise Invalid(f"{_shown(path)}: control characters cannot stand in a page path")
    if not path.casefold().endswith(SUFFIX):
        path += SUFFIX
    *folders, _ = parts = path.split("/")
    for part in parts:
        _check_part(part, path)
    if any(folder.casefold().endswith(SUFFIX) for folder in folders):
        raise Invalid(f"{_shown(path)}: a folder cannot end in {SUFFIX}")
    if len(path) > limits.PAGE_PATH_MAX_CHARS:
        raise Invalid(f"{_shown(path)}: a page path has at most {limits.PAGE_PATH_MAX_CHARS} characters")
    return PagePath(path=path, key=name_key(path))


def _check_part(part: str, path: str) -> None:
    if not part:
        raise Invalid(f"{_shown(path)}: a folder or file name is empty")
    if part.startswith("."):
        raise Invalid(f"{_shown(path)}: names that begin with a dot are hidden or leave the project")
    if part.startswith("-"):
        raise Invalid(f"{_shown(path)}: a name that begins with - reads as an option of a program")
    if (bad := _NOT_ON_WINDOWS.search(part)) is not None:
        raise Invalid(f"{_shown(path)}: {bad.group()} cannot stand in a file's name on Windows")
    if part != part.strip() or part.endswith("."):
        raise Invalid(f"{_shown(path)}: a name may not begin or end with a space, nor end with a dot")
    if _DEVICE.fullmatch(name_key(part)) or _SHORT_GIT.match(name_key(part)):
        raise Invalid(f"{_shown(path)}: {part} stands for something else on Windows; choose another")
    if len(part.encode()) > limits.PAGE_NAME_MAX_BYTES:
        raise Invalid(f"{_shown(path)}: one name has at most {limits.PAGE_NAME_MAX_BYTES} bytes")


def check_not_reserved(path: PagePath) -> None:
    """Raise `Invalid`, saying why, for the paths where no page can be."""
    if (reason := why_reserved(path)) is not None:
        raise Invalid(f"no page can be written to {path.path}: {reason}")


def why_reserved(path: PagePath) -> str | None:
    """Why no page can be at that path; None where one can be."""
    for pattern, reason in _RESERVED:
        if pattern.fullmatch(path.key):
            return reason
    if any(is_draft(part) for part in path.path.split("/")):
        return "editors give such names to drafts and backups, which are passed over"
    return None


def check_may_write(path: PagePath, token_scope: str) -> None:
    """Raise `Invalid` or `Forbidden` where text that came with a token of that scope must not be.

    What was captured may only be the page of its session, and what a pool worker made is not handed
    to agents unasked: text gains no authority by the folder that it is put into.
    """
    check_not_reserved(path)
    if token_scope not in _MAY_WRITE_ANYWHERE and not path.key.startswith(f"{SESSIONS_FOLDER}/"):
        raise Forbidden(f"captured text makes pages in {SESSIONS_FOLDER}/ only, not {path.path}")
    if token_scope not in _MAY_GUIDE and path.key.startswith(_GIVEN_UNASKED):
        raise Forbidden(f"{path.path} is given to agents unasked: it takes a token that may write")


def _shown(path: str) -> str:
    return ascii(path) if len(path) <= 80 else ascii(path[:80]) + "…"


# --- names made of titles ------------------------------------------------------------------------


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]


def slug(title: str) -> str:
    """A file name (without suffix) for a title: letters and digits of any script, joined by `-`.

    Titles that differ only in case, normal form, or in spaces against hyphens share a slug. Whenever
    anything else is lost (symbols, emoji, length, a device name), a short hash of the title is
    appended, so two other titles never share one; nothing left at all gives `untitled-<hash>`.
    """
    key = re.sub(r"[\s_-]+", "-", name_key(title)).strip("-")
    kept = "".join(char if unicodedata.category(char)[0] in "LNM" else "-" for char in key)
    name = re.sub("-+", "-", kept).strip("-")
    if not name:
        return f"untitled-{short_hash(key)}"
    short = _cut_bytes(name, limits.SLUG_MAX_BYTES)
    if short != key or _DEVICE.fullmatch(short):
        return f"{short}-{short_hash(key)}"
    return short


def _cut_bytes(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode(errors="ignore").strip("-")


def path_for_title(title: str, folder: str = DEFAULT_FOLDER) -> PagePath:
    """Where a page goes that was given a title but no path."""
    return page_path(f"{folder}/{slug(title)}{SUFFIX}")


def one_line(text: str) -> str:
    """`text` on one line, NFC, without control characters; of a very long one the beginning, with a hash of the rest."""
    if len(text) > limits.TITLE_READ_MAX_CHARS:
        text = f"{text[: limits.TITLE_READ_MAX_CHARS]} {short_hash(text)}"
    plain = unicodedata.normalize("NFC", text)
    if not plain.isprintable():
        plain = "".join(
            " " if unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") else char for char in plain
        )
    return " ".join(plain.split())


def clean_title(text: str) -> str:
    """A title on one line, NFC, without control characters, at most `PAGE_TITLE_MAX_CHARS`."""
    title = one_line(text)
    if len(title) > limits.PAGE_TITLE_MAX_CHARS:
        title = title[: limits.PAGE_TITLE_MAX_CHARS - 1].rstrip() + "…"
    return title


def title_of(body: str) -> str:
    """The first level-one heading outside fenced code, else the empty string."""
    return clean_title(_heading_of(body))


def name_for_new_page(body: str) -> str:
    """What a page is named by that came without title and path: first heading, else first line, else a hash.

    Uncut: pages whose names begin alike are not one page.
    """
    first = next((line.lstrip("#> *-") for line in body.splitlines() if line.strip()), "")
    return one_line(_heading_of(body)) or one_line(first) or f"untitled-{short_hash(body)}"


def _heading_of(body: str) -> str:
    heading = _HEADING.search(_FENCE.sub("", body))
    return heading.group(1) if heading else ""


def kind_for(path: PagePath) -> str:
    folder, slash, _ = path.key.partition("/")
    return KIND_OF_FOLDER.get(folder, DEFAULT_KIND) if slash else DEFAULT_KIND
