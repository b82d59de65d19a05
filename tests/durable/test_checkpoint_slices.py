"""Checkpoints that are more than one command may write: staged from the journal where nobody sees it, then published at once."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.audit_event import AuditEvent, TurnCompleted
from memory_core.domain.tool_journal import UNCERTAIN_TEXT
from memory_core.domain.transcript_digest import Verifier
from memory_core.store import durable_sessions, session_events, tool_journal
from tests.durable.agent import Agent, ok, refused
from tests.durable.holder import Worker
from tests.durable.holder import refused as refusal
from tests.durable.journals import call
from tests.factories import Store

#: Long enough that three results make several slices of the bound that the tests set.
OUTPUT = "line of a log\n" * 100
SLICE_BYTES = 4_000


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_SLICE_MAX_BYTES", SLICE_BYTES)


def with_results(ada: Worker, output: str = OUTPUT) -> None:
    """A turn whose first batch has three results."""
    ada.begin()
    calls = [call(), call("read_file", path="a.py"), call("remove", path="b.py")]
    ada.plan(*calls)
    for each in calls:
        ada.start(each)
        ada.complete(each, output)


def staged_to_the_end(ada: Worker, **of: Any) -> int:
    """How many commands it took."""
    count, is_first = 1, True
    while (answer := ada.stage(is_first=is_first, **of))["staged"] < answer["of"]:
        count, is_first = count + 1, False
    return count


def payloads(store: Store, *, through_head: bool = True) -> list[tuple[str, Any]]:
    """Kinds and payloads of the one session's events; ids of turns and calls are as different as the tests made them."""
    rows = store.all(
        "SELECT e.kind, e.payload_json FROM session_events e JOIN durable_sessions d USING (session_id)"
        + (" WHERE e.sequence <= d.last_sequence" if through_head else "")
        + " ORDER BY e.sequence"
    )
    return [(row["kind"], json.loads(row["payload_json"])) for row in rows]


def verified(store: Store, session: bytes) -> None:
    with store.transaction() as tx:
        state = durable_sessions.one(tx, session)
        assert state is not None
        verifier = Verifier(session)
        for event in session_events.between(
            tx, session, after=0, through=state.last_sequence, limit=10_000, max_bytes=2**40
        ):
            verifier.feed(event)
        verifier.end(last_sequence=state.last_sequence, digest=state.digest)


@pytest.mark.usefixtures("short_slices")
def test_what_is_staged_of_a_checkpoint_is_seen_by_nobody_and_published_as_it_is(store: Store, ada: Worker):
    with_results(ada)

    assert staged_to_the_end(ada) > 2
    assert payloads(store) == []
    staged = store.all("SELECT id, payload_json FROM session_events ORDER BY sequence")
    answer = ada.checkpoint()

    assert (answer["first_sequence"], answer["last_sequence"]) == (1, len(staged))
    assert store.all("SELECT id, payload_json FROM session_events ORDER BY sequence") == staged
    assert ada.journal().batch is None
    assert ada.journal().open_turn.checkpoint_count == 1
    verified(store, ada.session)


def test_a_staged_checkpoint_is_the_one_that_one_command_writes(
    store: Store, ada: Worker, monkeypatch: pytest.MonkeyPatch
):
    with_results(ada)
    with store.transaction() as tx:
        estimated = tool_journal.checkpoint_bytes(tx, ada.session)
    ada.checkpoint()
    whole = payloads(store)
    (before,) = store.all("SELECT substance_count FROM sessions")
    assert sum(len(json.dumps(payload, separators=(",", ":"))) for _, payload in whole) == pytest.approx(
        estimated, rel=0.2
    )

    ada.end("Once more.")
    monkeypatch.setattr(limits, "CHECKPOINT_SLICE_MAX_BYTES", SLICE_BYTES)
    head = len(payloads(store))
    with_results(ada)
    staged_to_the_end(ada)
    ada.checkpoint()

    again = payloads(store)[head:]
    assert [kind for kind, _ in again] == [kind for kind, _ in whole]
    assert [payload.get("content") for _, payload in again] == [
        payload.get("content") for _, payload in whole
    ]
    (after,) = store.all("SELECT substance_count FROM sessions")
    assert after["substance_count"] == 2 * before["substance_count"] + 1


def test_no_command_of_the_longest_checkpoint_writes_more_than_a_slice(store: Store, ada: Worker):
    """Control characters cost six bytes each, and every result stands twice: 9 MiB of 768 KiB."""
    with_results(ada, "\x01" * limits.TOOL_OUTPUT_MAX_BYTES)
    written: list[int] = []
    before, is_first = 0, True
    while True:
        answer = ada.stage(is_first=is_first)
        (row,) = store.all("SELECT sum(octet_length(payload_json)) AS n FROM session_events")
        written.append(row["n"] - before)
        before, is_first = row["n"], False
        if answer["staged"] == answer["of"]:
            break

    assert sum(written) > 9 * limits.MIB
    assert max(written) <= limits.CHECKPOINT_SLICE_MAX_BYTES
    head = store.all("SELECT max(rowid) AS n FROM session_events")
    assert ada.checkpoint()["last_sequence"] == 17
    assert store.all("SELECT max(rowid) AS n FROM session_events") == head, "the last command wrote no event"
    verified(store, ada.session)


@pytest.mark.usefixtures("short_slices")
def test_what_was_staged_for_another_end_is_not_published(store: Store, ada: Worker):
    """The same number of events, and all but the last one are the same."""
    with_results(ada)
    staged_to_the_end(ada, ending="recovery")
    over = TurnCompleted(turn_id=ada.turn, model_rounds=1)

    ada.end(None, [over])

    told = [payload["event"]["type"] for kind, payload in payloads(store) if kind == "audit"]
    assert told[-1] == "turn_completed"
    assert "turn_failed" not in told
    assert payloads(store) == payloads(store, through_head=False)
    verified(store, ada.session)


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("slices", [1, 2])
def test_a_closing_command_that_comes_too_early_writes_all_of_it(store: Store, ada: Worker, slices: int):
    with_results(ada)
    for number in range(slices):
        ada.stage(is_first=number == 0)

    assert ada.checkpoint()["last_sequence"] == 17
    assert len(payloads(store, through_head=False)) == 17
    verified(store, ada.session)


@pytest.mark.usefixtures("short_slices")
def test_slices_of_two_requests_make_one_checkpoint(store: Store, ada: Worker):
    """The request was sent again while the first one was still at it: each goes on where it is."""
    with_results(ada)
    first = ada.stage(is_first=True)
    ada.stage(is_first=False)
    assert ada.stage(is_first=True) == first
    while (answer := ada.stage(is_first=False))["staged"] < answer["of"]:
        pass
    assert ada.stage(is_first=False) == answer

    assert ada.checkpoint()["last_sequence"] == 17
    assert len(payloads(store, through_head=False)) == 17
    assert "another request" in refusal(ada_after(ada).stage(is_first=False), "conflict")


def ada_after(ada: Worker) -> Worker:
    """With another batch open, of which nothing is staged."""
    one = call()
    ada.plan(one)
    ada.run(one)
    return ada


@pytest.mark.usefixtures("short_slices")
def test_nothing_is_staged_of_a_batch_that_is_not_complete(store: Store, ada: Worker):
    ada.begin()
    assert "nothing to stage" in refusal(ada.stage(is_first=True), "invalid")
    ada.plan(call())

    assert "no result yet" in refusal(ada.stage(is_first=True), "conflict")
    assert payloads(store, through_head=False) == []


@pytest.mark.usefixtures("short_slices")
def test_a_holder_that_vanishes_between_two_slices_leaves_nothing_half_done(store: Store, ada: Worker):
    with_results(ada)
    ada.stage(is_first=True)
    ada.stage(is_first=False)

    ada.vanish()
    assert payloads(store, through_head=False) == []
    assert staged_to_the_end(ada, ending="recovery") > 2
    report = ada.publish()

    assert (report["exact_results"], report["last_sequence"]) == (3, 18)
    assert [kind for kind, _ in payloads(store)].count("tool_result") == 3
    assert (ada.journal().turn, ada.journal().batch) == (None, None)
    verified(store, ada.session)


# --- over HTTP ---------------------------------------------------------------------------------------


def worked(agent: Agent, output: str = OUTPUT) -> None:
    ok(agent.begin())
    calls = [call(), call("read_file", path="a.py"), call("remove", path="b.py")]
    ok(agent.plan(*calls))
    for each in calls:
        ok(agent.start(each))
        ok(agent.complete(each, output))


def stagings(agent: Agent) -> int:
    """How many commands staged something so far."""
    rows = agent.house.rows("SELECT result FROM command_ids WHERE result LIKE '{\"staged\":%'")
    return len(rows)


@pytest.mark.usefixtures("short_slices")
def test_a_long_checkpoint_goes_in_slices_and_may_be_sent_again(agent: Agent):
    worked(agent)
    key = str(uuid.uuid4())

    first = ok(agent.checkpoint(**{"Idempotency-Key": key}))
    assert stagings(agent) > 2
    agent.rounds = 0
    assert ok(agent.checkpoint(**{"Idempotency-Key": key})) == first
    again = stagings(agent)
    ok(agent.end())

    assert stagings(agent) == again
    results = [event for event in agent.events() if event["kind"] == "tool_result"]
    assert [event["payload"]["content"][0]["data"] for event in results] == [OUTPUT] * 3
    assert agent.journal() == {"turn": None, "batch": None}


def test_a_short_checkpoint_is_one_command(agent: Agent):
    worked(agent)
    ok(agent.checkpoint())

    assert stagings(agent) == 0


@pytest.mark.usefixtures("short_slices")
def test_a_turn_that_ends_with_a_long_batch_is_staged_too(agent: Agent):
    worked(agent)
    over: list[AuditEvent] = [TurnCompleted(turn_id=agent.turn, model_rounds=1)]

    ok(agent.finish(over))

    assert stagings(agent) > 2
    audit = [event["payload"]["event"]["type"] for event in agent.events() if event["kind"] == "audit"]
    assert audit[-1] == "turn_completed"
    assert agent.journal() == {"turn": None, "batch": None}


@pytest.mark.usefixtures("short_slices")
def test_an_uncertain_call_beside_long_results_is_recovered_in_slices(agent: Agent):
    ok(agent.begin())
    calls = [call(), call("read_file", path="a.py"), call("remove", path="b.py")]
    ok(agent.plan(*calls))
    for each in calls:
        ok(agent.start(each))
    for each in calls[:2]:
        ok(agent.complete(each, OUTPUT * 2))
    other = agent.come_back()
    refused(other.recover(), "uncertain_calls")

    report = ok(other.recover(accept=True))

    assert (report["exact_results"], report["uncertain_results"]) == (2, 1)
    assert stagings(agent) > 2
    texts = [
        event["payload"]["content"][0]["data"] for event in other.events() if event["kind"] == "tool_result"
    ]
    assert texts == [OUTPUT * 2, OUTPUT * 2, UNCERTAIN_TEXT]
