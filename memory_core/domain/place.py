"""Where an event belongs: names of workspaces and projects, and what the path of a directory says of them.

Paths here are the caller's: another machine's, another system's. Nothing in this module looks at a disk.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from memory_core.errors import Invalid
from memory_core.limits import NAME_MAX_CHARS, PATH_MAX_BYTES

DEFAULT_WORKSPACE = "default"
DEFAULT_PROJECT = "scratch"
#: Holds what is true in every project; written on purpose only, never by capture.
GLOBAL_PROJECT = "_global"

#: Where `memoryd doctor` writes and deletes its page; no list shows it.
CHECK_PROJECT = "memoryd-doctor"

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_NOT_IN_NAME = re.compile(r"[^a-z0-9._-]+")
_DRIVE = re.compile(r"[A-Za-z]:(/|\Z)")
_WINDOWS = re.compile(r"([A-Za-z]:[\\/])|(\\\\)")
#: Homes of people, and the directories that hold them, on the systems that agents run on.
_TOO_WIDE = re.compile(
    r"/|/root|/(var/)?home(/[^/]+)?|/Users(/[^/]+)?|(/mnt/[a-z]|[A-Z]:)(/Users(/[^/]+)?)?|[A-Z]:/",
    re.IGNORECASE,
)


def is_name(text: str) -> bool:
    """Whether `text` may name a workspace or a project as it stands (`_global` aside)."""
    return len(text) <= NAME_MAX_CHARS and _NAME.match(text) is not None


def name_from(text: str) -> str:
    """The name that `text` (a directory's, a person's) gives: lower case, ASCII, `[a-z0-9][a-z0-9._-]*`.

    Accents are dropped; a text of which nothing would be left is named by its hash, so that two
    such texts do not become one project. Empty text gives an empty name.
    """
    if is_name(text):
        return text
    plain = unicodedata.normalize("NFKD", text.strip()).casefold()
    name = _NOT_IN_NAME.sub("-", "".join(c for c in plain if not unicodedata.combining(c)))
    name = name.strip("-._")[:NAME_MAX_CHARS].rstrip("-._")
    if name or not text.strip():
        return name
    return (
        "x-"
        + hashlib.sha256(unicodedata.normalize("NFC", text.strip()).encode("utf-8", "replace")).hexdigest()[
            :8
        ]
    )


def project_named(workspace: str | None, project: str) -> tuple[str, str]:
    """Workspace and project as a person or a program names them; empty where nothing was named.

    There is one global project, in the default workspace: it is meant without a workspace too, and `Invalid` in another one.
    """
    named = name_from(workspace or "")
    if project.strip() != GLOBAL_PROJECT:
        return named, name_from(project)
    if named not in ("", DEFAULT_WORKSPACE):
        raise Invalid(
            f"{GLOBAL_PROJECT} is one for all workspaces and lies in {DEFAULT_WORKSPACE!r}: leave the workspace out"
        )
    return DEFAULT_WORKSPACE, GLOBAL_PROJECT


@lru_cache(maxsize=512)
def plain_path(path: str | None) -> str | None:
    """One spelling of an absolute path: `/` between segments, none at the end; None for what is no absolute path.

    `C:\\x` becomes `C:/x`, a verbatim prefix goes, and so does macOS's `/private` before its aliases.
    """
    if not path or "\x00" in path or len(path) > PATH_MAX_BYTES:
        return None
    if _WINDOWS.match(path):
        path = path.replace("\\", "/").removeprefix("//?/")
    if _DRIVE.match(path):
        path = path[0].upper() + path[1:]
    elif not path.startswith("/"):
        return None
    for alias in ("var", "tmp", "etc"):
        if path == f"/private/{alias}" or path.startswith(f"/private/{alias}/"):
            path = path.removeprefix("/private")
    lead = "//" if path.startswith("//") and not path.startswith("///") else path[: path.startswith("/")]
    return lead + "/".join(segment for segment in path.split("/") if segment) or "/"


def last_component(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def is_too_wide(path: str, home: str | None = None) -> bool:
    """Whether a directory holds everything a person has: `/`, a drive, a home. No project is made of it."""
    return path == plain_path(home) or _TOO_WIDE.fullmatch(path) is not None


def has_dots(path: str) -> bool:
    """Whether `.` or `..` stand in a path: what it is inside of cannot be told without its disk."""
    return any(segment in (".", "..") for segment in path.split("/"))


def ancestors(path: str) -> list[str]:
    """The path itself and every directory above it, longest first; none for a path with dots."""
    if has_dots(path):
        return []
    found = [path]
    while (above := found[-1].rpartition("/")[0]) and above != "/":
        found.append(above)
    return found


def is_inside(path: str, tree: str) -> bool:
    """Whether `path` is `tree` or below it, at a path boundary (`/repo-other` is not in `/repo`)."""
    return path == tree or (path.startswith(tree.rstrip("/") + "/") and not has_dots(path))
