"""Writing and deleting pages."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.command import Refusal
from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


_PAGE_OF = "SELECT page_number FROM chunks_fts JOIN page_chunks ON number = chunks_fts.rowid WHERE chunks_fts MATCH ?"


def page(path: str | None = "notes/a.md", body: str = "# Title\ntext\n", **more: object) -> WritePage:
    return WritePage(workspace="default", project="alpha", path=path, body=body, **more)  # type: ignore[arg-type]


def latest(books: Books, path: str = "notes/a.md"):
    rows = books.query(
        "SELECT p.*, v.title, v.kind, v.tier, v.tags, v.content, v.body_start, v.supersedes, v.sha256 FROM pages p"
        " JOIN page_versions v ON v.id = p.version_id WHERE p.tombstoned_at IS NULL AND p.path = ?",
        path,
    )
    assert len(rows) == 1
    return rows[0]


def test_a_written_page_has_its_row_its_index_and_the_promise_of_its_file(books: Books):
    answer = books.apply(page(body="# Zebra crossing\nLook left.\n"))

    row = latest(books)
    assert answer["index_status"] == "indexed"
    assert answer["changed"] is True
    assert (row["title"], row["kind"], row["tier"]) == ("Zebra crossing", "note", "semantic")
    assert [r["page_number"] for r in books.query(_PAGE_OF, "zebra")] == [row["number"]]
    promised = books.query("SELECT * FROM file_outbox")
    assert [(r["file"], json.loads(r["expected"]), r["sha256"]) for r in promised] == [
        ("default/alpha/notes/a.md", ["absent"], row["sha256"])
    ]


def test_the_same_page_written_twice_makes_one_version(books: Books):
    first = books.apply(page(tags=("b", "a")))
    again = books.apply(page(tags=("b", "a")))

    assert again == {**first, "changed": False}
    assert len(books.query("SELECT * FROM page_versions")) == 1


def test_a_new_version_supersedes_the_old_one_and_keeps_what_was_counted(books: Books):
    first = books.apply(page())
    books.query("UPDATE pages SET access_count = 7, salience = 1.5")
    second = books.apply(page(body="# Title\nother words\n"))

    row = latest(books)
    assert first["page_id"] == second["page_id"]
    assert first["version_id"] != second["version_id"]
    assert (row["access_count"], row["salience"]) == (7, 1.5)
    assert len(books.query("SELECT * FROM page_versions WHERE superseded_at IS NULL")) == 1
    assert row["supersedes"] is not None
    assert books.query(_PAGE_OF, "text") == []


def test_another_spelling_of_a_path_is_the_same_page(books: Books):
    first = books.apply(page("notes/R\u00e9sum\u00e9.md"))
    second = books.apply(page("NOTES/Re\u0301sume\u0301", "# Other\n"))

    assert second["page_id"] == first["page_id"]
    assert second["path"] == "notes/R\u00e9sum\u00e9.md"


def test_two_projects_do_not_share_a_path(books: Books):
    books.apply(page())
    books.apply(WritePage(workspace="default", project="beta", path="notes/a.md", body="# Beta\n"))

    assert len(books.query("SELECT * FROM pages")) == 2
    assert [len(books.query(_PAGE_OF, f"scope : p{number}")) for number in (1, 2)] == [1, 1]


def test_what_is_not_said_is_kept_from_the_version_before(books: Books):
    books.apply(page(title="Old title", tier="procedural", tags=("x",), pinned=True))
    books.apply(page(body="no heading here\n"))

    row = latest(books)
    assert (row["title"], row["tier"], json.loads(row["tags"]), row["pinned"]) == (
        "Old title",
        "procedural",
        ["x"],
        1,
    )


def test_a_persons_own_front_matter_keys_survive_a_rewrite_in_their_order(books: Books):
    books.apply(page(body="---\naliases: [one]   # mine\ntitle: Mine\nzeta:\n  - 1\n---\nbody\n"))
    books.apply(page(body="new body\n", tags=("t",)))

    assert latest(books)["content"] == (
        "---\naliases: [one]   # mine\ntitle: Mine\nzeta:\n  - 1\ntier: semantic\ntags: [t]\n---\nnew body\n"
    )


def test_front_matter_that_a_writer_brings_leaves_the_persons_keys_alone(books: Books):
    books.apply(page(body="---\naliases: [one]   # mine\ncssclass: wide\n---\nbody\n"))
    books.apply(page(body="---\ntags: [t]\ncssclass: narrow\n---\nbody\n"))

    assert latest(books)["content"] == (
        "---\naliases: [one]   # mine\ncssclass: narrow\ntitle: a\ntier: semantic\ntags: [t]\n---\nbody\n"
    )


def test_who_wrote_last_is_put_right_where_the_page_names_it_and_is_no_change_by_itself(books: Books):
    body = "---\nlast_modified_by: {username: ada}\n---\none\n"
    books.apply(page(body=body), principal="ada")
    same = books.apply(page(body="one\n"), principal="bob")
    books.apply(page(body="two\n"), principal="bob")

    assert same["changed"] is False
    assert "last_modified_by: bob\n" in latest(books)["content"]


def test_a_slot_is_always_pinned(books: Books):
    books.apply(page("_slots/goals.md", body="---\nslot_kind: state\npinned: false\n---\n# Goals\n"))

    row = latest(books, "_slots/goals.md")
    assert (row["pinned"], row["kind"]) == (1, "slot")
    assert "pinned: true" in row["content"]


@pytest.mark.parametrize(
    ("scope", "path", "may"),
    [
        ("write", "_rules/style.md", True),
        ("admin", "_slots/goals.md", True),
        ("pool", "concepts/queue.md", True),
        ("pool", "_rules/style.md", False),
        ("pool", "_Slots/goals.md", False),
        ("capture", "_rules/style.md", False),
        ("capture", "notes/a.md", False),
        ("capture", "sessions/today.md", True),
    ],
)
def test_text_gains_no_authority_by_the_folder_that_it_is_put_into(
    books: Books, scope: str, path: str, may: bool
):
    answer = books.apply(page(path), token_scope=scope)

    assert may is not isinstance(answer, Refusal)
    assert may or answer.code == "forbidden"


def test_a_write_against_an_old_version_is_a_conflict(books: Books):
    first = books.apply(page())
    books.apply(page(body="# Title\nsecond\n"))

    answer = books.apply(page(body="# Title\nthird\n", base_version=first["version_id"]))

    assert isinstance(answer, Refusal)
    assert answer.code == "conflict"
    assert len(books.query("SELECT * FROM page_versions")) == 2


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"path": "../a.md"}, "invalid"),
        ({"path": "/etc/passwd"}, "invalid"),
        ({"path": "notes/.hidden"}, "invalid"),
        ({"path": "index.md"}, "invalid"),
        ({"path": "_meta.md"}, "invalid"),
        ({"path": "log-2031-05.md"}, "invalid"),
        ({"path": "LOG.md"}, "invalid"),
        ({"path": "bootstrap.md"}, "invalid"),
        ({"path": "notes/_meta.md"}, "invalid"),
        ({"path": "_pending/improve/a.md"}, "invalid"),
        ({"path": "_slots/u-ada/goals.md"}, "invalid"),
        ({"body": "---\nentities: one\n---\n"}, "invalid"),
        ({"body": "---\nslot_kind: state\n---\n"}, "invalid"),
        ({"body": "---\n<<: {a: 1}\n---\n"}, "invalid"),
        ({"tier": "eternal"}, "invalid"),
        ({"expires_at": "soon"}, "invalid"),
        ({"tags": ("x" * 99,)}, "invalid"),
        ({"base_version": "nonsense"}, "invalid"),
        ({"body": "---\na: &b 1\nc: *b\n---\n"}, "invalid"),
        ({"body": "---\ntier: eternal\n---\n"}, "invalid"),
        ({"body": "x" * (1024 * 1024 + 1)}, "invalid"),
    ],
)
def test_what_cannot_be_a_page_is_refused_and_makes_no_project(
    books: Books, fields: dict[str, object], code: str
):
    answer = books.apply(page(**fields))  # type: ignore[arg-type]

    assert isinstance(answer, Refusal)
    assert answer.code == code
    assert books.query("SELECT * FROM projects") == []


def test_a_page_that_is_to_expire_says_so_in_its_file(books: Books):
    books.apply(page(expires_at="2031-05-01"))

    assert 'expires_at: "2031-05-01T23:59:59.999999Z"' in latest(books)["content"]
    assert latest(books)["expires_at"] == 1_935_446_399_999_999


def test_titles_that_leave_no_name_become_twelve_pages(books: Books):
    titles = [
        "\u65e5\u672c\u8a9e\u30c9\u30ad\u30e5\u30e1\u30f3\u30c8",
        "\uc778\uc99d \uc544\ud0a4\ud14d\ucc98",
        "\U0001f680\U0001f680",
        "\U0001f680",
        "...",
        "",
        "CON",
        "../../etc/passwd",
        "a/b: c",
        "x" * 300,
        "React \ud55c\uae00 Guide",
        "Cool trick \U0001f600",
    ]
    for number, title in enumerate(titles):
        books.apply(page(None, f"number {number}", title=title))
    books.install()

    assert len(books.files()) == len(titles)
    assert not any(part.startswith(".") for file in books.files() for part in file.split("/"))


def test_the_same_title_twice_is_one_page(books: Books):
    first = books.apply(page(None, "one", title="Cool trick \U0001f600"))
    again = books.apply(page(None, "two", title="Cool trick \U0001f600"))

    assert first["page_id"] == again["page_id"]


def test_titles_that_only_end_differently_are_two_pages_also_where_a_title_is_cut(books: Books):
    long = "the same beginning " * 30
    first = books.apply(page(None, "one", title=long + "a"))
    second = books.apply(page(None, "two", title=long + "b"))
    third = books.apply(page(None, f"# {long}c\n"))
    fourth = books.apply(page(None, f"{long * 200}d\n"))
    fifth = books.apply(page(None, f"{long * 200}e\n"))

    assert len({done["page_id"] for done in (first, second, third, fourth, fifth)}) == 5
    assert len(latest(books, first["path"])["title"]) <= 200


def test_a_deleted_page_is_gone_from_table_index_and_disk(books: Books):
    books.apply(page())
    books.install()

    answer = books.apply(DeletePage(workspace="default", project="alpha", path="NOTES/A"))
    books.install()

    assert (answer["path"], answer["deleted"], answer["existed"]) == ("notes/a.md", True, True)
    assert answer["pre_checkpoint"] != answer["checkpoint"]
    assert books.query("SELECT * FROM pages WHERE tombstoned_at IS NULL") == []
    assert books.query(_PAGE_OF, "title") == []
    assert books.files() == {}
    assert books.query("SELECT * FROM file_outbox") == []


def test_deleting_what_is_not_there_is_no_error(books: Books):
    gone = DeletePage(workspace="default", project="alpha", path="notes/a.md")

    assert books.apply(gone) == {"path": "notes/a.md", "deleted": True, "existed": False}


def test_a_page_written_again_after_its_deletion_is_another_page(books: Books):
    first = books.apply(page())
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    second = books.apply(page())
    books.install()

    assert first["page_id"] != second["page_id"]
    assert list(books.files()) == ["default/alpha/notes/a.md"]


def test_the_audit_log_names_who_did_what_without_any_text(books: Books):
    books.apply(page(body="# Secret plan\n"), principal="bob")
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"), principal="bob")

    rows = books.query("SELECT * FROM audit_log ORDER BY seq")
    assert [(r["op"], r["principal"]) for r in rows] == [("create_page", "bob"), ("delete_page", "bob")]
    assert "Secret" not in "".join(r["detail"] for r in rows)
