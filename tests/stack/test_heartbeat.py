from __future__ import annotations

import os
from pathlib import Path

from memory_core.clock import FakeClock
from workers.heartbeat import Heartbeat, read


def test_silence_is_measured_from_the_last_beat(tmp_path: Path) -> None:
    clock = FakeClock()
    heart = Heartbeat(tmp_path / "x", clock)
    heart.beat()
    clock.advance(7)

    beat = read(tmp_path / "x")

    assert beat is not None
    assert beat.pid == os.getpid()
    assert beat.silent_seconds(clock.monotonic()) == 7


def test_an_announced_silence_is_none(tmp_path: Path) -> None:
    clock = FakeClock()
    Heartbeat(tmp_path / "x", clock).beat(busy_for=60)
    clock.advance(61)

    beat = read(tmp_path / "x")

    assert beat is not None
    assert beat.silent_seconds(clock.monotonic()) == 1


def test_a_shorter_beat_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    clock = FakeClock()
    heart = Heartbeat(tmp_path / "x", clock)
    heart.beat(busy_for=123_456.789)
    heart.beat()

    beat = read(tmp_path / "x")

    assert beat is not None
    assert beat.busy_until == beat.at


def test_no_file_and_a_broken_file_are_no_beat(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{")

    assert read(tmp_path / "absent") is None
    assert read(tmp_path / "broken") is None
