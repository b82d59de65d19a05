"""A database of each revision, in use when it is upgraded, is worked on as a new one is: counts, triggers and checks hold for old rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import bootstrap
from memory_core.clock import FakeClock
from memory_core.commands.capture import RecordObservation
from memory_core.commands.job_control import CancelJob, RetryJob
from memory_core.commands.pages import WritePage
from memory_core.domain.command import Refusal
from memory_core.domain.job import Failure
from memory_core.ids import IdSource, id_text
from memory_core.store import job_counts, migrate, schema
from memory_core.store.database import open_writer
from tests.durable.directly import Holder, code, say, started
from tests.factories import Store, event
from tests.jobs.working import Worker, look
from tests.store.one_of_each import ROWS, identity
from tests.store.test_migrate_populated import at_revision, columns_of, populate

#: A job of each state, beside the pending one.
_CLAIMED = {"claims": 1, "worker": "w", "claimed_at": 1}
JOBS: dict[str, dict[str, Any]] = {
    "running": {**_CLAIMED, "claim_hash": b"c" * 32, "lease_until": 9},
    "completed": {**_CLAIMED, "result": "{}", "finished_at": 1},
    "failed": {**_CLAIMED, "failures": 3, "last_error": "no", "finished_at": 1},
    "cancelled": {"finished_at": 1},
}


@pytest.fixture(params=schema.REVISIONS)
def upgraded(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A database that began at that revision, had a row of each table and a job of each state, and was brought to the head."""
    bootstrap.load_jobs()
    path = at_revision(tmp_path, request.param, monkeypatch)
    connection = open_writer(path)
    populate(connection, request.param)
    known = columns_of(connection, "jobs")
    for number, (state, more) in enumerate(JOBS.items() if known else ()):
        row = (
            ROWS["jobs"]
            | {"id": identity(100 + number), "source_digest": bytes([number]) * 32, "state": state}
            | more
        )
        marks = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    connection.close()
    clock = FakeClock()
    migrate.migrate(path, tmp_path, clock)
    store = Store(path=path, connection=open_writer(path), clock=clock, ids=IdSource(clock))
    yield store
    assert store.all("PRAGMA foreign_key_check") == []
    store.close()


def present(store: Store) -> dict[str, int]:
    return {
        each.state.value: each.count for each in job_counts.present(look(store)) if each.kind == "compaction"
    }


def in_rows(store: Store) -> dict[str, int]:
    rows = store.all("SELECT state, count(*) AS n FROM jobs WHERE kind = 'compaction' GROUP BY state")
    return {row["state"]: row["n"] for row in rows}


def old_jobs_are_counted_claimed_ended_and_tried_again(upgraded: Store):
    assert present(upgraded) == in_rows(upgraded)
    if not in_rows(upgraded):
        return
    worker = Worker(upgraded, queues=("compaction",))
    job = worker.take()
    assert job == ROWS["jobs"]["id"]
    worker.fail(Failure.PROVIDER)
    assert not isinstance(upgraded.apply(RetryJob(job=id_text(identity(102)))), Refusal)
    assert not isinstance(upgraded.apply(CancelJob(job=id_text(identity(102)))), Refusal)

    assert present(upgraded) == in_rows(upgraded)


def a_session_is_begun_written_resumed_and_closed(upgraded: Store):
    holder = Holder(upgraded, started(upgraded))
    holder.claim()
    holder.append(say("one"), say("two"))
    holder.release()
    holder.claim()
    assert code(holder.append(say("early"))) == "replay_required"
    holder.replay()

    assert holder.append(say("three"))["last_sequence"] == 3
    assert holder.close()["job"] is not None


def pages_and_what_hooks_tell_are_taken_and_found(upgraded: Store):
    upgraded.apply(WritePage(workspace="default", project="repo", path="notes/new.md", body="# Turbines\n"))
    upgraded.apply(RecordObservation(event=event(body="please oil the turbines"), source="s"))

    found = upgraded.all("SELECT count(*) AS n FROM observations_fts WHERE observations_fts MATCH 'turbines'")
    assert found == [{"n": 1}]
    assert upgraded.all("SELECT count(*) AS n FROM pages WHERE path = 'notes/new.md'") == [{"n": 1}]


def test_a_database_of_each_revision_is_worked_on_after_its_upgrade(upgraded: Store):
    old_jobs_are_counted_claimed_ended_and_tried_again(upgraded)
    a_session_is_begun_written_resumed_and_closed(upgraded)
    pages_and_what_hooks_tell_are_taken_and_found(upgraded)
