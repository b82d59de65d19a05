"""Files that can be no page, and what is no file, where a page's file belongs; and the few things that tests do beside them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.wiki_file import NOT_TEXT, TOO_LARGE
from tests.books import Books

FILE = "default/alpha/notes/a.md"
UNFIT = {
    "too long": (b"x" * (limits.OUTSIDE_PAGE_MAX_BYTES + 1), TOO_LARGE),
    "not UTF-8": ("caf\xe9\n".encode("latin-1"), NOT_TEXT),
    "UTF-16": ("text".encode("utf-16"), NOT_TEXT),
    "NUL": (b"text\x00text\n", NOT_TEXT),
    "very long and not UTF-8": (b"\xff" * (limits.EXTERNAL_FILE_MAX_BYTES + 5), TOO_LARGE),
}
unfit = pytest.mark.parametrize("what", UNFIT)


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _socket(file: Path) -> None:
    # Its address may be no longer than about 100 bytes: it is made under a name in the current directory.
    here = Path.cwd()
    os.chdir(file.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    finally:
        os.chdir(here)


def _parent_link(file: Path) -> None:
    elsewhere = file.parents[3] / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    file.parent.rmdir()
    file.parent.symlink_to(elsewhere)


def _parent_file(file: Path) -> None:
    file.parent.rmdir()
    file.parent.write_text("a person's\n")


OBSTACLES: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a symbolic link": lambda file: file.symlink_to("b.md"),
    "a named pipe": _pipe,
    "a socket": _socket,
    "'notes' is a symbolic link or a file": _parent_link,
    "where a folder belongs": _parent_file,
}
obstacles = pytest.mark.parametrize("said", OBSTACLES)


def write(books: Books, body: str, path: str = "notes/a.md", **more: str) -> object:
    return books.apply(WritePage(workspace="default", project="alpha", path=path, body=body, **more))


def delete(books: Books, path: str = "notes/a.md") -> object:
    return books.apply(DeletePage(workspace="default", project="alpha", path=path))


def versions(books: Books) -> list[str]:
    return [r["content"][r["body_start"] :] for r in books.query("SELECT * FROM page_versions ORDER BY seq")]


def outbox(books: Books) -> list[str]:
    return [row["file"] for row in books.query("SELECT file FROM file_outbox")]
