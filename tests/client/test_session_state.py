"""What the shim remembers of a session holds also when its hooks run side by side."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from client.session_state import SessionState, forget_old
from tests.client.conftest import NOW_US


def test_no_number_is_given_twice(tmp_path: Path):
    numbers: list[int] = []

    def take() -> None:
        for _ in range(50):
            numbers.append(SessionState(str(tmp_path), "codex", "s").next_seq(NOW_US)[0])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(numbers) == list(range(NOW_US // 1000, NOW_US // 1000 + 200))


def test_a_hook_waits_until_another_has_taken_its_number(tmp_path: Path):
    state = SessionState(str(tmp_path), "codex", "s")
    state.next_seq(NOW_US)
    (record,) = (tmp_path / "sessions").iterdir()
    waiting = threading.Thread(target=state.next_seq, args=(NOW_US,))
    with record.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(60)

    assert not waiting.is_alive()


def test_numbers_rise_when_the_clock_steps_back(tmp_path: Path):
    state = SessionState(str(tmp_path), "codex", "s")

    assert state.next_seq(NOW_US)[0] < state.next_seq(NOW_US - 5_000_000)[0]


def test_a_record_that_was_lost_does_not_let_them_fall_back(tmp_path: Path):
    state = SessionState(str(tmp_path), "codex", "s")
    first, _ = state.next_seq(NOW_US)
    next((tmp_path / "sessions").iterdir()).write_bytes(b"torn")

    assert state.next_seq(NOW_US + 1_000)[0] > first


def test_it_remembers_that_context_was_given(tmp_path: Path):
    state = SessionState(str(tmp_path), "codex", "s")
    assert state.next_seq(NOW_US)[1] is False
    state.mark_given()

    assert state.next_seq(NOW_US)[1] is True
    assert SessionState(str(tmp_path), "claude-code", "s").next_seq(NOW_US)[1] is False


@pytest.mark.parametrize("session", ["../../etc/passwd", "a/b", "x" * 600, "日本", ".", "\ud83d"])
def test_no_session_id_leads_out_of_its_directory(session: str, tmp_path: Path):
    SessionState(str(tmp_path), "codex", session).next_seq(NOW_US)

    assert len(list((tmp_path / "sessions").iterdir())) == 1


def test_records_of_silent_sessions_are_dropped(tmp_path: Path):
    SessionState(str(tmp_path), "codex", "old").next_seq(NOW_US)
    (record,) = (tmp_path / "sessions").iterdir()
    os.utime(record, (0, 0))
    forget_old(str(tmp_path), NOW_US)

    assert not record.exists()
