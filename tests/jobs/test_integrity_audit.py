"""What an audit finds in a data directory that is well, and in one where something was broken on purpose."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.config import Settings
from memory_core.errors import Unavailable
from memory_core.job_kind import Cancelled
from memory_core.jobs import integrity_audit
from memory_core.jobs.integrity_audit import Audit, Nothing, audited
from memory_core.wiki.git import Git
from memory_core.wiki.git_repository import Repository
from tests.books import Books
from tests.factories import database
from tests.jobs.working import Worker, add_job, job_of


class Told:
    """The tools of a computation; `stops_at` is the step at which it is cancelled."""

    model = None

    def __init__(self, data: Settings | None, stops_at: int = 10**9) -> None:
        self.data = data
        self.said: list[str] = []
        self._stops_at = stops_at

    def cancelled(self) -> bool:
        return len(self.said) >= self._stops_at

    def progress(self, text: str) -> None:
        self.said.append(text)


class Acting(FakeClock):
    """A clock whose first pause is used by somebody."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act: Callable[[], object] | None = act

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._act is not None:
            act, self._act = self._act, None
            act()


@pytest.fixture
def data(tmp_path: Path) -> Iterator[tuple[Settings, Books]]:
    """A data directory with two pages and their files."""
    settings = Settings(data_dir=tmp_path / "data")
    settings.database.parent.mkdir(parents=True)
    settings.tmp_dir.mkdir()
    books = Books(settings.database.parent)
    books.wiki.rmdir()
    settings.wiki.mkdir()
    books.wiki = settings.wiki
    for name in ("one", "two"):
        books.apply(
            WritePage(
                path=f"notes/{name}.md",
                body=f"# {name}\n\nText.\n",
                workspace="default",
                project="lighthouse",
            )
        )
    books.install()
    yield settings, books
    books.close()


def file_of(settings: Settings, name: str) -> Path:
    return settings.wiki / "default" / "lighthouse" / "notes" / f"{name}.md"


def found(settings: Settings, clock: FakeClock | None = None) -> list[tuple[str, str]]:
    audit = audited(settings, clock or FakeClock(), Told(settings))
    assert audit.wrong == len(audit.findings)
    return [(finding.kind, finding.what) for finding in audit.findings]


def test_where_all_is_well_nothing_is_found(data):
    settings, _ = data

    audit = audited(settings, FakeClock(), Told(settings))

    assert (audit.wrong, audit.findings) == (0, [])
    assert audit.tables > 20
    assert (audit.projects, audit.files, audit.history) == (1, 2, "absent")


def test_a_file_that_is_missing_or_differs_is_found(data):
    settings, _ = data
    file_of(settings, "one").unlink()
    file_of(settings, "two").write_text("somebody's edit that nobody takes in")

    assert found(settings) == [
        ("file_missing", "default/lighthouse/notes/one.md"),
        ("file_differs", "default/lighthouse/notes/two.md"),
    ]


def test_a_promised_file_is_not_wrong(data):
    settings, books = data
    books.apply(
        WritePage(path="notes/one.md", body="# one\n\nNew text.\n", workspace="default", project="lighthouse")
    )
    books.apply(WritePage(path="notes/three.md", body="# three\n", workspace="default", project="lighthouse"))

    assert found(settings) == []


def test_a_deleted_page_needs_no_file(data):
    settings, books = data
    books.apply(DeletePage(path="notes/one.md", workspace="default", project="lighthouse"))
    books.install()

    assert found(settings) == []


def test_an_edit_that_is_taken_in_meanwhile_is_not_wrong(data):
    settings, _ = data
    file, text = file_of(settings, "one"), file_of(settings, "one").read_text()
    file.unlink()

    assert found(settings, Acting(lambda: file.write_text(text))) == []


def test_a_damaged_index_is_found(data):
    settings, books = data
    books.store.connection.execute(
        "UPDATE chunks_fts_data SET block = zeroblob(length(block)) WHERE id > 1000"
    )

    assert found(settings) == [("full_text", "chunks_fts")]


def test_a_reference_to_nothing_is_found(data):
    settings, books = data
    books.store.connection.execute("PRAGMA foreign_keys = OFF")
    books.store.connection.execute(
        "INSERT INTO links SELECT x'00', project_id, '', '', 'a', 'a' FROM pages LIMIT 1"
    )

    assert found(settings) == [("references", "all")]


def test_a_broken_page_of_the_database_is_found(data):
    settings, books = data
    [root] = books.query("SELECT rootpage FROM sqlite_master WHERE name = 'ix_links_to_path_key_project_id'")
    books.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(settings.database, "r+b") as file:
        size = int.from_bytes(os.pread(file.fileno(), 2, 16), "big")
        os.pwrite(file.fileno(), b"\xff" * 64, (root["rootpage"] - 1) * size)

    assert ("table", "links") in found(settings)


def test_a_history_that_lacks_an_object_is_found(data):
    settings, _ = data
    git = Git(settings.wiki, settings.tmp_dir)
    repository = Repository(git, FakeClock())
    repository.create()
    environ = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "a"), ("EMAIL", "a@example.test"))
    }
    blob = git.run("hash-object", "-w", "--stdin", stdin=[b"text"]).decode().strip()
    tree = git.run("mktree", stdin=[f"100644 blob {blob}\tnote.md\n".encode()]).decode().strip()
    commit = git.run("commit-tree", tree, "-m", "a", environ=environ).decode().strip()
    git.run("update-ref", "refs/heads/main", commit)

    whole = audited(settings, FakeClock(), Told(settings))
    (git.directory / "objects" / blob[:2] / blob[2:]).unlink()

    assert (whole.history, whole.wrong) == ("looked_at", 0)
    assert found(settings) == [("history", ".git")]


def test_a_cancelled_audit_stops(data):
    settings, _ = data
    told = Told(settings, stops_at=3)

    with pytest.raises(Cancelled):
        audited(settings, FakeClock(), told)

    assert len(told.said) == 3


def test_an_audit_elsewhere_is_refused():
    with pytest.raises(Unavailable):
        integrity_audit.compute(Nothing(), Told(None))


def test_the_result_names_what_fits_and_counts_the_rest(tmp_path: Path):
    store = database(tmp_path)
    audit = Audit(tables=30, projects=2, files=100)
    for number in range(50):
        audit.found("file_missing", f"default/lighthouse/notes/{'é' * 200}{number}.md")
    job = add_job(store, name="integrity_audit")
    worker = Worker(store)
    worker.take()

    assert worker.finish(audit)["state"] == "completed"

    result: Any = job_of(store, job).result
    assert result["wrong"] == 50
    assert 0 < len(result["findings"]) <= limits.AUDIT_FINDINGS_MAX
    assert len(json.dumps(result, ensure_ascii=False).encode()) <= limits.JOB_RESULT_MAX_BYTES + 200
    store.close()


def test_a_worker_without_the_data_directory_is_not_given_one(tmp_path: Path):
    store = database(tmp_path)
    add_job(store, name="integrity_audit")

    assert Worker(store, on_data_host=False).take() is None
    store.close()
