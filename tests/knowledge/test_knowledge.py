"""What is known: remembered, made active, pinned and forgotten by somebody, in one directory or project and no other."""

from __future__ import annotations

import pytest

from memory_core import limits
from memory_core.commands.knowledge import Where
from memory_core.domain.command import Refusal
from memory_core.domain.knowledge import RecallBounds, directory_of_project
from memory_core.ids import id_bytes, id_text
from memory_core.store import knowledge_lists
from memory_core.store.knowledge_lists import Scope
from tests.knowledge.learning import ELSEWHERE, HOME, Knowing, in_directory, upsert


def keys(knowing: Knowing, scope: Scope, bounds: RecallBounds | None = None) -> list[str]:
    with knowing.books.database.snapshot() as reading:
        if bounds is not None:
            found = knowledge_lists.recalled(reading, scope, bounds, now=knowing.books.clock.now_us())
        else:
            found = knowledge_lists.listed(reading, scope, limit=100).entries
    return [entry.key for entry in found]


def test_knowledge_is_workspace_scoped_and_versioned(knowing: Knowing):
    first = knowing.known(content="make all")
    second = knowing.known(content="make -j8 all")
    other = knowing.known(
        where=in_directory(ELSEWHERE, workspace="default", project="alpha"), content="ninja"
    )

    assert first["id"] == second["id"] != other["id"]
    assert knowing.versions(first["id"]) == [
        (1, "make all", 1.0, "manual"),
        (2, "make -j8 all", 1.0, "manual"),
    ]
    assert knowing.entry(first["id"]).content == "make -j8 all"
    assert keys(knowing, Scope(directory=HOME)) == ["build"]
    assert keys(knowing, Scope(directory=ELSEWHERE)) == ["build"]
    # An older version made active stays where it is, and the next one counts on from the newest.
    assert knowing.activate(first["id"], 1)["version"] == 1
    third = knowing.known(content="make install")
    assert third["version"] == 3


def test_a_remembered_fact_is_a_page_of_its_own(knowing: Knowing):
    made = knowing.known("How to build", content="Run `make all`.\n")

    path, text = knowing.page(made["id"])
    assert path.startswith("knowledge/how-to-build-")
    assert len(path.removesuffix(".md").rsplit("-", 1)[1]) == 8
    assert text == "Run `make all`.\n"
    assert made["path"] == path


@pytest.mark.parametrize(
    "text", ["---\nkey: 1\n---\nbelow", "---\n", "\ufeffmark", "two\r\nlines\r\n", " \n x"]
)
def test_a_text_of_any_form_comes_back_as_it_was(knowing: Knowing, text: str):
    made = knowing.known(content=text)

    assert knowing.page(made["id"])[1] == text
    assert knowing.entry(made["id"]).content == text


def test_to_remember_the_same_again_changes_nothing(knowing: Knowing):
    first = knowing.known()
    again = knowing.known()

    assert (first["changed"], again["changed"]) == (True, False)
    assert len(knowing.versions(first["id"])) == 1


def test_activating_makes_no_version_and_the_page_says_what_holds(knowing: Knowing):
    made = knowing.known(content="one")
    knowing.known(content="two")

    answer = knowing.activate(made["id"], 1)

    assert (answer["version"], answer["changed"]) == (1, True)
    assert len(knowing.versions(made["id"])) == 2
    assert knowing.page(made["id"])[1] == "one"
    assert knowing.activate(made["id"], 1)["changed"] is False
    missing = knowing.activate(made["id"], 3)
    assert isinstance(missing, Refusal)
    assert missing.code == "not_found"


def test_a_pin_is_in_the_page_too_and_outlives_new_versions(knowing: Knowing):
    made = knowing.known()
    pinned = knowing.pin(made["id"])
    newer = knowing.known(content="make more")

    assert (pinned["pinned"], newer["pinned"]) == (True, True)
    assert knowing.books.query("SELECT pinned FROM pages") == [{"pinned": 1}]
    assert knowing.pin(made["id"], pinned=False)["pinned"] is False
    assert knowing.books.query("SELECT pinned FROM pages") == [{"pinned": 0}]
    assert len(knowing.versions(made["id"])) == 2


def test_what_is_forgotten_is_hidden_with_its_pin_its_page_and_its_file(knowing: Knowing):
    made = knowing.known()
    knowing.pin(made["id"])
    knowing.books.install()
    assert len(knowing.books.files()) == 1

    answer = knowing.forget(made["id"])
    knowing.books.install()

    assert (answer["forgotten"], answer["pinned"], answer["changed"]) == (True, False, True)
    assert knowing.books.files() == {}
    assert keys(knowing, Scope(directory=HOME)) == []
    assert [(t["origin"], t["confidence"]) for t in knowing.tombstones(made["id"])] == [("manual", 1.0)]
    hidden_at = knowing.entry(made["id"]).tombstoned_at
    assert knowing.forget(made["id"])["changed"] is False
    assert knowing.entry(made["id"]).tombstoned_at == hidden_at
    assert len(knowing.tombstones(made["id"])) == 1


@pytest.mark.parametrize("way", ["remember", "activate"])
def test_what_was_forgotten_is_known_again_with_its_history(knowing: Knowing, way: str):
    made = knowing.known(content="one")
    knowing.known(content="two")
    knowing.books.install()
    before = knowing.page(made["id"])[0]
    knowing.forget(made["id"])
    knowing.books.install()

    if way == "remember":
        knowing.known(content="three")
    else:
        knowing.activate(made["id"], 1)
    knowing.books.install()

    assert knowing.entry(made["id"]).is_forgotten is False
    assert knowing.page(made["id"]) == (before, "three" if way == "remember" else "one")
    assert list(knowing.books.files()) == [f"default/alpha/{before}"]
    assert knowing.books.query("SELECT count(*) AS n FROM pages") == [{"n": 1}]


def test_a_forgotten_entry_takes_no_pin(knowing: Knowing):
    made = knowing.known()
    knowing.forget(made["id"])

    refused = knowing.pin(made["id"])

    assert isinstance(refused, Refusal)
    assert "forgotten" in refused.message


@pytest.mark.parametrize("change", ["activate", "pin", "unpin", "forget"])
@pytest.mark.parametrize(
    "where",
    [
        in_directory(ELSEWHERE),
        Where(workspace="default", project="beta"),
        Where(workspace="default", project="nowhere"),
        in_directory(workspace="default", project="beta"),
        in_directory(ELSEWHERE, workspace="default", project="alpha"),
    ],
)
def test_no_foreign_directory_or_project_changes_what_is_known(knowing: Knowing, change: str, where: Where):
    made = knowing.known()
    knowing.known("other", where=Where(workspace="default", project="beta"))
    knowing.pin(made["id"], pinned=change == "unpin")
    before = knowing.books.query("SELECT * FROM knowledge ORDER BY id")

    answer = {
        "activate": lambda: knowing.activate(made["id"], 1, where=where),
        "pin": lambda: knowing.pin(made["id"], where=where),
        "unpin": lambda: knowing.pin(made["id"], pinned=False, where=where),
        "forget": lambda: knowing.forget(made["id"], where=where),
    }[change]()

    assert isinstance(answer, Refusal)
    assert answer.code == "not_found"
    assert knowing.books.query("SELECT * FROM knowledge ORDER BY id") == before


def test_no_change_goes_without_a_directory_or_project(knowing: Knowing):
    made = knowing.known()

    for answer in (
        knowing.forget(made["id"], where=Where()),
        knowing.remember("x", where=Where()),
        knowing.forget(made["id"], where=Where(host="laptop", device="2049")),
        knowing.forget(made["id"], where=Where(workspace="default")),
    ):
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid"


def test_a_project_alone_names_the_one_entry_of_a_key_or_knows_it_for_itself(knowing: Knowing):
    project = Where(workspace="default", project="alpha")
    made = knowing.known("build")
    again = knowing.known("build", content="make it", where=project)
    own = knowing.known("style", content="tabs", where=project)
    knowing.known(
        "build", content="ninja", where=in_directory(ELSEWHERE, workspace="default", project="alpha")
    )
    unclear = knowing.remember("build", "which?", where=project)

    assert again["id"] == made["id"]
    assert knowing.entry(own["id"]).directory == directory_of_project(knowing.project_id)
    assert isinstance(unclear, Refusal)
    assert unclear.code == "conflict"


def test_a_directory_that_is_known_needs_no_project(knowing: Knowing):
    knowing.session(HOME)
    made = knowing.known(where=in_directory(HOME))
    unknown = knowing.remember(where=in_directory(ELSEWHERE))
    by_path = knowing.known(where=in_directory(ELSEWHERE, path="/srv/gamma"))

    assert made["project"] == "alpha"
    assert isinstance(unknown, Refusal)
    assert "path" in unknown.message
    assert by_path["project"] == "gamma"


def test_a_session_vouches_only_for_its_own_directory(knowing: Knowing):
    session, foreign = knowing.session(HOME), knowing.session(ELSEWHERE)
    made = knowing.known(session_id=id_text(session))
    refused = knowing.remember(content="other", session_id=id_text(foreign))

    (row,) = knowing.books.query("SELECT * FROM knowledge_versions")
    assert (row["source_session_id"], row["provenance_session_id"]) == (session, session)
    assert (row["source_first_sequence"], row["source_last_sequence"]) == (1, 12)
    assert isinstance(refused, Refusal)
    assert refused.code == "not_found"
    assert len(knowing.versions(made["id"])) == 1


@pytest.mark.parametrize(
    ("key", "content", "words"),
    [
        (" ", "x", "a key is empty"),
        ("k" * 257, "x", "at most 256 bytes; this has 257"),
        ("\u00e9" * 129, "x", "at most 256 bytes; this has 258"),
        ("k", " \n", "is empty"),
        ("k", "x\x00y", "NUL"),
        ("k", "x" * (limits.KNOWLEDGE_CONTENT_MAX_BYTES + 1), "at most"),
    ],
)
def test_what_cannot_be_known_is_refused_with_a_reason(knowing: Knowing, key: str, content: str, words: str):
    refused = knowing.remember(key, content)

    assert isinstance(refused, Refusal)
    assert words in refused.message
    assert knowing.books.query("SELECT * FROM knowledge") == []


def test_the_longest_text_and_key_fit(knowing: Knowing):
    made = knowing.known("\u00e9" * 128, content="x" * limits.KNOWLEDGE_CONTENT_MAX_BYTES)

    assert len(knowing.page(made["id"])[1]) == limits.KNOWLEDGE_CONTENT_MAX_BYTES


def test_knowledge_version_overflow_does_not_commit_unreadable_state(knowing: Knowing):
    made = knowing.known()
    entry = id_bytes(made["id"])
    last = limits.KNOWLEDGE_VERSION_MAX
    knowing.books.query("UPDATE knowledge_versions SET version = ?", last)
    knowing.books.query("UPDATE knowledge SET active_version = ?", last)
    before = knowing.books.query("SELECT * FROM knowledge, pages, page_versions")

    refused = knowing.remember(content="one too many")
    skipped = knowing.distil(upsert(content="one too many"))

    assert isinstance(refused, Refusal)
    assert refused.code == "conflict"
    assert [each.action for each in skipped] == ["skipped"]
    assert knowing.books.query("SELECT * FROM knowledge, pages, page_versions") == before
    assert knowing.entry(made["id"]).version == last
    assert knowing.books.query("SELECT version FROM knowledge_versions WHERE knowledge_id = ?", entry) == [
        {"version": last}
    ]


def test_automatic_recall_filters_confidence_before_limit_and_never_exempts_pins(knowing: Knowing):
    knowing.distil(upsert("weak", "guess", 0.69), upsert("weak and pinned", "guess", 0.5))
    knowing.pin(id_text(knowing.under("weak and pinned").id))  # type: ignore[union-attr]
    knowing.distil(upsert("strong", "sure", 0.7))
    knowing.known("pinned", content="always")
    knowing.pin(id_text(knowing.under("pinned").id))  # type: ignore[union-attr]
    knowing.distil(upsert("weaker still", "guess", 0.1))

    here = Scope(directory=HOME)
    assert keys(knowing, here, RecallBounds()) == ["pinned", "strong"]
    assert keys(knowing, here, RecallBounds(entries=1)) == ["pinned"]
    assert keys(knowing, here, RecallBounds(entries=2)) == ["pinned", "strong"]
    assert keys(knowing, here, RecallBounds(confidence=0.0)) == [
        "pinned",
        "weak and pinned",
        "weaker still",
        "strong",
        "weak",
    ]
    assert keys(knowing, here, RecallBounds(confidence=1.0)) == ["pinned"]
    assert keys(knowing, Scope(directory=ELSEWHERE), RecallBounds()) == []


def test_recall_stops_at_the_first_entry_that_does_not_fit(knowing: Knowing):
    knowing.known("small and old", content="x")
    knowing.known("large", content="y" * 500)
    knowing.known("small and new", content="z")

    with knowing.books.database.snapshot() as reading:
        (newest, *_) = knowledge_lists.recalled(
            reading, Scope(directory=HOME), RecallBounds(), now=knowing.books.clock.now_us()
        )
    exactly = len(f"[{knowledge_lists.recall_item(newest)}]".encode())
    here = Scope(directory=HOME)
    assert keys(knowing, here, RecallBounds(size_bytes=exactly)) == ["small and new"]
    assert keys(knowing, here, RecallBounds(size_bytes=exactly - 1)) == []
    # The one behind it would fit; what does not fit ends the list all the same.
    assert keys(knowing, here, RecallBounds(size_bytes=exactly + 200)) == ["small and new"]
    assert keys(knowing, here, RecallBounds(size_bytes=6_144)) == ["small and new", "large", "small and old"]


def test_knowledge_cursors_reach_older_rows(knowing: Knowing):
    for number in range(7):
        knowing.known(f"key {number}")
    knowing.pin(id_text(knowing.under("key 2").id))  # type: ignore[union-attr]
    read: list[str] = []
    after = None
    while True:
        with knowing.books.database.snapshot() as reading:
            found = knowledge_lists.listed(reading, Scope(directory=HOME), limit=2, after=after)
        read += [entry.key for entry in found.entries]
        if not found.more:
            break
        after = knowledge_lists.Cursor.behind(found.entries[-1])

    assert read == ["key 2", "key 6", "key 5", "key 4", "key 3", "key 1", "key 0"]


def test_a_list_is_bounded_in_bytes_and_gives_one_entry_at_least(knowing: Knowing, monkeypatch):
    monkeypatch.setattr(limits, "KNOWLEDGE_LIST_MAX_BYTES", 100)
    knowing.known("a", content="x" * 90)
    knowing.known("b", content="x" * 90)
    knowing.known("c", content="x" * 200)
    with knowing.books.database.snapshot() as reading:
        found = knowledge_lists.listed(reading, Scope(directory=HOME), limit=10)

    assert [entry.key for entry in found.entries] == ["c"]
    assert found.more is True


def test_a_search_finds_parts_of_words_in_keys_and_texts_of_its_scope(knowing: Knowing):
    knowing.known("deploy", content="push the TAG")
    knowing.known("tags", content="semver")
    knowing.known("tag", content="signed")
    knowing.known("gone", content="tag it")
    knowing.forget(id_text(knowing.under("gone").id))  # type: ignore[union-attr]
    knowing.known(
        "elsewhere", content="tag", where=in_directory(ELSEWHERE, workspace="default", project="alpha")
    )
    now = knowing.books.clock.now_us()
    with knowing.books.database.snapshot() as reading:
        found = knowledge_lists.searched(reading, Scope(directory=HOME), "tag", now=now, limit=10)
        nothing = knowledge_lists.searched(reading, Scope(directory=HOME), "t%g", now=now, limit=10)

    assert [entry.key for entry in found.entries] == ["tag", "tags", "deploy"]
    assert nothing.entries == []


def test_no_foreign_directory_or_project_sees_what_is_known(knowing: Knowing):
    knowing.known("here")
    beta = knowing.known("there", where=Where(workspace="default", project="beta"))
    (row,) = knowing.books.query("SELECT project_id FROM knowledge WHERE id = ?", id_bytes(beta["id"]))
    now = knowing.books.clock.now_us()

    for scope, seen in (
        (Scope(directory=HOME), ["here"]),
        (Scope(directory=ELSEWHERE), []),
        (Scope(project_id=knowing.project_id), ["here"]),
        (Scope(project_id=row["project_id"]), ["there"]),
        (Scope(directory=HOME, project_id=row["project_id"]), []),
    ):
        assert keys(knowing, scope) == seen
        assert keys(knowing, scope, RecallBounds()) == seen
        with knowing.books.database.snapshot() as reading:
            found = knowledge_lists.searched(reading, scope, "make", now=now, limit=10)
        assert [entry.key for entry in found.entries] == seen
