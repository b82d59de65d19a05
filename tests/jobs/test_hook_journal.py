"""Sessions that hooks tell of: written as transcripts at their end, in slices, then distilled and compacted as any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory_core import bootstrap, job_kind, limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.sessions import finalise, refinalise_due
from memory_core.domain.capture import capped
from memory_core.domain.event import EventKind, HookEvent
from memory_core.domain.job import State
from memory_core.domain.transcript_digest import Verifier
from memory_core.ids import id_bytes, session_id_from
from memory_core.store import durable_sessions, session_events
from tests.factories import Store, bash, database, ended, event, said, used_tool
from tests.jobs.working import Worker, job_of, look

KEY = "11111111-2222-4333-8444-555555555555"
SESSION = session_id_from(KEY)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    bootstrap.load_jobs()
    store = database(tmp_path)
    yield store
    store.close()


def tell(store: Store, *events: HookEvent) -> None:
    for each in events:
        store.apply(RecordObservation(event=capped(each), source="claude-code/user"))


def begins_tool(command: str, call_id: str) -> HookEvent:
    return used_tool(
        bash(command, call_id=call_id),
        kind=EventKind.PRE_TOOL_USE,
        source_event="PreToolUse",
        unique_id=f"pre-{call_id}",
    )


def ran(command: str, call_id: str, result: str = "fine") -> HookEvent:
    return used_tool(bash(command, call_id=call_id, result=result), unique_id=f"post-{call_id}")


def work(store: Store, queue: str = "forget", kind: str = "hook_journal") -> list[Any]:
    """Do what is due of a kind; the results."""
    results = []
    worker = Worker(store, queues=(queue,), kind=kind)
    while (job_id := worker.take()) is not None:
        made = job_kind.kinds.get(kind)
        output = made.compute(made.prepare(look(store), job_of(store, job_id)), SimpleNamespace(model=None))  # type: ignore[arg-type]
        if worker.finish(output)["state"] == "completed":
            results.append(job_of(store, job_id).result)
    return results


def transcript(store: Store) -> list[tuple[str, str]]:
    """Kinds and texts of the session's events; verified."""
    state = durable_sessions.one(look(store), SESSION)
    assert state is not None
    events = session_events.between(
        look(store), SESSION, after=0, through=state.last_sequence, limit=10_000, max_bytes=10**9
    )
    verifier = Verifier(SESSION)
    told = []
    for each in events:
        verifier.feed(each)
        payload = json.loads(each.payload_json)
        text = "".join(part["data"] for part in payload.get("content", []))
        told.append((each.kind.value, text or payload.get("record", "")))
    verifier.end(last_sequence=state.last_sequence, digest=state.digest)
    return told


def test_a_session_is_written_at_its_end_and_not_before(store: Store):
    tell(
        store,
        event(body="Fix it"),
        begins_tool("pytest", "c1"),
        ran("pytest", "c1", "1 passed"),
        said("Fixed."),
    )
    assert store.all("SELECT id FROM jobs") == []
    assert store.all("SELECT * FROM durable_sessions") == []

    tell(store, ended())

    (result,) = work(store)
    assert (result["turns"], result["unobserved"]) == (1, 0)
    assert transcript(store) == [
        ("user_message", "Fix it"),
        ("tool_call", "hook_message"),
        ("tool_result", "1 passed"),
        ("assistant_message", "Fixed."),
        ("audit", "hook_turn"),
    ]
    (row,) = store.all("SELECT origin, host, lease_hash FROM durable_sessions")
    assert row == {"origin": "hooks", "host": None, "lease_hash": None}


def test_it_is_distilled_as_a_durable_session_is(store: Store):
    tell(store, event(body="Remember that deployments run on Fridays only."), said("Noted."), ended())

    (result,) = work(store)

    job_id = id_bytes(result["distillation"])
    assert job_of(store, job_id).subject == SESSION.hex()
    (distilled,) = work(store, "distillation", "distillation")
    assert (distilled["made_by"], distilled["upserted"]) == ("rules", 1)
    (version,) = store.all("SELECT content, provenance_session_id FROM knowledge_versions")
    assert version == {"content": "Deployments run on Fridays only.", "provenance_session_id": SESSION}


def test_calls_whose_end_nobody_told_are_unobserved(store: Store):
    tell(
        store,
        event(),
        begins_tool("sleep 9", "c1"),
        begins_tool("ls", "c2"),
        ran("ls", "c2"),
        said("Hm."),
        ended(),
    )

    (result,) = work(store)

    assert result["unobserved"] == 1
    assert [text.split(":")[0] for kind, text in transcript(store) if kind == "tool_result"] == [
        "unobserved",
        "fine",
    ]


def test_what_comes_after_the_end_is_written_behind_it(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    work(store)
    before = transcript(store)

    tell(store, said("One thing more"))
    store.clock.advance(limits.LATE_EVENT_DEBOUNCE_SECONDS + 1)
    with store.transaction() as tx:
        assert refinalise_due(tx) == 1
    work(store)

    after = transcript(store)
    assert after[: len(before)] == before
    assert after[len(before) :] == [("assistant_message", "One thing more"), ("audit", "hook_turn")]


def test_the_same_observations_are_written_once(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    work(store)
    before = transcript(store)

    tell(store, ended(unique_id="again"))
    work(store)

    assert transcript(store) == before


def test_a_session_that_goes_on_keeps_its_open_turn_for_the_next_end(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    tell(
        store,
        event(
            kind=EventKind.SESSION_START,
            source_event="SessionStart",
            body="",
            reason="resume",
            occurred_at=store.clock.now_us() + 1_000_000,
        ),
    )
    tell(store, event(body="Two"))

    (result,) = work(store)
    assert result["distillation"] is None
    assert ("user_message", "Two") not in transcript(store)

    tell(store, said("Done two"), ended(unique_id="second end"))
    work(store)
    assert [text for kind, text in transcript(store) if kind.endswith("_message")] == [
        "One",
        "Done",
        "Two",
        "Done two",
    ]


def test_a_long_session_is_written_in_slices_and_nothing_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "HOOK_JOURNAL_OBSERVATIONS", 7)
    for number in range(6):
        tell(store, event(body=f"Prompt {number}", unique_id=f"p{number}"))
        for call in range(5):
            name = f"{number}-{call}"
            tell(store, begins_tool(f"echo {name}", name), ran(f"echo {name}", name, f"result {name}"))
        tell(store, said(f"Answer {number}", unique_id=f"a{number}"))
    tell(store, ended())

    (result,) = work(store)

    told = transcript(store)
    assert result["unobserved"] == 0
    assert [text for kind, text in told if kind == "user_message"] == [f"Prompt {at}" for at in range(6)]
    assert [text for kind, text in told if kind == "tool_result"] == [
        f"result {number}-{call}" for number in range(6) for call in range(5)
    ]


def test_boundaries_alone_make_no_transcript(store: Store):
    tell(store, event(kind=EventKind.SESSION_START, source_event="SessionStart", body=""), ended())

    assert work(store) == []
    assert store.all("SELECT * FROM durable_sessions") == []


def test_another_model_is_a_revision_of_the_snapshot_and_an_event(store: Store):
    tell(store, event(body="One", model="large"), said("Done"), ended())
    work(store)
    tell(
        store,
        event(body="Two", model="small", occurred_at=store.clock.now_us() + 1_000_000),
        ended(unique_id="second"),
    )
    with store.transaction() as tx:
        finalise(tx, SESSION)
    work(store)

    rows = store.all("SELECT revision, config_json FROM session_snapshots ORDER BY revision")
    assert [(row["revision"], json.loads(row["config_json"])["model"]) for row in rows] == [
        (1, "large"),
        (2, "small"),
    ]
    assert ("audit", "snapshot_drift") in transcript(store)


def test_a_session_that_was_deleted_is_not_begun_anew(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    work(store)
    with store.transaction() as tx:
        durable_sessions.hide(tx, SESSION)
    tell(store, said("Late"))
    store.clock.advance(limits.LATE_EVENT_DEBOUNCE_SECONDS + 1)
    with store.transaction() as tx:
        refinalise_due(tx)

    assert work(store) == [{"turns": 0}]
    assert store.all("SELECT count(*) AS n FROM durable_sessions") == [{"n": 1}]


def test_a_session_that_is_gone_is_no_failure(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    with store.transaction():
        store.connection.execute("DELETE FROM observations")
        store.connection.execute("DELETE FROM sessions")

    assert work(store) == [{"turns": 0}]


def test_a_large_session_is_compacted(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MODEL_CONTEXT_TOKENS", 32_000)
    for number in range(12):
        tell(
            store,
            event(body=f"Prompt {number} " + "x" * 3_000, unique_id=f"p{number}"),
            said("Done", unique_id=f"a{number}"),
        )
    tell(store, ended())

    (result,) = work(store)

    job = job_of(store, id_bytes(result["compaction"]))
    assert job.state is State.PENDING
    (compacted,) = work(store, "compaction", "compaction")
    assert compacted["made_by"] == "rules"
    assert transcript(store)[-1][0] == "summary"
    # The knowledge is drawn from what was said, also where the summary came first.
    (distilled,) = work(store, "distillation", "distillation")
    assert distilled["through_sequence"] == compacted["summary_sequence"] - 1
