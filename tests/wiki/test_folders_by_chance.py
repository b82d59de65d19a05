"""Folders that are renamed, copied, merged and written to in any order: in the end files and table agree, and no text is lost."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_core.commands.wiki_tasks import StartHeal
from tests.wiki.house import House
from tests.wiki.test_folders import finish_task, settled

_NAMES = ("alpha", "one", "two")
_LOOK = ("look", "", "")
_PATHS = ("notes/a.md", "notes/b.md", "c.md")
STEP = st.one_of(
    st.tuples(st.just("rename"), st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
    st.tuples(st.just("merge"), st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
    st.tuples(st.just("write"), st.sampled_from(_PATHS), st.just("")),
    st.tuples(st.just("edit"), st.sampled_from(_NAMES), st.sampled_from(_PATHS)),
    st.tuples(st.just("look"), st.just(""), st.just("")),
)


class Play:
    """Does the steps and remembers every text that somebody wrote."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.texts: set[str] = set()
        self.number = 0

    def folder(self, name: str) -> Path:
        return self.house.root / "default" / name

    def do(self, step: tuple[str, str, str]) -> None:
        what, first, second = step
        if what == "look":
            self.house.look()
        elif what == "write":
            self.house.write_page(first, self.text("an agent"))
        elif what == "edit":
            file = self.folder(first) / second
            if file.exists():
                self.give_up(file)
                file.write_text(self.text("by hand"))
        elif first != second and self.folder(first).exists():
            self.move(first, second, is_merge=what == "merge")

    def move(self, first: str, second: str, *, is_merge: bool) -> None:
        if self.folder(second).exists():
            if not is_merge:
                return
            for file in self.folder(first).rglob("*.md"):
                self.give_up(self.folder(second) / file.relative_to(self.folder(first)))
            shutil.copytree(self.folder(first), self.folder(second), dirs_exist_ok=True)
            shutil.rmtree(self.folder(first))
        else:
            self.folder(first).rename(self.folder(second))

    def give_up(self, file: Path) -> None:
        """A person writes over their own text before the server has seen it: nobody has it any more."""
        if file.exists() and file.read_text() not in self.kept():
            self.texts.discard(file.read_text())

    def text(self, who: str) -> str:
        self.number += 1
        made = f"text {self.number} of {who}\n"
        self.texts.add(made)
        return made

    def kept(self) -> set[str]:
        rows = self.house.books.query("SELECT content, body_start FROM page_versions")
        return {row["content"][row["body_start"] :] for row in rows}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(steps=[("rename", "alpha", "one"), _LOOK, _LOOK, ("rename", "one", "alpha"), ("write", "c.md", "")])
@given(steps=st.lists(STEP, min_size=3, max_size=14))
def test_whatever_is_done_to_folders_ends_in_agreement(steps: list[tuple[str, str, str]]):
    with tempfile.TemporaryDirectory() as directory:
        house = House(Path(directory))
        play = Play(house)
        for path in _PATHS:
            house.write_page(path, play.text("an agent"))
        house.look_until_still()

        for step in steps:
            play.do(step)
        house.look_until_still()
        house.books.install(house.installer)
        house.look_until_still()
        if house.outside.status()["held"]:
            house.books.apply(StartHeal())
            finish_task(house)

        settled(house)
        assert play.texts <= play.kept()
        house.close()
