"""The writer's books: ids that expire, tokens, and full text that follows its rows."""

from __future__ import annotations

import pytest

from memory_core.clock import MICROSECONDS, FakeClock
from memory_core.domain import token
from memory_core.store import command_ids, principals
from tests.store.databases import new_writer, with_transaction
from tests.writer.engines import envelope

DAY = 24 * 3600


@pytest.mark.parametrize(("is_foreign", "days_kept"), [(False, 8), (True, 30)])
def test_ids_are_kept_past_every_spool_and_then_purged(tmp_path, is_foreign, days_kept):
    clock = FakeClock()
    connection = new_writer(tmp_path, clock)
    sent = envelope("a", is_foreign=is_foreign)
    with_transaction(connection, lambda tx: command_ids.record(tx, sent, command_ids.COMMITTED, None), clock)

    clock.advance(days_kept * DAY - 60)
    assert with_transaction(connection, lambda tx: command_ids.purge(tx, 10), clock) == 0

    clock.advance(120)
    assert with_transaction(connection, lambda tx: command_ids.purge(tx, 10), clock) == 1


def test_a_purge_takes_a_bounded_slice(tmp_path):
    clock = FakeClock()
    connection = new_writer(tmp_path, clock)
    for n in range(25):
        one = envelope(str(n))
        with_transaction(
            connection, lambda tx, one=one: command_ids.record(tx, one, "committed", None), clock
        )
    clock.advance(9 * DAY)

    taken = [with_transaction(connection, lambda tx: command_ids.purge(tx, 10), clock) for _ in range(4)]

    assert taken == [10, 10, 5, 0]


def test_a_purge_finds_its_rows_by_an_index(tmp_path):
    connection = new_writer(tmp_path)

    plan = connection.raw.execute(
        "EXPLAIN QUERY PLAN " + command_ids._PURGE.sql,
        command_ids._PURGE.parameters({"is_foreign": 0, "before": 1, "slice": 10}),
    ).fetchall()

    assert any("ix_command_ids_is_foreign_recorded_at" in row["detail"] for row in plan)
    assert not any("TEMP B-TREE" in row["detail"] for row in plan)


def test_the_owners_token_is_added_once_and_its_text_is_nowhere(tmp_path):
    made = token.mint()
    connection = new_writer(tmp_path)
    for _ in range(2):
        with_transaction(connection, lambda tx: principals.ensure_owner(tx, made.public_id, made.digest))

    row = with_transaction(connection, lambda tx: principals.token_by_public_id(tx, made.public_id))
    connection.truncate()

    assert (row["principal"], row["scope"], row["digest"]) == ("owner", "admin", made.digest)
    secret = made.text.split("_")[2].encode()
    assert secret not in (tmp_path / "memory.sqlite").read_bytes()


def add_observation(connection, seq: int, body: str, project: bytes) -> None:
    connection.execute(
        "INSERT INTO observations (seq, id, project_id, token_scope, session_id, kind, source_event, speaker, title, "
        "body, importance, twin_hash, source, recorded_at) VALUES (?, ?, ?, 'capture', ?, 'user-prompt', 'x', 'user', '', "
        "?, 5, x'00', 's', ?)",
        (seq, seq.to_bytes(16, "big"), project, b"s" * 16, body, MICROSECONDS),
    )


def with_project(connection) -> bytes:
    project = b"p" * 16
    connection.execute("INSERT INTO workspaces VALUES (?, 'w', 1)", (b"w" * 16,))
    connection.execute(
        "INSERT INTO projects (number, id, workspace_id, name, created_at) VALUES (42, ?, ?, 'x', 1)",
        (project, b"w" * 16),
    )
    connection.execute(
        "INSERT INTO sessions (id, project_id, token_scope, agent, vendor_key, started_at, last_event_at, "
        "observation_count, substance_count) VALUES (?, ?, 'capture', 'a', 'v', 1, 1, 0, 0)",
        (b"s" * 16, project),
    )
    return project


def found(connection, match: str) -> list[int]:
    rows = connection.execute("SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?", (match,))
    return [row[0] for row in rows.fetchall()]


@pytest.mark.parametrize(
    "deletion",
    ["DELETE FROM observations", "DELETE FROM sessions", "DELETE FROM projects", "DELETE FROM workspaces"],
)
def test_full_text_follows_the_observations_however_they_go(tmp_path, deletion):
    writer = new_writer(tmp_path)
    connection = writer.raw
    project = with_project(connection)
    writer.begin()
    add_observation(connection, 1, "a café in Zürich", project)
    add_observation(connection, 2, "another one", project)
    writer.commit()
    assert found(connection, "scope : p42 AND cafe") == [1]
    assert found(connection, "scope : p4 AND cafe") == []

    connection.execute(deletion)

    assert found(connection, "cafe") == []
    connection.execute("INSERT INTO observations_fts(observations_fts, rank) VALUES ('integrity-check', 1)")


def test_what_comes_and_goes_in_one_transaction_leaves_the_index_whole(tmp_path):
    writer = new_writer(tmp_path)
    connection = writer.raw
    project = with_project(connection)
    writer.begin()
    add_observation(connection, 1, "an early one", project)
    writer.commit()

    writer.begin()
    add_observation(connection, 2, "a café in Zürich", project)
    add_observation(connection, 3, "another one", project)
    connection.execute("DELETE FROM observations WHERE seq IN (1, 3)")
    writer.commit()

    assert (found(connection, "cafe"), found(connection, "another"), found(connection, "early")) == (
        [2],
        [],
        [],
    )
    connection.execute("INSERT INTO observations_fts(observations_fts, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("SELECT count(*) FROM unindexed_observations").fetchone()[0] == 0


def test_what_is_rolled_back_is_not_indexed_by_the_next_transaction(tmp_path):
    writer = new_writer(tmp_path)
    project = with_project(writer.raw)
    writer.begin()
    add_observation(writer.raw, 1, "never", project)
    writer.rollback()

    writer.begin()
    add_observation(writer.raw, 1, "always", project)
    writer.commit()

    assert (found(writer.raw, "never"), found(writer.raw, "always")) == ([], [1])


def segments(connection) -> int:
    """Of the index of observations."""
    return connection.execute("SELECT count(DISTINCT segid) FROM observations_fts_idx").fetchone()[0]


def test_many_small_commits_leave_segments_that_idle_steps_join(tmp_path):
    writer = new_writer(tmp_path)
    project = with_project(writer.raw)
    for seq in range(1, 13):
        writer.begin()
        add_observation(writer.raw, seq, f"word{seq} and a common one", project)
        writer.commit()
    split = segments(writer.raw)

    for _ in range(20):
        writer.join_index()

    assert segments(writer.raw) < split
    assert len(found(writer.raw, "common")) == 12
    writer.raw.execute("INSERT INTO observations_fts(observations_fts, rank) VALUES ('integrity-check', 1)")
