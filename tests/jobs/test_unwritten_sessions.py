"""Sessions that hooks tell of are written, summed up and distilled without anybody asking, also those that go on for days."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_core import bootstrap, job_kind, limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.durable_deletion import DeleteSession, DropDeleted
from memory_core.config import Settings
from memory_core.domain.capture import capped
from memory_core.domain.schedule import Every
from memory_core.ids import session_id_from
from memory_core.job_kind import schedules
from memory_core.store import durable_sessions
from tests.factories import Store, database, ended, event, said, started
from tests.jobs.sessions import Agent
from tests.jobs.test_hook_journal import SESSION, tell, transcript, work
from tests.jobs.test_idle_sessions import sweep as end_idle_ones
from tests.jobs.working import Worker, add_job, job_of, look


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    bootstrap.load_jobs()
    store = database(tmp_path)
    yield store
    store.close()


def sweep(store: Store) -> dict[str, Any]:
    """Work one slot of the schedule off as a worker would; its result."""
    job_id = add_job(store, f"{store.clock.now_us()} {store.ids.new().hex()}", name="unwritten_sessions")
    kind = job_kind.kinds.get("unwritten_sessions")
    worker = Worker(store, queues=("forget",), kind="unwritten_sessions")
    while worker.take() is not None:
        found = kind.read_input(msgspec.json.encode(kind.prepare(look(store), job_of(store, job_id))))
        worker.finish(kind.compute(found, None))  # type: ignore[arg-type]
    result = job_of(store, job_id).result
    assert result is not None
    return dict(result)


def later(store: Store, seconds: float = 60) -> None:
    store.clock.advance(seconds)


def messages(store: Store) -> list[str]:
    return [text for kind, text in transcript(store) if kind.endswith("_message")]


def test_it_runs_every_hour_unless_told_otherwise(store: Store):
    settings = Settings(data_dir=store.path.parent)
    assert schedules(settings, {})["unwritten_sessions"] == Every(text="every 1h", seconds=3_600)
    told = {"MEMORYD_SCHEDULES__UNWRITTEN_SESSIONS": "off"}
    assert schedules(settings, told)["unwritten_sessions"] is None


def test_a_session_that_goes_on_is_written_as_far_as_its_turns_have_ended(store: Store):
    tell(store, event(body="One"), said("Done"), event(body="Two", unique_id="p2"))

    assert sweep(store) == {"queued": 1}
    (result,) = work(store)

    assert messages(store) == ["One", "Done"]
    assert (result["turns"], result["distillation"]) == (1, None)
    later(store)
    tell(store, said("Done two", unique_id="a2"), ended())
    (result,) = work(store)
    assert messages(store) == ["One", "Done", "Two", "Done two"]
    assert result["distillation"] is not None


def test_without_activity_it_does_nothing(store: Store):
    assert sweep(store) == {"queued": 0}
    tell(store, event(body="One"), said("Done"))
    assert sweep(store) == {"queued": 1}
    jobs = "SELECT count(*) AS n FROM jobs WHERE kind = 'hook_journal'"

    for _ in range(3):
        later(store, 3_600)
        assert sweep(store) == {"queued": 0}
    work(store)
    later(store, 3_600)
    assert sweep(store) == {"queued": 0}

    assert store.all(jobs) == [{"n": 1}]
    tell(store, event(body="Two", unique_id="p2"))
    assert sweep(store) == {"queued": 1}


def test_a_session_that_falls_silent_is_ended_written_and_distilled_though_nothing_more_was_told(
    store: Store,
):
    """The end by silence is no observation: the same number of them must not be taken for the same fact."""
    tell(store, event(body="Remember that deployments run on Fridays only."))
    sweep(store)
    work(store)
    assert messages(store) == []

    later(store, limits.SESSION_IDLE_SECONDS + 1)
    assert end_idle_ones(store) == ["completed"]
    (result,) = work(store)

    assert messages(store) == ["Remember that deployments run on Fridays only."]
    assert result["distillation"] is not None
    (distilled,) = work(store, "distillation", "distillation")
    assert distilled["upserted"] == 1


def test_a_session_that_goes_on_is_summed_up_when_it_is_large(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MODEL_CONTEXT_TOKENS", 32_000)
    for number in range(12):
        tell(
            store,
            event(body=f"Prompt {number} " + "x" * 3_000, unique_id=f"p{number}"),
            said("Done", unique_id=f"a{number}"),
        )
    sweep(store)

    (result,) = work(store)

    assert (result["distillation"], result["compaction"] is None) == (None, False)
    (compacted,) = work(store, "compaction", "compaction")
    assert compacted["made_by"] == "rules"
    later(store)
    tell(store, event(body="And now?", unique_id="p99"), said("Now this.", unique_id="a99"))
    sweep(store)
    work(store)
    told = transcript(store)
    assert [text for _, text in told][-3:] == ["And now?", "Now this.", "hook_turn"]
    assert "summary" in [kind for kind, _ in told]


def test_a_session_that_ended_before_there_were_transcripts_is_written_too(store: Store):
    tell(store, event(body="Long ago"), said("Done"), ended())
    store.connection.execute("DELETE FROM jobs")

    assert sweep(store) == {"queued": 1}
    work(store)

    assert messages(store) == ["Long ago", "Done"]
    (distilled,) = work(store, "distillation", "distillation")
    assert distilled["through_sequence"] == 3


def test_what_programs_write_themselves_and_what_is_deleted_is_left_alone(store: Store):
    Agent(store).start()
    tell(store, event(body="One"), said("Done"), ended())
    work(store)
    with store.transaction() as tx:
        durable_sessions.hide(tx, SESSION)
    store.connection.execute("DELETE FROM jobs")

    assert sweep(store) == {"queued": 0}


def test_a_failed_journal_is_not_made_anew(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    worker = Worker(store, queues=("forget",), kind="hook_journal")
    worker.take()
    worker.fail(permanent=True)

    later(store, 3_600)
    assert sweep(store) == {"queued": 0}


def test_boundaries_alone_are_nothing_to_write(store: Store):
    tell(store, started())

    assert sweep(store) == {"queued": 0}


def test_many_sessions_take_several_slices_and_none_is_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "UNWRITTEN_SESSIONS_PER_SLICE", 3)
    for number in range(7):
        told = event(body="go", session_key=f"session {number}", unique_id=f"p{number}")
        store.apply(RecordObservation(event=capped(told), source="cursor/user"))

    assert sweep(store) == {"queued": 7}
    assert store.all("SELECT count(DISTINCT subject) AS n FROM jobs WHERE kind = 'hook_journal'") == [
        {"n": 7}
    ]


def test_each_job_belongs_to_who_the_session_belongs_to(store: Store):
    tell(store, event(body="One"), said("Done"))
    sweep(store)

    rows = store.all("SELECT principal, token_scope FROM jobs WHERE kind = 'hook_journal'")
    assert rows == store.all("SELECT owner AS principal, token_scope FROM sessions")


def test_a_session_that_comes_back_under_the_id_of_a_deleted_one_is_written(store: Store):
    tell(store, event(body="One"), said("Done"), ended())
    work(store)
    work(store, "distillation", "distillation")
    if store.apply(DeleteSession(session=SESSION))["left"]:
        while store.apply(DropDeleted(session=SESSION))["left"]:
            pass
    assert store.all("SELECT id FROM jobs WHERE subject = ?", SESSION.hex()) == []

    tell(
        store,
        event(body="Again", unique_id="p2"),
        said("Done again", unique_id="a2"),
        ended(unique_id="e2"),
    )
    work(store)

    assert session_id_from("11111111-2222-4333-8444-555555555555") == SESSION
    assert messages(store) == ["Again", "Done again"]
