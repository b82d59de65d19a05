"""Small worlds of pages and turns, some of which an asker may see and some not, on real SQLite."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import DeletePage, WritePage
from tests.books import Books
from tests.factories import bash, event, said, used_tool

ASKER = "ada"
ASKED = "alpha"
WORDS = ("quokka", "uploader", "parse_body", "gateway", "retries")


@dataclass(frozen=True)
class Thing:
    """A page (`fate`: shown, expired, deleted, rewritten) or a turn."""

    project: str
    words: tuple[str, ...]
    is_page: bool
    fate: str = "shown"
    owner: str = ASKER
    #: Of a page: the number of another thing that it points to.
    points_to: int = 0

    def is_shown(self, *, everywhere: bool = False, include_expired: bool = False) -> bool:
        if not everywhere and self.project != ASKED:
            return False
        if not self.is_page:
            return self.owner == ASKER
        return self.fate == "shown" or (self.fate == "expired" and include_expired)


_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(tuple)
_projects = st.sampled_from([ASKED, ASKED, "beta"])
_pages = st.builds(
    Thing,
    project=_projects,
    words=_words,
    is_page=st.just(True),
    fate=st.sampled_from(["shown", "shown", "expired", "deleted", "rewritten"]),
    points_to=st.integers(0, 9),
)
_turns = st.builds(
    Thing,
    project=_projects,
    words=_words,
    is_page=st.just(False),
    owner=st.sampled_from([ASKER, "bob"]),
)
worlds = st.lists(st.one_of(_pages, _pages, _turns), min_size=2, max_size=10)


class World:
    """Things in a database of their own. Thing `n` says `zqnz`, and nothing else does."""

    def __init__(self, books: Books, things: Sequence[Thing]) -> None:
        self.books = books
        self.things = list(things)
        for project in (ASKED, "beta"):
            self.turn(project, "bob", "nothing of it", key=f"opens-{project}")
        for number, thing in enumerate(things):
            if thing.is_page:
                self._page(number, thing)
            else:
                self.turn(thing.project, thing.owner, self.text(number), key=f"{thing.owner}-{thing.project}")

    def text(self, number: int) -> str:
        return f"{mark(number)} {' '.join(self.things[number].words)}."

    def turn(self, project: str, owner: str, text: str, *, key: str) -> None:
        self._record(event(body=text, session_key=key, cwd=f"/srv/{project}"), owner)

    def answer(self, project: str, owner: str, text: str, *, key: str) -> None:
        self._record(said(text, session_key=key, cwd=f"/srv/{project}"), owner)

    def tool(self, project: str, owner: str, text: str, *, key: str) -> None:
        self._record(used_tool(bash("ls", text), session_key=key, cwd=f"/srv/{project}"), owner)

    def page(self, project: str, path: str, body: str, **more: Any) -> None:
        self.books.apply(WritePage(workspace="default", project=project, path=path, body=body, **more))

    def numbers(self, *names: str) -> list[int]:
        rows = self.books.query("SELECT number, name FROM projects")
        return [row["number"] for row in rows if row["name"] in names]

    def said_in(self, text: str) -> set[int]:
        """The numbers of the things whose mark stands in a text."""
        return {number for number in range(len(self.things)) if mark(number) in text.lower()}

    def _page(self, number: int, thing: Thing) -> None:
        path, link = f"notes/page{number}.md", f"[[notes/page{thing.points_to}]]"
        more = {"expires_at": "2001-01-01"} if thing.fate == "expired" else {}
        self.page(thing.project, path, f"# Page {mark(number)}\n\n{self.text(number)} {link}", **more)
        if thing.fate == "deleted":
            self.books.apply(DeletePage(workspace="default", project=thing.project, path=path))
        if thing.fate == "rewritten":
            self.page(thing.project, path, "# New\n\nquokka, all anew", title="New")

    def _record(self, one: Any, owner: str) -> None:
        self.books.apply(RecordObservation(event=one, source="test"), principal=owner, token_scope="capture")


def mark(number: int) -> str:
    return f"zq{number}z"


@contextmanager
def made(things: Sequence[Thing] = ()) -> Generator[World]:
    with tempfile.TemporaryDirectory() as directory:
        books = Books(Path(directory))
        try:
            yield World(books, things)
        finally:
            books.close()
