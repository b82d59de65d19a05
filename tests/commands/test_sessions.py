"""What a session leaves when it ends, and what late events do."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.handoffs import OfferHandoff, release_expired_offers
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.sessions import end_if_idle, refinalise_due
from memory_core.domain.capture import capped
from memory_core.domain.event import EventKind, HookEvent, Outcome, ToolCall
from memory_core.ids import session_id_from
from memory_core.store import observations
from tests.factories import Store, bash, database, ended, event, said, started, used_tool


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def record(store: Store, *events: HookEvent) -> None:
    for each in events:
        store.apply(RecordObservation(event=capped(each), source="claude-code/user"))


def pages(store: Store) -> list[dict[str, Any]]:
    return store.all(
        "SELECT p.path, v.title, v.tier, v.kind, v.cause, v.token_scope, v.content FROM pages p"
        " JOIN page_versions v ON v.id = p.version_id ORDER BY p.number"
    )


def versions(store: Store) -> int:
    return store.all("SELECT count(*) AS n FROM page_versions")[0]["n"]


def handoffs(store: Store) -> list[dict[str, Any]]:
    return store.all("SELECT * FROM handoffs ORDER BY rowid")


def late(store: Store) -> int:
    with store.transaction() as tx:
        return refinalise_due(tx, 10)


WORK = (
    started(model="opus"),
    event(body="Please add a retry to the uploader\nand test it"),
    used_tool(ToolCall(name="Edit", family="file", paths=("/srv/repo/up.py",), outcome=Outcome.SUCCESS)),
    used_tool(ToolCall(name="Bash", family="non-file", command="pytest -q", outcome=Outcome.ERROR)),
    said("Added it with back-off; one test still fails."),
)


def test_a_session_that_ends_leaves_a_page_and_a_handoff(store: Store):
    record(store, *WORK, ended())

    [page] = pages(store)
    assert page["path"] == "sessions/2026-05-28-please-add-a-retry-to-the-uploader-55555555.md"
    assert (page["title"], page["tier"], page["kind"]) == (
        "Please add a retry to the uploader",
        "episodic",
        "session",
    )
    for part in ("and test it", "back-off", "Bash: 1 (1 failed)", "`/srv/repo/up.py`", "claude-code"):
        assert part in page["content"]
    [left] = handoffs(store)
    assert (left["state"], left["is_manual"], left["cwd"]) == ("open", 0, "/srv/repo")
    assert (left["from_agent"], left["model"], left["owner"]) == ("claude-code", "opus", "ada")
    assert "retry" in left["summary"]
    assert "back-off" in left["summary"]
    assert left["files_touched"] == '["/srv/repo/up.py"]'
    assert "pytest -q" in left["next_steps"]


def test_the_page_is_found_by_full_text(store: Store):
    record(store, *WORK, ended())

    assert store.all("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH 'uploader'")


def test_an_agent_that_shrinks_its_context_leaves_a_page_and_no_handoff(store: Store):
    record(store, *WORK, event(kind=EventKind.PRE_COMPACT, body="", title="manual"))

    assert "add a retry to the uploader" in pages(store)[0]["content"]
    assert handoffs(store) == []

    record(store, event(body="now document it"), ended())

    assert [page["path"] for page in pages(store)] == [pages(store)[0]["path"]]
    assert "now document it" in pages(store)[0]["content"]
    assert len(handoffs(store)) == 1


def test_a_compaction_before_anything_was_said_writes_nothing(store: Store):
    record(store, started(), event(kind=EventKind.PRE_COMPACT, body="", title="auto"))

    assert pages(store) == []


def test_ending_twice_changes_nothing(store: Store):
    record(store, *WORK, ended())
    store.clock.advance(5)
    record(store, ended(reason="other"))

    assert versions(store) == 1
    assert len(handoffs(store)) == 1
    assert late(store) == 0


def test_a_session_of_boundaries_leaves_nothing(store: Store):
    record(store, started(), ended())

    assert (pages(store), handoffs(store)) == ([], [])


def test_a_session_of_boundaries_gives_back_what_it_was_offered(store: Store):
    record(store, *WORK, ended())
    offered = store.apply(OfferHandoff(session_id="s2", agent="codex", cwd="/srv/repo"))
    assert offered["handoff_id"] is not None

    record(store, started(session_key="s2"), ended(session_key="s2"))

    assert handoffs(store)[0]["state"] == "open"
    again = store.apply(OfferHandoff(session_id="s3", agent="codex", cwd="/srv/repo"))
    assert again["handoff_id"] == offered["handoff_id"]


def test_an_end_that_is_said_again_gives_back_what_was_offered_in_between(store: Store):
    record(store, *WORK, ended())
    offer = OfferHandoff(session_id="s2", agent="codex", cwd="/srv/repo", project="repo")
    record(store, ended(session_key="s2"))
    assert store.apply(offer)["handoff_id"]

    record(store, ended(session_key="s2"))

    assert [row["state"] for row in handoffs(store)] == ["open"]


def test_a_late_event_makes_page_and_open_handoff_anew_after_a_pause(store: Store):
    record(store, *WORK, ended())
    record(store, event(body="one more thing: document it"))
    assert late(store) == 0
    store.clock.advance(20)
    record(store, said("Documented."))
    store.clock.advance(20)
    assert late(store) == 0, "every late event begins the pause again"

    store.clock.advance(11)
    assert late(store) == 1

    [page] = pages(store)
    assert "Documented." in page["content"]
    assert versions(store) == 2
    [left] = handoffs(store)
    assert "one more thing" in left["summary"]
    assert late(store) == 0


def test_a_late_event_leaves_an_accepted_handoff_as_it_was_given(store: Store):
    record(store, *WORK, ended())
    store.apply(OfferHandoff(session_id="s2", agent="codex", cwd="/srv/repo"))
    record(store, event(session_key="s2", body="go on"))
    before = handoffs(store)[0]
    record(store, event(body="one more thing"))
    store.clock.advance(31)

    assert late(store) == 1
    assert handoffs(store) == [before]


def test_what_the_writer_finishes_keeps_the_authority_of_the_hook(store: Store):
    record(store, *WORK, ended())
    record(store, event(body="late"))
    store.clock.advance(31)
    late(store)

    assert [row["token_scope"] for row in pages(store)] == ["capture"]
    assert {row["token_scope"] for row in handoffs(store)} == {"capture"}


def test_substance_that_comes_only_after_the_end_still_leaves_page_and_handoff(store: Store):
    record(store, started(), ended())
    record(store, event(body="overtaken by its own end"))
    store.clock.advance(31)

    assert late(store) == 1
    assert len(pages(store)) == len(handoffs(store)) == 1


def test_a_resumed_session_is_open_again_and_leaves_a_new_handoff(store: Store):
    record(store, *WORK, ended())
    store.apply(OfferHandoff(session_id="s2", agent="codex", cwd="/srv/repo"))
    record(store, event(session_key="s2", body="go on"))
    store.clock.advance(60)
    record(store, started(reason="resume"), event(body="now the docs"))
    assert (
        store.all("SELECT ended_at FROM sessions WHERE agent = 'claude-code' LIMIT 1")[0]["ended_at"] is None
    )
    store.clock.advance(60)
    record(store, ended())

    states = sorted(row["state"] for row in handoffs(store))
    assert states == ["accepted", "open"]
    assert len(pages(store)) == 1


def test_a_session_of_many_long_prompts_leaves_a_shortened_page(store: Store):
    record(store, *(event(body=f"{number} " + "字" * 1_600) for number in range(250)), ended())

    [page] = pages(store)
    assert len(page["content"].encode()) <= limits.PAGE_BODY_MAX_BYTES
    assert "Shortened, because a page has its limit" in page["content"]
    assert "250. 249 字" in page["content"]
    assert len(handoffs(store)) == 1


def test_a_page_that_a_person_rewrote_is_left_alone(store: Store):
    record(store, *WORK, ended())
    path = pages(store)[0]["path"]
    store.apply(
        WritePage(workspace="default", project="repo", path=path, body="# Mine\n"), token_scope="write"
    )
    record(store, event(body="late"))
    store.clock.advance(31)
    late(store)

    assert "# Mine" in pages(store)[0]["content"]
    assert "late" in handoffs(store)[0]["summary"]


def test_a_page_that_a_person_deleted_does_not_come_back(store: Store):
    record(store, *WORK, ended())
    store.apply(DeletePage(workspace="default", project="repo", path=pages(store)[0]["path"]))
    record(store, event(body="late"))
    store.clock.advance(31)
    late(store)

    assert store.all("SELECT 1 FROM pages WHERE tombstoned_at IS NULL") == []


def test_two_sessions_at_once_do_not_mix(store: Store):
    a, b = "session-a", "session-b"
    record(store, event(session_key=a, body="alpha work"), event(session_key=b, body="beta work"))
    record(store, said("alpha done", session_key=a), said("beta done", session_key=b))
    record(store, ended(session_key=a), ended(session_key=b))

    contents = [page["content"] for page in pages(store)]
    assert len(contents) == 2
    assert all(("alpha" in text) != ("beta" in text) for text in contents)
    states = [row["state"] for row in handoffs(store)]
    assert sorted(states) == ["expired", "open"], "the later one of the same directory replaces the earlier"


def test_a_session_that_moved_out_of_a_home_leaves_its_page_where_it_worked(store: Store):
    record(store, started(cwd="/home/ada"), event(cwd="/home/ada", body="work on app"))
    record(
        store,
        used_tool(cwd="/home/ada/app"),
        used_tool(bash("ls"), cwd="/home/ada/app"),
        ended(cwd="/home/ada"),
    )

    [row] = store.all("SELECT p.name FROM pages g JOIN projects p ON p.id = g.project_id")
    assert row["name"] == "app"
    assert store.apply(OfferHandoff(session_id="s2", agent="codex", cwd="/home/ada/app"))["handoff_id"]


def test_a_session_without_an_end_is_ended_after_two_hours_of_silence(store: Store):
    record(store, *WORK)
    store.clock.advance(limits.SESSION_IDLE_SECONDS - 1)
    session_id = session_id_from(event().session_key)
    with store.transaction() as tx:
        assert not end_if_idle(tx, session_id)
    store.clock.advance(2)
    with store.transaction() as tx:
        assert end_if_idle(tx, session_id)
        assert not end_if_idle(tx, session_id)

    assert len(pages(store)) == len(handoffs(store)) == 1
    record(store, event(body="back from lunch"))
    assert store.all("SELECT ended_at FROM sessions")[0]["ended_at"] is None


def test_a_huge_session_is_told_in_few_events_with_first_and_last_and_its_prompts(store: Store):
    record(store, event(body="the very first"))
    for number in range(700):
        record(store, used_tool(bash(f"step {number}")))
        if number % 50 == 0:
            record(store, event(body=f"prompt {number}"))
    with store.transaction() as tx:
        rows = observations.projection(
            tx,
            session_id_from(event().session_key),
            limit=limits.SESSION_PAGE_OBSERVATIONS_MAX,
            look_back=limits.SESSION_PAGE_LOOK_BACK_ROWS,
            body_max_chars=100,
        )

    assert len(rows) == limits.SESSION_PAGE_OBSERVATIONS_MAX
    assert [row["seq"] for row in rows] == sorted({row["seq"] for row in rows})
    assert (rows[0]["body"], rows[-1]["command"]) == ("the very first", "step 699")
    assert {f"prompt {n}" for n in range(0, 700, 50)} <= {row["body"] for row in rows}
    record(store, ended())
    assert "716, 256 of them below" in pages(store)[0]["content"]


def test_offers_come_back_after_a_quarter_of_an_hour(store: Store):
    record(store, *WORK, ended())
    store.apply(OfferHandoff(session_id="s2", agent="codex", cwd="/srv/repo"))
    store.clock.advance(limits.HANDOFF_OFFER_SECONDS - 1)
    with store.transaction() as tx:
        assert release_expired_offers(tx) == 0
    store.clock.advance(1)
    with store.transaction() as tx:
        assert release_expired_offers(tx) == 1

    assert handoffs(store)[0]["state"] == "open"
