"""Checkpoints, restoring a page, and older bytes that a power cut brought back."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.clock import SystemClock
from memory_core.commands.checkpoints import MakeCheckpoint
from memory_core.commands.files import install_step
from memory_core.commands.lost_writes import NOTHING_LOST
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.restoring import PageHistory, RestorePage
from memory_core.config import Settings
from memory_core.domain.command import Refusal
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.errors import Conflict, Invalid, NotFound
from memory_core.ids import id_bytes
from memory_core.store import git_batches, projects
from memory_core.wiki.outbox import Installer
from tests.books import Books
from tests.wiki.histories import new_repository, put

SCOPE = {"workspace": "default", "project": "alpha"}


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, text: str, path: str = "notes/a.md") -> dict:
    return books.apply(WritePage(**SCOPE, path=path, body=text))


def delete(books: Books, path: str = "notes/a.md") -> dict:
    return books.apply(DeletePage(**SCOPE, path=path))


def changes(books: Books, checkpoint: str) -> dict[str, bytes | None]:
    with books.database.snapshot() as reading:
        batch = git_batches.by_id(reading, id_bytes(checkpoint))
        assert batch is not None
        return {change.path: change.version_id for change in git_batches.changes_of(reading, batch)}


def committed(books: Books, commit: str = "a" * 40) -> None:
    """As if the thread had committed all that is closed."""
    with books.store.transaction() as tx:
        for batch in git_batches.waiting(tx, 100):
            git_batches.mark_committed(tx, batch.id, commit, files=1)


# --- checkpoints ---------------------------------------------------------------------------------


def test_a_deletion_has_a_checkpoint_before_that_holds_the_page_and_one_after_without_it(books: Books):
    written = write(books, "# A\n")

    answer = delete(books)

    assert changes(books, answer["pre_checkpoint"]) == {"notes/a.md": id_bytes(written["version_id"])}
    assert changes(books, answer["checkpoint"]) == {"notes/a.md": None}


def test_the_checkpoint_before_is_the_last_commit_when_nothing_changed_since(books: Books):
    write(books, "# A\n")
    made = books.apply(MakeCheckpoint(message="mine"))
    committed(books)

    assert delete(books)["pre_checkpoint"] == made["checkpoint"]


def test_a_checkpoint_without_changes_is_the_one_before_and_says_so(books: Books):
    assert books.apply(MakeCheckpoint()) == {"checkpoint": None, "commit": None, "changed": False}
    write(books, "# A\n")
    first = books.apply(MakeCheckpoint())
    committed(books, "b" * 40)

    again = books.apply(MakeCheckpoint())

    assert (first["commit"], first["changed"]) == (None, True)
    assert again == {"checkpoint": first["checkpoint"], "commit": "b" * 40, "changed": False}


def test_a_rename_in_the_table_is_a_file_that_goes_and_one_that_comes(books: Books):
    written = write(books, "# A\n")
    books.apply(MakeCheckpoint())
    books.store.connection.execute("UPDATE pages SET path = 'notes/b.md', path_key = 'notes/b.md'")

    made = books.apply(MakeCheckpoint())

    assert changes(books, made["checkpoint"]) == {
        "notes/a.md": None,
        "notes/b.md": id_bytes(written["version_id"]),
    }


def test_of_many_writes_of_one_page_a_batch_holds_the_last(books: Books):
    for number in range(5):
        last = write(books, f"# A\n{number}\n")

    made = books.apply(MakeCheckpoint())

    assert changes(books, made["checkpoint"]) == {"notes/a.md": id_bytes(last["version_id"])}


# --- restoring -----------------------------------------------------------------------------------


def history(tmp_path: Path) -> PageHistory:
    return PageHistory(Settings(data_dir=tmp_path), SystemClock())


def state(books: Books, tmp_path: Path, source: str, path: str = "notes/a.md"):
    with books.database.snapshot() as reading:
        project = Project.from_row(projects.named(reading, "default", "alpha"))
        found = history(tmp_path).find(reading, project, page_path(path), source)
    return history(tmp_path).load(found)


def restore(books: Books, content: str, **more) -> dict:
    return books.apply(RestorePage(**SCOPE, path="notes/a.md", content=content, origin="a test", **more))


def test_a_restored_version_is_the_newest_and_nothing_after_it_is_lost(books: Books, tmp_path: Path):
    first = write(books, "---\nodd:   'kept'  # so\n---\n# A\nfirst\n")
    write(books, "# A\nsecond\n")
    old = state(books, tmp_path, first["version_id"])

    answer = restore(books, old.content)
    books.install()

    contents = [row["content"] for row in books.query("SELECT content FROM page_versions ORDER BY seq")]
    assert contents[2] == contents[0] == old.content
    assert books.files()["default/alpha/notes/a.md"].decode() == old.content
    assert [row["cause"] for row in books.query("SELECT cause FROM page_versions ORDER BY seq")][
        2
    ] == "restore"
    assert answer["pre_checkpoint"] != answer["checkpoint"]


def test_a_deleted_page_comes_back(books: Books, tmp_path: Path):
    written = write(books, "# A\ntext\n")
    books.install()
    delete(books)
    books.install()

    restore(books, state(books, tmp_path, written["version_id"]).content)
    books.install()

    assert list(books.files()) == ["default/alpha/notes/a.md"]
    assert books.query("SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH 'text'") != []


def test_restoring_what_is_there_changes_nothing(books: Books, tmp_path: Path):
    written = write(books, "# A\n")

    answer = restore(books, state(books, tmp_path, written["version_id"]).content)

    assert answer["changed"] is False
    assert len(books.query("SELECT 1 FROM page_versions")) == 1


def test_a_restore_of_what_was_looked_at_before_a_newer_write_is_refused(books: Books):
    seen = write(books, "# A\n1\n")
    write(books, "# A\n2\n")

    answer = restore(books, "# A\n0\n", base_version=seen["version_id"])

    assert isinstance(answer, Refusal)
    assert answer.code == "conflict"


def test_a_version_of_another_page_is_not_found(books: Books, tmp_path: Path):
    write(books, "# A\n")
    other = write(books, "# B\n", path="notes/b.md")

    with pytest.raises(NotFound):
        state(books, tmp_path, other["version_id"])
    with pytest.raises(Invalid):
        state(books, tmp_path, "HEAD")


def test_a_state_is_found_in_git_by_commit_and_by_checkpoint(tmp_path: Path):
    repository = new_repository(tmp_path)
    books = Books(tmp_path)
    write(books, "# A\n")
    made = books.apply(MakeCheckpoint())
    with pytest.raises(Conflict, match="not committed yet"):
        state(books, tmp_path, made["checkpoint"])
    commit = put(repository, made["checkpoint"], default__alpha__notes__a="# A\nas git has it\n")
    before_the_books_know = state(books, tmp_path, made["checkpoint"])
    committed(books, commit)

    assert before_the_books_know.origin == f"commit {commit[:12]}"
    by_commit = state(books, tmp_path, commit[:10])
    by_checkpoint = state(books, tmp_path, made["checkpoint"])

    assert by_commit.content == by_checkpoint.content == "# A\nas git has it\n"
    with pytest.raises(NotFound):
        state(books, tmp_path, "0" * 12)
    with pytest.raises(NotFound):
        state(books, tmp_path, commit, path="notes/never.md")
    books.close()


# --- lost writes ---------------------------------------------------------------------------------


def found_old_bytes(books: Books, lost_before: int | None = None) -> None:
    """The file holds its first state again while a newer one is promised; the writer looks."""
    file = books.wiki / "default/alpha/notes/a.md"
    newest = books.query("SELECT max(seq) AS seq FROM page_versions")[0]["seq"]
    old = books.query("SELECT content FROM page_versions ORDER BY seq LIMIT 1")[0]["content"]
    write(books, "# A\nnewest\n")
    file.write_text(old)
    for _ in range(3):
        install_step(
            books.transact,
            Installer(books.wiki),
            str,
            lost_before=newest + 1 if lost_before is None else lost_before,
        )


def causes(books: Books) -> list[str]:
    return [row["cause"] for row in books.query("SELECT cause FROM page_versions ORDER BY seq")]


@pytest.fixture
def twice_written(books: Books) -> Books:
    """Two versions; the first is in a synced commit."""
    write(books, "# A\nfirst\n")
    books.install()
    books.apply(MakeCheckpoint())
    committed(books)
    write(books, "# A\nsecond\n")
    books.install()
    return books


def test_after_an_unclean_stop_older_bytes_are_our_own_lost_write(twice_written: Books):
    found_old_bytes(twice_written)

    assert causes(twice_written) == ["write", "write", "write"]
    assert twice_written.files()["default/alpha/notes/a.md"].decode().endswith("newest\n")


def test_after_a_clean_stop_older_bytes_are_an_edit(twice_written: Books):
    found_old_bytes(twice_written, NOTHING_LOST)

    assert causes(twice_written)[-1] == "external"
    assert twice_written.files()["default/alpha/notes/a.md"].decode().endswith("first\n")


def test_bytes_from_before_the_last_synced_commit_are_an_edit_also_after_an_unclean_stop(
    twice_written: Books,
):
    twice_written.apply(MakeCheckpoint())
    committed(twice_written)

    found_old_bytes(twice_written)

    assert causes(twice_written)[-1] == "external"


def test_without_any_synced_commit_older_bytes_are_an_edit(books: Books):
    write(books, "# A\nfirst\n")
    books.install()
    write(books, "# A\nsecond\n")
    books.install()

    found_old_bytes(books)

    assert causes(books)[-1] == "external"
