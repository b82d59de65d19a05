from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis import Redis
from redis.exceptions import RedisError

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.config import Settings
from memory_core.errors import OutcomeUnknown, Unavailable
from tests.queue.broker import Broker, until
from tests.queue.conftest import GIB, disk_of, make_envelope
from workers.queue.connect import admission_client
from workers.queue.disk import DiskGauge

MIB = 1024**2


def contents(ends: SimpleNamespace) -> tuple:
    """Everything that the broker keeps for this install."""
    client, keys = ends.client, ends.keys
    return (
        client.xrange(keys.commands),
        client.get(keys.bytes),
        client.get(keys.oldest),
        client.exists(keys.door),
    )


def test_an_admission_says_what_was_kept_and_that_the_bell_must_be_rung(ends: SimpleNamespace):
    admission = ends.queue.append([make_envelope(), make_envelope()])

    assert (admission.accepted, admission.refused, admission.must_ring) == (2, None, True)
    assert ends.client.xlen(ends.keys.commands) == 2


def test_one_doorbell_is_pending_at_most_and_only_for_seconds(ends: SimpleNamespace):
    rings = [ends.queue.append([make_envelope()]).must_ring for _ in range(3)]

    assert rings == [True, False, False]
    assert 0 < ends.client.pttl(ends.keys.door) <= limits.DOORBELL_TTL_MS


def test_the_bytes_counted_are_those_that_lie_in_the_stream(ends: SimpleNamespace):
    ends.queue.append([make_envelope(b"x" * 500), make_envelope()])
    ends.queue.append([make_envelope(b"y" * 70)])

    stored = sum(len(fields[b"e"]) for _, fields in ends.client.xrange(ends.keys.commands))

    assert int(ends.client.get(ends.keys.bytes)) == stored


def mark_entries(ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKLOG_MAX_ENTRIES", 1)


def mark_bytes(ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKLOG_MAX_BYTES", int(ends.client.get(ends.keys.bytes)) + 1)


def mark_age(ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    age_ms = int(limits.BACKLOG_MAX_AGE_SECONDS * 1000)
    ends.client.set(ends.keys.oldest, ends.client.time()[0] * 1000 - age_ms - 1_000)


def mark_disk(ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends.queue, "_disk", SimpleNamespace(backlog_room_bytes=lambda: 0))


def mark_small_disk(ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends.queue, "_disk", SimpleNamespace(backlog_room_bytes=lambda: 10))


@pytest.mark.parametrize(
    ("reach", "name"),
    [
        (mark_entries, "entries"),
        (mark_bytes, "bytes"),
        (mark_age, "age"),
        (mark_disk, "disk"),
        (mark_small_disk, "disk"),
    ],
)
def test_at_each_mark_nothing_is_kept(
    ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, reach: Callable[..., None], name: str
):
    ends.queue.append([make_envelope()])
    reach(ends, monkeypatch)
    ends.client.delete(ends.keys.door)
    before = contents(ends)

    large = make_envelope(b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1))
    admission = ends.queue.append([make_envelope(), large])

    assert (admission.accepted, admission.refused, admission.must_ring) == (0, name, False)
    assert admission.retry_after_seconds > 0
    assert contents(ends) == before
    assert not ends.incoming._directory.exists() or list(ends.incoming._directory.iterdir()) == []


def test_the_prefix_that_fits_is_kept_and_nothing_behind_it(
    ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "BACKLOG_MAX_BYTES", 1_000)
    small, large, behind = make_envelope(), make_envelope(b"x" * 2_000), make_envelope()

    admission = ends.queue.append([small, large, behind])

    assert (admission.accepted, admission.refused, admission.must_ring) == (1, "bytes", True)
    assert [entry.envelope for entry in ends.reader.read(10, 0)] == [small]


def test_an_old_age_key_of_an_empty_stream_refuses_nothing(ends: SimpleNamespace):
    ends.client.set(ends.keys.oldest, 1)
    ends.client.set(ends.keys.bytes, limits.BACKLOG_MAX_BYTES)

    assert ends.queue.append([make_envelope()]).accepted == 1
    assert int(ends.client.get(ends.keys.bytes)) < 1_000
    assert int(ends.client.get(ends.keys.oldest)) > 1


def test_a_broker_that_forgot_the_script_is_taught_again(ends: SimpleNamespace):
    ends.client.script_flush()
    assert ends.queue.append([make_envelope()]).accepted == 1

    ends.client.script_flush()
    assert ends.queue.append([make_envelope()]).accepted == 1


def test_a_broker_out_of_memory_keeps_nothing(ends: SimpleNamespace):
    ends.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            ends.queue.append([make_envelope()])
    finally:
        ends.client.config_set("maxmemory", 0)
    assert ends.client.xlen(ends.keys.commands) == 0


def test_a_read_only_broker_keeps_nothing(ends: SimpleNamespace):
    ends.client.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(Unavailable):
            ends.queue.append([make_envelope()])
    finally:
        ends.client.execute_command("REPLICAOF", "NO", "ONE")
    assert ends.client.xlen(ends.keys.commands) == 0


def test_a_broker_busy_with_a_script_keeps_nothing(ends: SimpleNamespace, broker: Broker):
    ends.client.config_set("busy-reply-threshold", 1)
    with admission_client(broker.url) as other:
        thread = threading.Thread(target=_run_until_killed, args=(other,))
        thread.start()
        until(lambda: _is_busy(ends))
        try:
            with pytest.raises(Unavailable):
                ends.queue.append([make_envelope()])
        finally:
            ends.client.script_kill()
            thread.join()
            ends.client.config_set("busy-reply-threshold", 5000)
    assert ends.client.xlen(ends.keys.commands) == 0


def _run_until_killed(client: Redis) -> None:
    with pytest.raises(RedisError):
        client.eval("while true do end", 0)


def _is_busy(ends: SimpleNamespace) -> bool:
    try:
        ends.client.ping()
    except RedisError as error:
        return "BUSY" in str(error)
    return False


def test_a_broker_with_too_many_clients_keeps_nothing(ends: SimpleNamespace):
    ends.client.config_set("maxclients", 1)
    try:
        with pytest.raises(Unavailable):
            ends.queue.append([make_envelope()])
    finally:
        ends.client.config_set("maxclients", 1000)
    assert ends.client.xlen(ends.keys.commands) == 0


def test_a_key_of_the_wrong_kind_keeps_nothing_though_that_is_not_promised(ends: SimpleNamespace):
    ends.client.hset(ends.keys.oldest, "a", "b")

    with pytest.raises(OutcomeUnknown):
        ends.queue.append([make_envelope()])

    assert ends.client.xlen(ends.keys.commands) == 0


def test_appends_from_many_threads_are_all_kept_and_counted(ends: SimpleNamespace):
    def append_some() -> None:
        for _ in range(25):
            assert ends.queue.append([make_envelope(), make_envelope()]).accepted == 2

    threads = [threading.Thread(target=append_some) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    entries = ends.client.xrange(ends.keys.commands)
    assert len(entries) == 400
    assert int(ends.client.get(ends.keys.bytes)) == sum(len(fields[b"e"]) for _, fields in entries)


# --- the disk -----------------------------------------------------------------------------------


def gauge(
    data_dir: Path, free: int, total: int, clock: FakeClock | None = None, min_bytes: int = 0
) -> DiskGauge:
    settings = Settings(data_dir=data_dir, free_disk_min_bytes=min_bytes)
    return DiskGauge(settings, clock or FakeClock(), statvfs=disk_of(free, total))


@pytest.mark.parametrize(
    ("free", "total", "min_bytes", "room"),
    [
        (600 * MIB, 5 * GIB, 0, 20 * MIB),  # the floor is 500 MiB
        (2 * GIB, 20 * GIB, 0, GIB // 5),  # the floor is 5 %
        (500 * MIB, 5 * GIB, 0, 0),
        (400 * MIB, 5 * GIB, 0, 0),
        (400 * MIB, 5 * GIB, 300 * MIB, 20 * MIB),  # told otherwise
    ],
)
def test_the_backlog_may_hold_a_fifth_of_what_is_free_above_the_floor(
    tmp_path: Path, free: int, total: int, min_bytes: int, room: int
):
    assert gauge(tmp_path, free, total, min_bytes=min_bytes).backlog_room_bytes() == room


def test_what_the_log_of_the_database_holds_is_not_room(tmp_path: Path):
    wal = Settings(data_dir=tmp_path).database.with_name("memory.sqlite-wal")
    wal.parent.mkdir()
    with wal.open("wb") as file:
        file.truncate(50 * MIB)

    assert gauge(tmp_path, 600 * MIB, 5 * GIB).backlog_room_bytes() == 10 * MIB


def test_the_disk_is_measured_at_most_four_times_a_second(tmp_path: Path):
    asked = []
    clock = FakeClock()
    disk = DiskGauge(
        Settings(data_dir=tmp_path), clock, statvfs=lambda path: (asked.append(path), disk_of(GIB)(path))[1]
    )

    for _ in range(10):
        disk.backlog_room_bytes()
    clock.advance(limits.DISK_CACHE_SECONDS)
    disk.backlog_room_bytes()

    assert len(asked) == 2


def test_a_data_directory_that_is_gone_takes_nothing(tmp_path: Path):
    disk = DiskGauge(Settings(data_dir=tmp_path / "gone"), FakeClock())

    with pytest.raises(Unavailable):
        disk.backlog_room_bytes()
