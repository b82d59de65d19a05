"""`memoryd commit`, `checkpoints`, `restore-page`, `heal` and `reindex`, as a person types them, against a whole stack."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.main import main
from memory_core.store.database import Database
from memory_core.store.statement import text_statement
from tests.e2e.running import Running, wait_until

pytestmark = pytest.mark.stack

SHOP = ("--project", "shop")


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("wiki commands"), conditions=["quick_looks", "patient"]) as running:
        yield running


class Person:
    """Types commands. What one printed is in `out` and `err`."""

    def __init__(
        self, memoryd: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.memoryd = memoryd
        self.wiki = memoryd.settings.wiki
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.out = self.err = ""

    def says(self, *words: str, answer: str = "", code: int = 0) -> str:
        self._capsys.readouterr()
        self._monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        self.out, self.err = self._capsys.readouterr()
        assert (ended.value.code or 0) == code, self.out + self.err
        return self.out

    def asks(self, *words: str) -> Any:
        return json.loads(self.says(*words, "--json"))

    def writes(self, path: str, text: str) -> None:
        self.says("write-page", path, "-b", text, *SHOP)

    def reads(self, path: str) -> str:
        return self.asks("read-page", path, *SHOP)["body"]

    def file(self, path: str) -> Path:
        return self.wiki / "default" / "shop" / path

    def state(self) -> dict[str, Any]:
        return self.memoryd.request("GET", "/api/v1/wiki")[1]

    def waits_for_files(self, *paths: str) -> None:
        wait_until(lambda: all(self.file(p).exists() for p in paths), saying="the files are there")


@pytest.fixture
def person(
    memoryd: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORYD_URL", f"http://127.0.0.1:{memoryd.port}")
    monkeypatch.setenv("MEMORYD_TOKEN", memoryd.settings.token_file.read_text().strip())
    for name in ("MEMORYD_TOKEN_FILE", "MEMORYD_CLIENT_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Person(memoryd, capsys, monkeypatch)


def test_a_commit_is_made_at_once_and_listed_with_its_message(person: Person):
    person.writes("notes/a.md", "# A\n\nfirst\n")
    made = person.asks("commit", "-m", "before the sale")
    assert made["changed"] is True
    assert len(made["commit"]) == 40

    listed = person.asks("checkpoints", *SHOP)
    assert [(c["commit"], c["message"], c["checkpoints"]) for c in listed[:1]] == [
        (made["commit"], "before the sale", [made["checkpoint"]])
    ]
    row = person.says("checkpoints").splitlines()[0]
    assert made["commit"][:12] in row
    assert "before the sale" in row
    again = person.says("commit")
    assert again.startswith(f"Nothing changed since {made['commit'][:18]}")


def test_checkpoints_of_a_page_are_those_that_changed_it(person: Person):
    person.writes("notes/mine.md", "# Mine\n")
    mine = person.asks("commit")["commit"]
    person.writes("notes/other.md", "# Other\n")
    person.asks("commit")

    assert [c["commit"] for c in person.asks("checkpoints", "notes/mine.md", *SHOP)] == [mine]
    assert len(person.asks("checkpoints", "-n", "1", *SHOP)) == 1
    assert person.asks("checkpoints", "notes/nowhere.md", *SHOP) == []
    assert person.says("checkpoints", "notes/nowhere.md", *SHOP) == "No checkpoint.\n"
    person.says("checkpoints", "-n", "0", code=2)


def test_a_page_is_restored_after_showing_what_changes_and_asking(person: Person):
    person.writes("notes/r.md", "# R\n\nold words\n")
    old = person.asks("commit")
    person.writes("notes/r.md", "# R\n\nnew words\n")

    person.says("restore-page", "notes/r.md", "--from", old["checkpoint"], *SHOP, answer="n\n", code=1)
    assert "-new words" in person.err
    assert "+old words" in person.err
    assert "Aborted" in person.err
    assert "new words" in person.reads("notes/r.md")

    said = person.says("restore-page", "notes/r.md", "--from", old["commit"][:10], *SHOP, answer="y\n")
    assert said.startswith("Restored notes/r.md from ")
    assert "old words" in person.reads("notes/r.md")

    same = person.asks("restore-page", "notes/r.md", "--from", old["checkpoint"], "--yes", *SHOP)
    assert same["changed"] is False
    person.writes("notes/r.md", "# R\n\nnewer words\n")
    result = person.asks("restore-page", "notes/r.md", "--from", old["checkpoint"], "-y", *SHOP)
    assert (result["changed"], result["path"]) == (True, "notes/r.md")
    assert result["pre_checkpoint"] != result["checkpoint"]


def test_what_cannot_be_restored_is_said_and_nothing_changes(person: Person):
    person.writes("notes/q.md", "# Q\n")
    person.asks("commit")

    person.says("restore-page", "notes/q.md", "--from", "no-such-thing", "-y", *SHOP, code=1)
    assert "no-such-thing" in person.err
    person.says("restore-page", "notes/q.md", "--from", "0" * 40, "-y", *SHOP, code=1)
    assert "no commit" in person.err
    person.says("restore-page", "notes/never.md", "--from", "HEAD", "-y", *SHOP, code=1)
    person.says("restore-page", "notes/q.md", *SHOP, code=2)
    assert "--from" in person.err
    person.says("restore-page", "notes/q.md", "--from", "abcd", "-y", "--project", "nowhere", code=1)
    assert "nowhere" in person.err


def test_lost_files_are_written_again_after_asking_or_their_pages_are_deleted(person: Person):
    paths = [f"ideas/{number}.md" for number in range(8)]
    for path in paths:
        person.writes(path, f"# {path}\n")
    person.waits_for_files(*paths)
    wait_until(lambda: person.state().get("pages", 0) >= 8, saying="the files are looked at")
    shutil.rmtree(person.wiki / "default" / "shop")
    wait_until(lambda: person.state().get("held"), saying="the loss is seen")
    pages = person.state()["pages_in_tables"]

    person.says("heal", answer="n\n", code=1)
    assert f"{pages} of {pages} pages without a file are written again" in person.err
    assert not person.file(paths[0]).exists()
    person.says("heal", "--broken", "--accept-deletions", code=2)
    assert "choose one" in person.err

    healed = person.asks("heal", "--yes")
    assert healed["task"]["counts"]["rewritten"] == pages
    assert healed["task"]["finished_at"] is not None
    person.waits_for_files(*paths)
    assert person.says("heal") == "Done: nothing was to be done.\n"
    assert "No file is missed" in person.err

    shutil.rmtree(person.wiki / "default" / "shop")
    wait_until(lambda: person.state().get("held"), saying="the second loss is seen")
    person.says("heal", "--accept-deletions", answer="n\n", code=1)
    assert "are deleted" in person.err
    assert person.state()["pages_in_tables"] == pages
    said = person.says("heal", "--accept-deletions", answer="y\n")
    assert f"{pages} pages deleted" in said
    assert person.state()["pages_in_tables"] == 0


def test_a_lost_database_is_rebuilt_with_the_history_that_git_has(person: Person):
    for text in ("one", "two", "three"):
        person.writes("decisions/d.md", f"# D\n\n{text}\n")
        person.asks("commit")
    person.waits_for_files("decisions/d.md")

    person.says("reindex", code=1)
    assert "--force" in person.err
    assert person.says("reindex", "--force", "--no-wait") == "Started.\n"
    wait_until(lambda: person.state()["task"]["finished_at"] is not None, saying="the first one is done")

    settings = person.memoryd.settings
    person.memoryd.stop()
    shutil.rmtree(settings.database.parent)
    person.memoryd.environ["MEMORYD_NEW_DATABASE"] = "1"
    person.memoryd.start()
    del person.memoryd.environ["MEMORYD_NEW_DATABASE"]

    found = person.asks("reindex", "--history")
    assert "tokens" in " ".join(found["cannot_come_back"])
    assert found["task"]["counts"]["adopted"] == 1
    assert found["task"]["counts"]["earlier_versions"] >= 2
    assert "three" in person.reads("decisions/d.md")
    with Database(settings.database).snapshot() as reading:
        versions = reading.rows(
            text_statement(
                "SELECT v.cause, v.content FROM page_versions v JOIN pages p ON p.id = v.page_id"
                " WHERE p.path = 'decisions/d.md' ORDER BY v.seq"
            )
        )
    assert [row["cause"] for row in versions] == ["git", "git", "reindex"]
    assert [row["content"].strip().rsplit("\n", 1)[1] for row in versions] == ["one", "two", "three"]


def test_a_server_that_is_not_there_is_said_by_each_of_them(person: Person, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEMORYD_URL", "http://127.0.0.1:9")
    for words in (
        ("reindex",),
        ("heal", "-y"),
        ("checkpoints",),
        ("commit",),
        ("restore-page", "a.md", "--from", "abcd"),
    ):
        person.says(*words, "--json", code=3)
        assert "memoryd up" in person.err, words
