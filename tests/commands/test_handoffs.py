"""Handoffs from one agent to the next."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.handoffs import AcceptHandoff, BeginHandoff, CancelHandoff, OfferHandoff
from memory_core.domain import recalled
from memory_core.domain.capture import capped
from memory_core.domain.command import Refusal
from memory_core.domain.event import HookEvent
from memory_core.store import handoffs as stored
from tests.factories import REPO, Store, database, ended, event, said, started, used_tool


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def record(store: Store, *events: HookEvent, **of_envelope: Any) -> None:
    for each in events:
        store.apply(RecordObservation(event=capped(each), source="claude-code/user"), **of_envelope)


def claude_worked(store: Store, key: str = "claude-1", **overrides: Any) -> None:
    for each in (
        started,
        lambda **o: event(body="port is 7311", **o),
        lambda **o: said("Noted.", **o),
        ended,
    ):
        record(store, each(session_key=key, **overrides))


def offer(store: Store, session: str = "codex-1", cwd: str | None = REPO, **more: Any) -> Any:
    of_envelope = {"principal": more.pop("principal", "ada")}
    return store.apply(OfferHandoff(session_id=session, agent="codex", cwd=cwd, **more), **of_envelope)


def codex(make: Any = event, session: str = "codex-1", **overrides: Any) -> HookEvent:
    return make(client="codex", session_key=session, **overrides)


def states(store: Store) -> list[str]:
    return [row["state"] for row in store.all("SELECT state FROM handoffs ORDER BY rowid")]


def test_claude_ends_and_codex_is_offered_it_once(store: Store):
    claude_worked(store)

    answer = offer(store)

    assert "7311" in answer["markdown"]
    assert len(recalled.strip(answer["markdown"]).splitlines()) == 2, "all of it but the headline is fenced"
    assert (answer["from_agent"], answer["state"]) == ("claude-code", "offered")
    assert offer(store, "codex-2")["handoff_id"] is None
    record(store, codex(started), codex(body="which port?"))
    assert states(store) == ["accepted"]
    assert offer(store)["handoff_id"] is None
    assert offer(store, "codex-3")["handoff_id"] is None


def test_an_answer_that_was_cut_is_given_again_until_the_session_works(store: Store):
    claude_worked(store)
    first = offer(store)
    record(store, codex(started))

    again = offer(store)

    assert again["handoff_id"] == first["handoff_id"]
    assert "7311" in again["markdown"]
    assert states(store) == ["offered"]


def test_asking_again_begins_the_offers_time_anew(store: Store):
    claude_worked(store)
    offer(store)
    store.clock.advance(limits.HANDOFF_OFFER_SECONDS - 10)
    offer(store)
    store.clock.advance(20)

    assert offer(store, "codex-2")["handoff_id"] is None


@pytest.mark.parametrize("make", [event, used_tool, lambda **o: said("text", **o)])
def test_the_first_real_event_accepts(store: Store, make: Any):
    claude_worked(store)
    offer(store)
    record(store, codex(make))

    [row] = store.all("SELECT state, accepted_by_agent, accepted_at, offered_to FROM handoffs LIMIT 1")
    assert (row["state"], row["accepted_by_agent"], row["offered_to"]) == ("accepted", "codex", None)
    assert row["accepted_at"] == store.clock.now_us()


def test_boundaries_do_not_accept(store: Store):
    claude_worked(store)
    offer(store)
    record(store, codex(started), codex(lambda **o: said("", **o)))

    assert states(store) == ["offered"]


def test_an_offer_that_nobody_took_goes_to_the_next_session_that_asks(store: Store):
    claude_worked(store)
    offer(store)
    store.clock.advance(limits.HANDOFF_OFFER_SECONDS)

    assert offer(store, "codex-2")["handoff_id"] is not None
    assert offer(store, "codex-1")["handoff_id"] is None


def test_a_session_never_receives_its_own(store: Store):
    claude_worked(store)
    store.apply(BeginHandoff(summary="for later", session_id="claude-1", cwd=REPO))

    assert offer(store, "claude-1")["handoff_id"] is None
    assert store.apply(AcceptHandoff(session_id="claude-1", cwd=REPO))["handoff_id"] is None


def test_other_directories_and_projects_get_nothing(store: Store):
    claude_worked(store)

    assert offer(store, cwd="/srv/repo-other")["handoff_id"] is None
    assert offer(store, project="another")["handoff_id"] is None
    assert store.all("SELECT name FROM projects") == [{"name": "repo"}], "asking makes no project"


def test_a_subfolder_of_a_known_repository_gets_it(store: Store):
    store.apply(
        RecordObservation(
            event=capped(event(session_key="claude-1", body="port is 7311")), source="s", repo_path=REPO
        )
    )
    record(store, ended(session_key="claude-1"))

    assert offer(store, cwd=f"{REPO}/api")["handoff_id"] is not None


def test_another_principal_gets_only_what_is_shared(store: Store):
    claude_worked(store)
    assert offer(store, "eve-1", principal="eve")["handoff_id"] is None

    store.apply(BeginHandoff(summary="for all", project="repo", shared=True))

    assert "for all" in offer(store, "eve-1", principal="eve")["markdown"]


def test_by_hand_beats_automatic(store: Store):
    store.apply(BeginHandoff(summary="written with care", project="repo", cwd="/elsewhere", to_agent="codex"))
    store.clock.advance(60)
    claude_worked(store)

    answer = offer(store)

    assert answer["summary"] == "written with care"
    assert answer["to_agent"] == "codex"


def test_to_agent_is_a_hint_and_no_filter(store: Store):
    store.apply(BeginHandoff(summary="x", project="repo", to_agent="gemini-cli"))

    assert offer(store)["handoff_id"] is not None


def test_a_newer_automatic_one_replaces_the_older_of_the_same_directory_only(store: Store):
    claude_worked(store, "one", cwd=REPO)
    store.apply(
        RecordObservation(
            event=capped(event(session_key="two", cwd=f"{REPO}/api")), source="s", project="repo"
        )
    )
    record(store, ended(session_key="two", cwd=f"{REPO}/api"))
    claude_worked(store, "three", cwd=REPO)

    assert states(store) == ["expired", "open", "open"]


def test_accepting_an_automatic_one_voids_those_below_it(store: Store):
    claude_worked(store, "one", cwd=REPO)
    store.clock.advance(5)
    store.apply(
        RecordObservation(
            event=capped(event(session_key="two", cwd=f"{REPO}/api")), source="s", project="repo"
        )
    )
    record(store, ended(session_key="two", cwd=f"{REPO}/api"))

    offer(store, cwd=f"{REPO}/api", project="repo")
    record(store, codex(cwd=f"{REPO}/api"))

    assert states(store) == ["expired", "accepted"]


def test_the_newest_stays_the_newest_when_the_clock_steps_back(store: Store):
    store.apply(BeginHandoff(summary="older", project="repo"))
    store.clock.advance(-3_600)
    store.apply(BeginHandoff(summary="newer", project="repo"))

    assert offer(store)["summary"] == "newer"


def test_accept_takes_what_is_offered_to_the_session_and_answers_once(store: Store):
    claude_worked(store)
    offered = offer(store)

    taken = store.apply(AcceptHandoff(session_id="codex-1", agent="codex", cwd=REPO))

    assert (taken["handoff_id"], taken["state"]) == (offered["handoff_id"], "accepted")
    assert store.apply(AcceptHandoff(session_id="codex-1", cwd=REPO))["handoff_id"] is None


def test_accept_without_a_session_takes_the_best_open_one(store: Store):
    claude_worked(store)

    assert store.apply(AcceptHandoff(cwd=REPO))["state"] == "accepted"


def test_a_named_one_that_is_offered_elsewhere_is_refused(store: Store):
    claude_worked(store)
    offered = offer(store)

    answer = store.apply(AcceptHandoff(session_id="other", handoff_id=offered["handoff_id"]))

    assert isinstance(answer, Refusal)
    assert answer.code == "conflict"


def test_cancel_expires_an_open_or_offered_one_and_says_what_it_found(store: Store):
    made = store.apply(BeginHandoff(summary="x", project="repo"))
    offer(store)

    first = store.apply(CancelHandoff(handoff_id=made["handoff_id"]))
    second = store.apply(CancelHandoff(handoff_id=made["handoff_id"]))

    assert (first["cancelled"], first["state"]) == (True, "expired")
    assert (second["cancelled"], second["state"]) == (False, "expired")
    assert offer(store)["handoff_id"] is None


@pytest.mark.parametrize(
    ("handoff_id", "any_owner", "principal", "code"),
    [
        ("no id", False, "ada", "invalid"),
        ("00000000-0000-0000-0000-000000000000", False, "ada", "not_found"),
        (None, False, "eve", "not_found"),
        (None, True, "eve", "forbidden"),
    ],
)
def test_cancel_refuses(store: Store, handoff_id: str | None, any_owner: bool, principal: str, code: str):
    made = store.apply(BeginHandoff(summary="x", project="repo"))

    answer = store.apply(
        CancelHandoff(handoff_id=handoff_id or made["handoff_id"], any_owner=any_owner), principal=principal
    )

    assert isinstance(answer, Refusal)
    assert answer.code == code
    assert states(store) == ["open"]


def test_a_handoff_needs_a_summary(store: Store):
    answer = store.apply(BeginHandoff(summary=" ", project="repo"))

    assert isinstance(answer, Refusal)
    assert store.all("SELECT 1 FROM projects") == []


def test_the_list_shows_own_and_shared_ones_and_counts_agree(store: Store):
    claude_worked(store)
    store.apply(BeginHandoff(summary="eve's", project="repo"), principal="eve")
    store.apply(BeginHandoff(summary="all", project="repo", shared=True))
    with store.transaction() as tx:
        seen = [row["summary"] for row in stored.listed(tx, state="open", owner="ada")]
        counts = stored.counts(tx, owner="ada")
        everything = stored.counts(tx, all_owners=True)

    assert len(seen) == 2
    assert "eve's" not in seen
    assert counts == {"open": 2, "offered": 0, "accepted": 0, "expired": 0}
    assert everything["open"] == 3
