"""Which project a question is about."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import WritePage
from memory_core.domain.command import Refusal
from memory_core.errors import Invalid, NotFound
from memory_core.ids import session_id_from
from memory_core.recall.recent import recent
from memory_core.recall.scope import Asker, names_for_write, project_for
from tests.books import Books
from tests.factories import event


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def session(books: Books, key: str, cwd: str, principal: str = "ada") -> bytes:
    books.apply(RecordObservation(event=event(session_key=key, cwd=cwd), source="test"), principal=principal)
    return session_id_from(key)


def project(
    books: Books,
    workspace: str | None = None,
    name: str | None = None,
    session_id: bytes | None = None,
    directory: str | None = None,
):
    asker = Asker(principal="ada", session_id=session_id, directory=directory)
    with books.database.snapshot() as reading:
        found = project_for(reading, asker, workspace, name)
    return f"{found.workspace}/{found.name}"


def test_the_global_project_is_one_for_every_workspace(books: Books):
    books.apply(WritePage(workspace="work", project="alpha", path="a", body="b"))
    books.apply(
        RecordObservation(event=event(session_key="s"), source="test", project="alpha", workspace="work"),
        principal="ada",
    )
    books.apply(WritePage(workspace="default", project="_global", path="a", body="b"))

    assert {project(books, workspace, "_global") for workspace in (None, "default", "Default ")} == {
        "default/_global"
    }
    with books.database.snapshot() as reading:
        asker = Asker(principal="ada")
        assert names_for_write(reading, asker, None, "_global") == ("default", "_global")
        with pytest.raises(Invalid, match="leave the workspace out"):
            names_for_write(reading, asker, "work", "_global")
    with pytest.raises(Invalid, match="leave the workspace out"):
        project(books, "work", "_global")
    refused = books.apply(WritePage(workspace="work", project="_global", path="a", body="b"))
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid"
    assert books.query("SELECT count(*) AS n FROM projects WHERE name = '_global'")[0]["n"] == 1


def test_a_named_project_wins(books: Books):
    session(books, "s", "/srv/alpha")
    books.apply(WritePage(workspace="default", project="beta", path="a", body="b"))

    assert project(books, "default", "beta") == "default/beta"
    assert project(books, None, "BETA ") == "default/beta"


def test_without_a_name_it_is_the_asking_sessions_project(books: Books):
    mine = session(books, "s", "/srv/alpha")
    session(books, "t", "/srv/beta")

    assert project(books, session_id=mine) == "default/alpha"


def test_without_a_session_it_is_that_of_the_directory_as_for_a_hook_there(books: Books):
    mine = session(books, "s", "/srv/alpha")
    session(books, "t", "/srv/beta")

    assert project(books, directory="/srv/alpha") == "default/alpha"
    assert project(books, "default", "beta", directory="/srv/alpha") == "default/beta"
    assert project(books, session_id=mine, directory="/srv/beta") == "default/alpha"


@pytest.mark.parametrize("directory", ["/home/ada", "/", "../alpha", "", "\x00"])
def test_a_directory_that_means_no_project_says_nothing(directory: str, books: Books):
    session(books, "s", "/srv/alpha")

    assert project(books, directory=directory) == "default/alpha"


def test_a_directory_whose_project_is_not_there_yet_is_never_answered_from_another_one(books: Books):
    session(books, "s", "/srv/alpha")

    with pytest.raises(
        NotFound, match=r"nothing is known yet of default/gamma, the project of /srv/Gamma; .*alpha"
    ):
        project(books, directory="/srv/Gamma")
    assert project(books, None, "alpha", directory="/srv/Gamma") == "default/alpha"


def test_a_write_in_a_directory_without_a_project_means_the_one_that_a_hook_there_would_make(books: Books):
    mine = session(books, "s", "/srv/alpha")

    def target(directory: str, session_id: bytes | None = None) -> tuple[str, str]:
        asker = Asker(principal="ada", session_id=session_id, directory=directory)
        with books.database.snapshot() as reading:
            return names_for_write(reading, asker, None, None)

    assert target("/srv/Gamma Ray") == ("default", "gamma-ray")
    assert target("/srv/alpha") == ("default", "alpha")
    assert target("/srv/gamma", mine) == ("default", "alpha")
    # A home means no project.
    assert target("/home/ada") == ("default", "alpha")


def test_without_a_session_it_is_the_only_open_ones_project(books: Books):
    session(books, "s", "/srv/alpha")
    session(books, "other", "/srv/beta", principal="bob")

    assert project(books) == "default/alpha"


def test_two_open_projects_are_named_and_none_is_guessed(books: Books):
    session(books, "s", "/srv/alpha")
    session(books, "t", "/srv/beta")

    with pytest.raises(NotFound, match=r"scope unknown.*default/(alpha|beta), default/(alpha|beta)"):
        project(books)


def test_with_nothing_to_go_by_the_scope_is_unknown(books: Books):
    with pytest.raises(NotFound, match="scope unknown"):
        project(books)


def test_asking_for_what_is_not_there_makes_nothing_and_names_what_is(books: Books):
    books.apply(WritePage(workspace="default", project="beta", path="a", body="b"))

    with pytest.raises(NotFound, match="default/beta"):
        project(books, None, "gamma")
    assert len(books.query("SELECT * FROM projects")) == 1


def test_a_workspace_alone_names_no_project(books: Books):
    with pytest.raises(Invalid, match="project"):
        project(books, "default", None)


def test_a_project_to_write_to_need_not_be_there(books: Books):
    with books.database.snapshot() as reading:
        assert names_for_write(reading, Asker(principal="ada"), None, "New Thing") == ("default", "new-thing")


def test_recent_pages_come_newest_first_without_expired_ones(books: Books):
    for path, more in (("a", {}), ("b", {}), ("old", {"expires_at": "2001-01-01"})):
        books.apply(
            WritePage(workspace="default", project="beta", path=path, body="# T\ntext " + path, **more)
        )
    books.apply(WritePage(workspace="default", project="beta", path="a", body="# T\nnewer"))

    with books.database.snapshot() as reading:
        found = project_for(reading, Asker(principal="ada"), None, "beta")
        pages = recent(reading, found, now=books.clock.now_us(), limit=10)

    assert [page.path for page in pages] == ["a.md", "b.md"]
    assert "newer" in pages[0].snippet
