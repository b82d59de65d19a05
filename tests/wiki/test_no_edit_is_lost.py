"""People, agents and crashes in any order: each text that somebody saved is in a version or still in a file."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from memory_core.wiki.outbox import Installer
from tests.wiki.house import House
from tests.wiki.oracle import unexplained
from tests.writer.mutants import blind_exchange, open_files_dropped

PATHS = st.sampled_from(["notes/a.md", "notes/b.md", "ideas/c.md"])
STEPS = st.sampled_from(["write", "stage", "link", "exchange", "sync", "look", "unlink", "take", "done"])


class Crash(BaseException):
    pass


class Editing(RuleBasedStateMachine):
    """What one person does who never destroys what is in no version yet, beside an agent, a writer and its death.

    A saved text is a line of its own, so that it can be found wherever it goes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.house = House(self.directory / "house")
        self.saved: list[str] = []
        self.opened: list[TextIO] = []
        self.numbers = itertools.count()
        #: What happens at a named step of the next installation.
        self.at_step: dict[str, Callable[[], None]] = {}
        self.house.installer = Installer(self.house.root, hook=self._reached)
        self.house.write_page("notes/a.md", "first\n")

    def _reached(self, step: str) -> None:
        self.at_step.pop(step, lambda: None)()

    def _line(self) -> str:
        self.saved.append(f"edit-{next(self.numbers)}-end")
        return f"{self.saved[-1]}\n"

    def _is_safe(self, path: str) -> bool:
        """Whether nothing is lost with this file: a person who deletes what nobody saw does it on purpose."""
        file = self.house.file(path)
        if not file.exists():
            return False
        here = file.stat().st_ino
        kept = self._kept()
        return all(line in kept for line in file.read_text().splitlines() if "edit-" in line) and all(
            here != Path(f"/proc/self/fd/{opened.fileno()}").stat().st_ino for opened in self.opened
        )

    def _kept(self) -> str:
        return "\n".join(
            row["content"] for row in self.house.books.query("SELECT content FROM page_versions")
        )

    # --- the person ---

    @rule(path=PATHS)
    def saves_in_place(self, path: str) -> None:
        file = self.house.file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(self._line())

    @rule(path=PATHS)
    def saves_by_rename(self, path: str) -> None:
        file = self.house.file(path)
        if file.exists() and not any(
            Path(f"/proc/self/fd/{opened.fileno()}").stat().st_ino == file.stat().st_ino
            for opened in self.opened
        ):
            aside = file.with_name(".saving.swp")
            aside.write_text(file.read_text() + self._line())
            aside.rename(file)

    @precondition(lambda self: len(self.opened) < 2)
    @rule(path=PATHS)
    def opens(self, path: str) -> None:
        if self.house.file(path).exists():
            self.opened.append(self.house.file(path).open("a"))

    @precondition(lambda self: self.opened)
    @rule(closes=st.booleans())
    def saves_into_the_open_file(self, closes: bool) -> None:
        opened = self.opened[0]
        opened.write(self._line())
        opened.flush()
        if closes:
            self.opened.pop(0).close()

    @rule(path=PATHS, number=st.integers(0, 3))
    def renames(self, path: str, number: int) -> None:
        file = self.house.file(path)
        new = file.with_name(f"renamed {number}.md")
        if file.exists() and not new.exists():
            file.rename(new)

    @rule(path=PATHS)
    def deletes(self, path: str) -> None:
        if self._is_safe(path):
            self.house.file(path).unlink()

    @rule(path=PATHS, back=st.integers(0, 3))
    def checks_out(self, path: str, back: int) -> None:
        page = self.house.page(path)
        if page is None or not self._is_safe(path):
            return
        rows = self.house.books.query("SELECT content FROM page_versions WHERE page_id = ?", page["id"])
        self.house.file(path).unlink()
        self.house.save(path, rows[-1 - back % len(rows)]["content"])

    # --- the agent, and the writer ---

    @rule(path=PATHS)
    def an_agent_writes(self, path: str) -> None:
        self.house.write_page(path, f"agent {next(self.numbers)}\n")

    @rule(path=PATHS, step=STEPS, what=st.sampled_from(["save", "rename", "open", "into open", "crash"]))
    def an_agent_writes_and_meanwhile(self, path: str, step: str, what: str) -> None:
        def meanwhile() -> None:
            if what == "save":
                self.saves_in_place(path)
            elif what == "rename":
                self.renames(path, 4)
            elif what == "open":
                self.opens(path)
            elif what == "crash":
                raise Crash
            elif self.opened:
                self.saves_into_the_open_file(True)

        self.at_step = {step: meanwhile}
        try:
            self.house.write_page(path, f"agent {next(self.numbers)}\n")
        except Crash:
            self.house.start()
        self.at_step = {}

    @rule()
    def the_writer_looks(self) -> None:
        self.house.look()

    @rule()
    def the_writer_looks_until_it_is_still(self) -> None:
        self.house.look_until_still(80)

    @rule()
    def the_writer_starts_again(self) -> None:
        self.house.start()

    def teardown(self) -> None:
        try:
            for opened in self.opened:
                opened.close()
            self.house.start()
            self.house.look_until_still(80)
            kept = self._kept()
            assert [text for text in self.saved if text not in kept] == [], "an edit is in no version"
            assert unexplained(self.house.books) == []
            assert self.house.books.query("SELECT * FROM file_outbox") == []
            assert [file for file in self.house.books.files() if "/.x-" in file or "/.t-" in file] == []
        finally:
            self.house.close()
            shutil.rmtree(self.directory)


def run(examples: int, **more: Any) -> None:
    run_state_machine_as_test(
        Editing,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )


def test_no_edit_is_lost_whatever_comes_together():
    run(60)


@pytest.mark.parametrize("mutant", [blind_exchange, open_files_dropped], ids=["blind", "open files"])
def test_the_mutant_is_caught(monkeypatch: pytest.MonkeyPatch, mutant):
    mutant.load(monkeypatch.setattr)

    with pytest.raises(AssertionError, match="an edit is in no version"):
        run(1_000, phases=[Phase.generate], database=None)
