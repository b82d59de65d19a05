"""Sessions that never end: which are found, that only those still idle are ended, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import memory_core.jobs.idle_sessions as idle_sessions
from memory_core import job_kind, limits
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from tests.factories import Store, database, event
from tests.jobs.working import Worker, add_job, job_of, look


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


def say(store: Store, session: str, body: str = "go") -> None:
    store.apply(RecordObservation(event=capped(event(session_key=session, body=body)), source="cursor/user"))


def sweep(store: Store) -> list[str]:
    """Work a job off as a worker would; the state after each of its slices."""
    job_id = add_job(store, str(store.clock.now_us()), name="idle_sessions")
    worker = Worker(store, queues=("forget",), kind="idle_sessions")
    states = []
    while worker.take() is not None:
        job = job_of(store, job_id)
        found = idle_sessions.prepare(look(store), job)
        kind = job_kind.kinds.get("idle_sessions")
        states.append(worker.finish(kind.compute(found, None))["state"])
    return states


def reasons(store: Store) -> dict[str, str | None]:
    rows = store.all("SELECT vendor_key, end_reason FROM sessions")
    return {row["vendor_key"]: row["end_reason"] for row in rows}


def test_sessions_are_ended_after_two_hours_of_silence_a_few_at_a_time(store: Store):
    names = [f"s{number:02}" for number in range(2 * limits.IDLE_SESSIONS_PER_SLICE + 1)]
    for name in names:
        say(store, name)
    store.clock.advance(limits.SESSION_IDLE_SECONDS + 1)
    say(store, "fresh")

    assert sweep(store) == ["pending", "pending", "completed"]
    assert reasons(store) == dict.fromkeys(names, "idle") | {"fresh": None}
    assert store.all("SELECT result FROM jobs WHERE kind = 'idle_sessions'") == [
        {"result": f'{{"ended":{len(names)}}}'}
    ]


def test_nothing_is_ended_before_that(store: Store):
    say(store, "a")
    store.clock.advance(limits.SESSION_IDLE_SECONDS - 1)

    assert sweep(store) == ["completed"]
    assert reasons(store) == {"a": None}


def test_a_session_that_spoke_between_the_look_and_the_end_goes_on(store: Store):
    say(store, "a")
    store.clock.advance(limits.SESSION_IDLE_SECONDS + 1)
    add_job(store, name="idle_sessions")
    worker = Worker(store, queues=("forget",), kind="idle_sessions")
    job = worker.take()
    assert job is not None
    found = idle_sessions.prepare(look(store), job_of(store, job))
    say(store, "a", "back from lunch")

    worker.finish(found)

    assert len(found.sessions) == 1
    assert reasons(store) == {"a": None}
