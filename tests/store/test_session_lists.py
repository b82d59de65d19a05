"""Lists of sessions and of their observations."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from memory_core.ids import session_id_from
from memory_core.store import observations, projects, sessions
from tests.factories import Store, database, ended, event


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def record(store: Store, what, principal: str = "ada", **scope: str) -> None:
    store.apply(RecordObservation(event=capped(what), source="s", **scope), principal=principal)
    store.clock.advance(1)


def test_sessions_are_listed_newest_first_by_project_state_and_owner(store: Store):
    record(store, event(session_key="a"))
    record(store, event(session_key="b"), project="other")
    record(store, event(session_key="c"))
    record(store, ended(session_key="c"))
    record(store, event(session_key="d"), principal="eve")

    with store.transaction() as tx:
        row = projects.named(tx, "default", "repo")
        assert row is not None
        keys = lambda **w: [r["vendor_key"] for r in sessions.listed(tx, **w)]  # noqa: E731
        assert keys(owner="ada") == ["c", "b", "a"]
        assert keys(all_owners=True, limit=2) == ["d", "c"]
        assert keys(owner="ada", project_id=row["id"]) == ["c", "a"]
        assert keys(owner="ada", is_open=True) == ["b", "a"]
        assert keys(owner="ada", is_open=False) == ["c"]
        last = sessions.listed(tx, owner="ada", limit=1)[0]
        assert last["page_path"].startswith("sessions/")
        assert keys(owner="ada", before=(last["last_event_at"], last["id"])) == ["b", "a"]
        assert [r["project"] for r in sessions.open_projects(tx, owner="ada")] == ["other", "repo"]
        assert (sessions.counts(tx)["total"], sessions.counts(tx)["open"]) == (4, 3)
        assert sessions.counts(tx, row["id"])["total"] == 3
        assert observations.count(tx, row["id"])["count"] == 4


def test_a_list_goes_on_among_sessions_of_one_moment(store: Store):
    for key in "abcde":
        observed = capped(event(session_key=key))
        store.apply(RecordObservation(event=observed, source="s"), principal="ada")

    seen: list[str] = []
    with store.transaction() as tx:
        rows = sessions.listed(tx, owner="ada", limit=2)
        while rows:
            seen += [row["vendor_key"] for row in rows]
            rows = sessions.listed(
                tx, owner="ada", limit=2, before=(rows[-1]["last_event_at"], rows[-1]["id"])
            )

    assert sorted(seen) == list("abcde")


def test_observations_are_paged_in_order_and_cut(store: Store):
    for number in range(5):
        record(store, event(session_key="a", body=f"{number}" + "x" * 100))
    with store.transaction() as tx:
        first = observations.of_session(tx, session_id_from("a"), limit=3, body_max_chars=10)
        rest = observations.of_session(tx, session_id_from("a"), after=first[-1]["seq"], limit=3)

    assert [row["body"][0] for row in (*first, *rest)] == list("01234")
    assert (len(first[0]["body"]), first[0]["body_chars"]) == (10, 101)
