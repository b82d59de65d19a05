"""Which names of files become pages: not those of drafts, not those with a secret in them, not those that are memoryd's own."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.commands.pages import WritePage
from memory_core.commands.rendering import render_due
from memory_core.domain.command import Refusal
from memory_core.domain.drafts import is_draft
from memory_core.domain.page import check_may_write, page_path, path_for_title
from memory_core.domain.wiki_file import NAME_TELLS, is_candidate
from memory_core.errors import Forbidden, Invalid
from memory_core.store.wiki_tasks import REINDEX, begin
from tests.wiki.house import House
from tests.wiki.oracle import unexplained


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "text\n")
    made.look_until_still()
    yield made
    made.close()


def write(house: House, path: str) -> object:
    return house.books.apply(WritePage(workspace="default", project="alpha", path=path, body="text\n"))


# --- drafts ---

DRAFTS = [
    "~$x.md", "~$report.md", "~WRL0001.md", ".~lock.x.md#", "#x#", "#x.md#", "#*scratch*#", ".#x.md", "x.md~", "x.txt~", "x.md.~12~",
    ".x.md.swp", ".x.md.swo", ".x.md.kate-swp", "x.md.sb-1a2b3c4d-XyZ123", "x.md___jb_tmp___", ".syncthing.x.md.tmp",
    "~syncthing~x.md.tmp", "~x.md", "~home.md", "~.md", "x.tmp.md", "x.TMP.md", "x.md.tmp", "x_BACKUP_4711.md", "x_BASE_4711.md",
    "x_LOCAL_4711.md", "x_REMOTE_4711.md", "x.md.BASE.4711.md", "x.REMOTE.4711.md",
]  # fmt: skip


@pytest.mark.parametrize("name", DRAFTS)
def test_what_an_editor_has_open_is_no_page(house: House, name: str):
    house.save(f"notes/{name}", "a draft\n")

    status = house.look_until_still()

    assert list(house.pages()) == ["notes/a.md"]
    assert status["troubles"] == []
    assert house.file(f"notes/{name}").read_text() == "a draft\n"


@pytest.mark.parametrize("name", [name for name in DRAFTS if "*" not in name])
def test_no_page_is_written_under_the_name_of_a_draft(house: House, name: str):
    for path in (f"notes/{name}", f"{name}/deep.md"):
        assert isinstance(write(house, path), Refusal)
    assert list(house.pages()) == ["notes/a.md"]


@pytest.mark.parametrize("name", ["notes/~x.md", "notes/x.tmp.md", "notes/~old/x.md"])
def test_a_page_from_a_time_when_its_name_was_none_of_a_draft_stays_one(house: House, name: str):
    """As a database of an earlier memoryd has it: its file is there, and nothing of it is new."""
    page_id = house.page("notes/a.md")["id"]
    house.file(name).parent.mkdir(exist_ok=True)
    house.file("notes/a.md").rename(house.file(name))
    for table, column in (("pages", "path"), ("pages", "path_key")):
        house.books.store.connection.execute(f"UPDATE {table} SET {column} = ?", (name,))
    house.books.store.connection.execute("UPDATE wiki_files SET file = ?", (f"default/alpha/{name}",))
    house.save(name.replace("x", "y"), "a draft\n")

    for _ in range(5):
        status = house.look_until_still()
    assert (list(house.pages()), status["troubles"], status["held"]) == ([name], [], [])

    house.save(name, "edited\n")
    house.look_until_still()
    assert house.pages() == {name: "edited\n"}

    house.file(name).rename(house.file("notes/fine.md"))
    house.look_until_still()
    assert (list(house.pages()), house.page("notes/fine.md")["id"]) == (["notes/fine.md"], page_id)
    assert isinstance(write(house, name), Refusal)


def test_a_folder_in_which_a_save_is_prepared_holds_no_pages(house: House):
    house.save("notes/a.md.sb-1a2b3c4d-XyZ123/a.md", "half\n")
    house.look_until_still()

    assert list(house.pages()) == ["notes/a.md"]


@pytest.mark.parametrize("name", ["x~y.md", "C#.md", "#1.md", "a$.md", "issue #5.md", "lock.md", "x.swp.md", "wrl.md", "4913.md", "tmp.md", "x.tmp2.md", "knowledge_base_2.md", "local_remote.md", "x_LOCAL.md", "BASE_1.md"])  # fmt: skip
def test_other_names_are_pages(house: House, name: str):
    assert is_candidate(f"notes/{name}")
    house.save(f"notes/{name}", "text\n")
    house.look_until_still()

    assert f"notes/{name}" in house.pages()


@given(st.text(max_size=60))
def test_no_title_makes_the_name_of_a_draft(title: str):
    assert not any(map(is_draft, path_for_title(title).path.split("/")))


# --- secrets ---


def everything(house: House) -> str:
    """All that the tables hold, the rendered files, and the status."""
    tables = [
        row["name"]
        for row in house.books.query(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%_fts_%'"
        )
    ]
    rows = [tuple(row.values()) for table in tables for row in house.books.query(f"SELECT * FROM [{table}]")]
    return f"{rows}{house.outside.status()}"


SECRET_NAMES = [
    "notes/hunter2.md",
    "notes/of hunter2 and more.md",
    "hunter2/deep/plain.md",
    "notes/hunter2/x.md",
]


@pytest.mark.parametrize("path", SECRET_NAMES)
def test_a_file_with_a_secret_in_its_name_is_left_alone_and_named_without_it(
    house: House, path: str, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG):
        file = house.save(path, "# A title\n\ntext of it\n")
        status = house.look_until_still()
        house.books.clock.advance(120)
        house.books.transact(lambda tx: render_due(tx, 10))
        house.books.install(house.installer)
        house.look_until_still()

    assert status["troubles"] == [
        {"file": f"default/alpha/{path.replace('hunter2', '[REDACTED]')}", "trouble": NAME_TELLS}
    ]
    assert file.read_text() == "# A title\n\ntext of it\n"
    assert list(house.pages()) == ["notes/a.md"]
    assert "hunter2" not in everything(house)
    assert "hunter2" not in house.file("index.md").read_text()
    assert "hunter2" not in caplog.text + "".join(str(vars(row)) for row in caplog.records)
    assert house.books.query("SELECT 1 FROM git_changes WHERE path LIKE '%hunter2%'") == []


def test_a_renamed_file_is_a_page_without_the_secret(house: House):
    file = house.save("notes/hunter2.md", "text of it\n")
    house.look_until_still()
    file.rename(house.file("notes/plain.md"))

    status = house.look_until_still()

    assert sorted(house.pages()) == ["notes/a.md", "notes/plain.md"]
    assert status["troubles"] == []
    assert unexplained(house.books) == []


def test_a_page_whose_file_gets_a_secret_into_its_name_is_deleted_and_the_file_stays(house: House):
    house.file("notes/a.md").rename(house.file("notes/hunter2.md"))

    status = house.look_until_still()

    assert house.pages() == {}
    assert [row["trouble"] for row in status["troubles"]] == [NAME_TELLS]
    assert house.file("notes/hunter2.md").exists()
    assert "hunter2" not in everything(house)


def test_links_twins_and_names_that_cannot_be_are_named_without_the_secret(house: House):
    house.file("notes/hunter2-link.md").symlink_to("a.md")
    house.save("notes/Twin hunter2.md", "one\n")
    house.save("notes/twin hunter2.md", "two\n")
    house.save("notes/hunter2: bad.md", "text\n")
    house.save("notes/-hunter2.md", "text\n")

    status = house.look_until_still()

    assert len(status["troubles"]) >= 4
    assert "hunter2" not in everything(house)


@pytest.mark.parametrize("where", ["stranger/hunter2", "hunter2/stranger"])
def test_a_folder_of_a_project_with_a_secret_in_its_name_is_not_adopted(house: House, where: str):
    folder = house.root / where
    folder.mkdir(parents=True)
    workspace, name = where.split("/")
    (folder / "_meta.md").write_text(
        f"---\nworkspace: {workspace}\nproject: {name}\nproject_id: 01890000-0000-7000-8000-000000000001\n---\n"
    )
    (folder / "a.md").write_text("text\n")
    house.books.transact(lambda tx: begin(tx, REINDEX, {}))
    for _ in range(10):
        house.look()

    assert list(house.outside.status()["strangers"]) == [where.replace("hunter2", "[REDACTED]")]
    assert "hunter2" not in everything(house)


def test_a_project_s_folder_that_gets_a_secret_into_its_name_is_not_followed(house: House):
    (house.root / "default" / "alpha").rename(house.root / "default" / "of hunter2")
    for _ in range(10):
        house.look()

    assert house.outside.status()["strangers"] == {"default/of [REDACTED]": NAME_TELLS}
    assert list(house.pages()) == ["notes/a.md"]
    assert "hunter2" not in everything(house)


def test_the_rules_of_redaction_find_a_token_in_a_name_and_leave_plain_names_alone(tmp_path: Path):
    from memory_core.redaction.server import Redactor

    redactor = Redactor(bytes(32), tmp_path)
    house = House(tmp_path)
    house.redact = lambda text: redactor.redact_text(text).text
    token = "ghp_" + secrets.token_hex(18)
    names = [
        "notes/password reset.md", "notes/api-key rotation.md", "decisions/2031-05-01 use JWT tokens.md",
        "sessions/2031-05-01-fix-the-flaky-test-1a2b3c4d.md", "notes/550e8400-e29b-41d4-a716-446655440000.md",
        "notes/How do secrets get rotated?".rstrip("?") + ".md", "notes/\u65e5\u672c\u8a9e.md", "Auth/Token Store.md",
        "notes/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b.md",
    ]  # fmt: skip
    house.write_page("notes/a.md", "text\n")
    for name in [*names, f"notes/{token}.md", f"notes/my {token} x.md"]:
        house.save(name, "text\n")

    status = house.look_until_still()

    assert sorted(house.pages()) == sorted([*names, "notes/a.md"])
    assert [row["trouble"] for row in status["troubles"]] == [NAME_TELLS, NAME_TELLS]
    assert token not in everything(house)
    house.close()


# --- memoryd's own ---

RESERVED = [
    "index.md", "log.md", "log-2031-05.md", "bootstrap.md", "_meta.md", "notes/_meta.md", "_pending/auto-improve/x.md",
    "_rules.md", "_slots.md", "_prompts.md", "_lint.md", "_pending.md", "_Rules.md", "_rules", "_slots/somebody/x.md",
]  # fmt: skip


@pytest.mark.parametrize("path", RESERVED)
def test_a_reserved_path_is_no_page_by_any_door(house: House, path: str):
    assert isinstance(write(house, path), Refusal)
    house.save(path if path.endswith(".md") else f"{path}.md", "by hand\n")
    house.look_until_still()

    assert list(house.pages()) == ["notes/a.md"]


@pytest.mark.parametrize("path", ["_rules/x.md", "_slots/x.md", "_prompts/consolidation.md"])
def test_what_guides_agents_and_models_takes_a_token_that_may_write(path: str):
    check_may_write(page_path(path), "write")
    for scope in ("pool", "capture"):
        with pytest.raises(Forbidden):
            check_may_write(page_path(path), scope)


@pytest.mark.parametrize(
    "path", ["_rules/x.md", "notes/_rules.md", "_templates/x.md", "_index.md", "rules.md"]
)
def test_other_names_are_everybodys(path: str):
    check_may_write(page_path(path), "write")


def test_a_reserved_path_says_why():
    with pytest.raises(Invalid, match="folder"):
        check_may_write(page_path("_rules.md"), "write")
