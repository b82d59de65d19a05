"""Where a project's pages lie below the wiki root: readable directories `<workspace>/<project>/<path>`."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache

from memory_core.domain.page import PagePath, name_key, short_hash, slug
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.ids import id_bytes, id_text
from memory_core.wiki import front_matter

META = "_meta.md"
#: Patterns of the files of a project that are rendered from its tables.
RENDERED = ("index.md", "log-[0-9][0-9][0-9][0-9]-[0-9][0-9].md")
#: Names of files that only an interrupted installation leaves behind.
TEMPORARY = (".t-", ".x-")


@lru_cache(maxsize=1024)
def directory_name(name: str) -> str:
    """A directory for a workspace or project: its name where every file system can hold it, else a slug with a hash.

    Names with one key (case, normal form) give directories with one key; other names never do.
    """
    plain = unicodedata.normalize("NFC", name)
    if plain.endswith(".md") or not all(
        char in "._-" or unicodedata.category(char)[0] in "LNM" for char in plain
    ):
        return _hashed(name)
    is_safe = slug(plain.replace(".", "-").replace("_", "-")) == name_key(plain).replace(".", "-").replace(
        "_", "-"
    )
    if plain[:1] in (".", "-") or plain.endswith(".") or not (is_safe or plain[:1] == "_"):
        return _hashed(name)
    return plain if len(plain.encode()) <= 200 else _hashed(name)


def _hashed(name: str) -> str:
    made = slug(name)
    suffix = short_hash(name_key(name))
    return made if made.endswith(suffix) else f"{made}-{suffix}"


def project_directory(project: Project) -> str:
    """Where a project's pages lie, relative to the wiki root."""
    return project.folder or usual_directory(project)


def usual_directory(project: Project) -> str:
    """The directory that a project's names give."""
    return f"{directory_name(project.workspace)}/{directory_name(project.name)}"


def file_of(project: Project, path: PagePath) -> str:
    """A page's file, relative to the wiki root."""
    return f"{project_directory(project)}/{path.path}"


def meta_file(project: Project) -> tuple[str, bytes]:
    """The file that says which project a directory is, for people and for a rebuild of the database."""
    text = (
        "---\n"
        f"workspace: {json.dumps(project.workspace, ensure_ascii=False)}\n"
        f"project: {json.dumps(project.name, ensure_ascii=False)}\n"
        f"project_id: {id_text(project.id)}\n"
        "---\n"
        "memoryd keeps this project's pages here. Read them in any editor; leave this file as it is.\n"
    )
    return f"{project_directory(project)}/{META}", text.encode()


@lru_cache(maxsize=1024)
def read_meta(text: str) -> Project | None:
    """The project that a `_meta.md` names (its number is not known there); None when it names none.

    Remembered by its text: it is asked before each file is put in place, and reading YAML takes longer than writing a page's row.
    """
    values = front_matter.read(text).values
    try:
        return Project(
            id=id_bytes(str(values["project_id"])),
            number=0,
            name=str(values["project"]),
            workspace=str(values["workspace"]),
        )
    except (KeyError, Invalid):
        return None


def parts_of(file: str) -> list[str]:
    """The names on the way to a file below the root; `Invalid` if one of them could lead elsewhere."""
    parts = file.split("/")
    for part in parts:
        if part in ("", ".", "..") or "\x00" in part:
            raise Invalid(f"not a file of the wiki: {file[:80]!a}")
    return parts
