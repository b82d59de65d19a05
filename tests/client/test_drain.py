"""The drain deletes an entry only when the server says committed, and loses none in silence."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from client import detached
from client.drain import drain, drain_briefly
from client.settings import ClientSettings
from client.spool import Entry, Spool
from memory_core import limits
from tests.client.gate_server import Gate, answers, commits, in_turn, key_of, says

Fill = Callable[..., list[Entry]]
MakeSettings = Callable[..., ClientSettings]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DRAIN_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(limits, "DRAIN_PAUSE_MAX_SECONDS", 0.05)


def log_of(settings: ClientSettings) -> str:
    return Path(settings.state_dir, "drain.log").read_text()


def test_what_is_committed_is_deleted(gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings):
    added = spooled(3)
    report = drain(spool, settings_of(gate.url), seconds=5)

    assert (report.delivered, spool.names()) == (3, [])
    assert [key_of(item) for item in gate.items] == [entry.key for entry in added]
    assert [item["body"]["n"] for item in gate.items] == [0, 1, 2]
    assert gate.paths == ["/hook/batch?wait=commit"]
    assert gate.tokens == ["Bearer of-the-test"]


@pytest.mark.parametrize("status", ["committed", "duplicate", "dropped"])
def test_each_of_these_is_done(
    status: str, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1)
    gate.behaviour = says(status)

    assert drain(spool, settings_of(gate.url), seconds=5).delivered == 1
    assert spool.names() == []


@pytest.mark.parametrize("status", ["pending", "not_kept", "a word of a later version"])
def test_what_is_pending_is_sent_again_with_the_same_key(
    status: str, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    (entry,) = spooled(1)
    gate.behaviour = in_turn(says(status), commits)
    drain(spool, settings_of(gate.url), seconds=5)

    assert [key_of(item) for item in gate.items] == [entry.key, entry.key]
    assert spool.names() == []


@pytest.mark.parametrize("status", ["invalid", "dead"])
def test_what_is_invalid_is_set_aside_and_not_sent_again(
    status: str, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(3)
    gate.behaviour = in_turn(says("committed", status, "committed"), commits)
    report = drain(spool, settings_of(gate.url), seconds=5)

    assert (report.delivered, report.rejected, len(gate.batches)) == (2, 1, 1)
    assert spool.rejected() == [added[1].name]
    assert "told so" in Path(spool.directory, "rejected", f"{added[1].name}.reason").read_text()


def test_what_is_refused_is_tried_eight_times_and_then_set_aside(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(1)
    gate.behaviour = says("refused")
    drain(spool, settings_of(gate.url), seconds=10)

    assert len(gate.batches) == limits.SPOOL_TRIES
    assert spool.rejected() == [added[0].name]


def test_a_refused_entry_does_not_hold_up_the_others(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(3)
    gate.behaviour = says("refused", "committed", "committed")
    drain_briefly(spool, settings_of(gate.url), seconds=5)

    assert spool.names() == [added[0].name]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_uses_up_no_try(
    status: int, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(2)
    gate.behaviour = in_turn(*[answers(status)] * 12, commits)
    report = drain(spool, settings_of(gate.url), seconds=10)

    assert report.delivered == 2
    assert len(gate.batches) == 13


def test_a_retry_after_is_waited_for(gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings):
    spooled(1)
    gate.behaviour = in_turn(answers(429, Retry_After="0.3"), commits)
    started = time.monotonic()
    drain(spool, settings_of(gate.url), seconds=10)

    assert time.monotonic() - started >= 0.3


def test_a_429_in_mid_batch_deletes_what_had_been_committed(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(3)

    def saturated(items):
        return 429, {"accepted": 1, "results": [{"id": key_of(items[0]), "status": "committed"}]}, {}

    gate.behaviour = saturated
    drain_briefly(spool, settings_of(gate.url), seconds=5)

    assert spool.names() == [entry.name for entry in added[1:]]


@pytest.mark.parametrize("cut", [b"", b'{"accepted": 2, "res', b"[]", b'{"results": 3}', b'{"accepted": 2}'])
def test_a_cut_answer_keeps_everything(
    cut: bytes, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(2)
    gate.behaviour = in_turn(lambda _items: (200, cut, {}), commits)
    report = drain(spool, settings_of(gate.url), seconds=5)

    assert (report.delivered, len(gate.batches)) == (2, 2)
    assert gate.batches[0] == gate.batches[1]


def test_an_answer_shorter_than_it_says_keeps_everything(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1)

    def short(items):
        whole = json.dumps(commits(items)[1]).encode()
        return 200, whole, {"Content-Length": str(len(whole) + 10), "Connection": "close"}

    gate.behaviour = in_turn(short, commits)

    assert drain(spool, settings_of(gate.url), seconds=5).delivered == 1
    assert len(gate.batches) == 2


def test_results_for_a_part_of_the_batch_settle_that_part(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(3)
    gate.behaviour = says("committed")
    drain_briefly(spool, settings_of(gate.url), seconds=5)

    assert spool.names() == [entry.name for entry in added[1:]]


def test_one_event_that_spoils_the_batch_is_found_and_set_aside(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    added = spooled(4)

    def spoiled(items):
        bad = any(item["body"]["n"] == 2 for item in items)
        return (400, {}, {}) if bad else commits(items)

    gate.behaviour = spoiled
    report = drain(spool, settings_of(gate.url), seconds=5)

    assert (report.delivered, report.rejected) == (3, 1)
    assert spool.rejected() == [added[2].name]


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_wrong_token_or_server_ends_the_drain_and_keeps_all(
    status: int, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(2)
    gate.behaviour = answers(status)
    report = drain(spool, settings_of(gate.url), seconds=5)

    assert (len(gate.batches), len(spool.names())) == (1, 2)
    assert str(status) in report.stopped
    assert str(status) in log_of(settings_of())


def test_a_server_error_is_a_try(gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings):
    spooled(1)
    gate.behaviour = answers(500)
    drain(spool, settings_of(gate.url), seconds=10)

    assert len(spool.rejected()) == 1
    assert len(gate.batches) == limits.SPOOL_TRIES


def test_a_server_that_is_not_there_keeps_everything_and_is_found_when_it_comes_back(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(2)
    report = drain(spool, settings_of("http://127.0.0.1:9"), seconds=0.3)

    assert (report.delivered, len(spool.names())) == (0, 2)
    assert drain(spool, settings_of(gate.url), seconds=5).delivered == 2


def test_batches_keep_within_items_and_bytes(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "BATCH_ITEMS_MAX", 4)
    spooled(10)
    drain(spool, settings_of(gate.url), seconds=5)
    monkeypatch.setattr(limits, "BATCH_ITEMS_MAX", 256)
    monkeypatch.setattr(limits, "SPOOL_BATCH_BYTES", 500)
    spooled(5)
    drain(spool, settings_of(gate.url), seconds=5)

    assert [len(batch) for batch in gate.batches[:3]] == [4, 4, 2]
    assert max(len(batch) for batch in gate.batches[3:]) < 5
    assert len(gate.items) == 15


def test_two_drains_at_once_send_nothing_twice(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(40)
    threads = [
        threading.Thread(target=drain, args=(spool, settings_of(gate.url)), kwargs={"seconds": 5})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(gate.items) == 40
    assert spool.names() == []


def test_an_event_that_arrives_while_a_drain_ends_is_delivered(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1)

    def one_more(items):
        if len(gate.batches) <= 5:
            spooled(1)
        return commits(items)

    gate.behaviour = one_more
    drain(spool, settings_of(gate.url), seconds=5)

    assert spool.names() == []
    assert len(gate.items) == 6


@pytest.mark.parametrize("look", [1, 2])
def test_an_event_that_comes_just_after_the_last_looks_is_delivered(
    look: int, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    """Its hook found the lock taken and left the delivery to the drain that was about to end."""
    empty_looks: list[int] = []

    class JustMissed(Spool):
        def names(self) -> list[str]:
            found = super().names()
            if gate.batches and not found:
                empty_looks.append(1)
                if len(empty_looks) == look:
                    spooled(1)
            return found

    spooled(1)
    drain(JustMissed(spool.directory), settings_of(gate.url), seconds=5)

    assert len(gate.items) == 2


def test_a_session_start_wakes_a_drain_that_pauses(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "DRAIN_PAUSE_SECONDS", 30.0)
    spooled(1)
    gate.behaviour = in_turn(answers(503), commits)
    pausing = threading.Thread(target=drain, args=(spool, settings_of(gate.url)), kwargs={"seconds": 60})
    pausing.start()
    gate.wait_for(1)
    while spool.names():
        drain_briefly(spool, settings_of(gate.url), seconds=0.3)
    pausing.join(60)

    assert not pausing.is_alive()
    assert len(gate.batches) == 2


def test_a_drain_that_runs_is_not_joined_by_another(spool: Spool, spooled: Fill, settings_of: MakeSettings):
    spooled(1)
    lock = detached.try_lock(settings_of())

    assert lock is not None
    assert detached.try_lock(settings_of()) is None
    assert not detached.start(settings_of())
    os.close(lock)


def test_evicted_entries_are_named_in_the_log(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    (old,) = spooled(1, now_us=1_000_000_000_000_000)
    drain(spool, settings_of(gate.url), seconds=1)

    assert gate.items == []
    assert "WARNING" in log_of(settings_of())
    assert old.name in log_of(settings_of())


def test_the_log_is_rotated(
    monkeypatch: pytest.MonkeyPatch, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "DRAIN_LOG_MAX_BYTES", 200)
    spooled(1)
    drain(spool, settings_of("http://127.0.0.1:9"), seconds=0.3)

    assert Path(settings_of().state_dir, "drain.log.1").exists()
    assert Path(settings_of().state_dir, "drain.log").stat().st_size <= 200
