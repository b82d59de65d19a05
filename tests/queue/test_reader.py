from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.errors import NotAlone
from tests.queue.broker import Broker, until
from tests.queue.conftest import make_envelope
from workers.queue.depth import backlog
from workers.queue.keys import Keys
from workers.queue.owner import claim_owner

TOKEN = "00ff"


def counters(ends: SimpleNamespace) -> tuple[int, int | None, bool]:
    value = ends.client.get(ends.keys.bytes)
    return (
        ends.client.xlen(ends.keys.commands),
        None if value is None else int(value),
        bool(ends.client.exists(ends.keys.oldest)),
    )


def read_all(ends: SimpleNamespace) -> list:
    return ends.reader.read(500, 0)


def test_what_is_appended_is_read_in_order_and_whole(ends: SimpleNamespace):
    sent = [
        make_envelope(b'{"text":"h\xc3\xa9"}', is_foreign=True),
        make_envelope(wants_reply=True, not_after=1_780_000_000_000_001),
    ]

    ends.queue.append(sent)

    assert [entry.envelope for entry in read_all(ends)] == sent


def test_deleting_the_last_entry_leaves_no_counter(ends: SimpleNamespace):
    ends.queue.append([make_envelope(), make_envelope()])

    assert ends.reader.delete(read_all(ends), 1, TOKEN) == 2

    assert counters(ends) == (0, None, False)
    assert read_all(ends) == []


def test_an_entry_deleted_twice_lowers_the_byte_counter_once(ends: SimpleNamespace):
    ends.queue.append([make_envelope(), make_envelope(), make_envelope()])
    first, second, third = read_all(ends)
    ends.reader.delete([first], 1, TOKEN)

    assert ends.reader.delete([first], 1, TOKEN) == 0

    assert counters(ends) == (2, second.size + third.size, True)


def test_the_age_key_follows_the_head(ends: SimpleNamespace):
    ends.queue.append([make_envelope()])
    time.sleep(0.002)  # the next entry's id has a later millisecond
    ends.queue.append([make_envelope()])
    first, second = read_all(ends)

    ends.reader.delete([first], 1, TOKEN)

    assert ends.client.get(ends.keys.oldest) == second.stream_id.split(b"-")[0]


def test_entries_not_deleted_are_read_again_only_after_the_tail_is_forgotten(ends: SimpleNamespace):
    sent = [make_envelope(), make_envelope()]
    ends.queue.append(sent)
    assert len(read_all(ends)) == 2
    assert read_all(ends) == []

    ends.reader.forget_tail()

    assert [entry.envelope for entry in read_all(ends)] == sent


def test_the_tail_is_kept_between_reads(ends: SimpleNamespace):
    sent = [make_envelope() for _ in range(5)]
    ends.queue.append(sent)

    parts = [ends.reader.read(2, 0) for _ in range(3)]

    assert [[e.envelope for e in part] for part in parts] == [sent[:2], sent[2:4], sent[4:]]


def test_entries_given_back_come_first_and_once(ends: SimpleNamespace):
    sent = [make_envelope() for _ in range(4)]
    ends.queue.append(sent)
    entries = ends.reader.read(3, 0)

    ends.reader.give_back(entries[1:])
    ends.reader.delete(entries[:1], 1, TOKEN)

    assert [e.envelope for e in ends.reader.read(2, 0)] == sent[1:3]
    assert [e.envelope for e in ends.reader.read(5, 0)] == sent[3:]


def test_a_forgotten_tail_is_fetched_anew_from_the_head(ends: SimpleNamespace):
    sent = [make_envelope(b"x" * limits.INLINE_COMMAND_MAX_BYTES) for _ in range(20)]
    ends.queue.append(sent)
    first = ends.reader.read(500, 0)
    assert len(first) < len(sent)

    ends.reader.forget_tail()

    assert [e.envelope for e in ends.reader.read(500, 0)] == [e.envelope for e in first]


def test_one_read_holds_at_most_four_mebibytes(ends: SimpleNamespace):
    body = b'"' + b"x" * (limits.INLINE_COMMAND_MAX_BYTES - 2) + b'"'
    sent = [make_envelope(body) for _ in range(40)]
    for envelope in sent:  # one by one: ten synced mebibytes are more than an append has time for
        ends.queue.append([envelope])

    batches = []
    while batch := ends.reader.read(500, 0):
        batches.append(batch)

    assert [e.envelope for batch in batches for e in batch] == sent
    assert max(sum(e.size for e in batch) for batch in batches) <= limits.BATCH_BYTES_MAX


def test_an_entry_that_cannot_be_read_holds_nothing_up(ends: SimpleNamespace):
    ends.client.xadd(ends.keys.commands, {"e": b"\xff\x00 not ours"})
    ends.client.xadd(ends.keys.commands, {"other": b"field"})
    envelope = make_envelope()
    ends.queue.append([envelope])

    broken, foreign, whole = read_all(ends)

    assert (broken.envelope, broken.raw) == (None, b"\xff\x00 not ours")
    assert foreign.envelope is None
    assert b"field" in foreign.raw
    assert whole.envelope == envelope
    assert ends.reader.delete([broken, foreign, whole], 1, TOKEN) == 3
    assert counters(ends) == (0, None, False)


def test_a_long_backlog_is_read_in_order_and_whole_whatever_lies_in_it(ends: SimpleNamespace):
    sent: list = [make_envelope(b'{"n":%d,"text":"h\xc3\xa9 \x00\xff"}' % number) for number in range(200)]
    strangers = {20: {"other": b"field"}, 21: {"e": b"not ours"}, 90: {"e": b"1", "f": b"2"}}
    large = make_envelope(b'"' + b"x" * limits.INLINE_COMMAND_MAX_BYTES + b'"')
    for number, envelope in enumerate(sent):
        if number in strangers:
            ends.client.xadd(ends.keys.commands, strangers[number])
        ends.queue.append([large, envelope] if number == 50 else [envelope])

    entries = []
    while batch := read_all(ends):
        entries += batch

    readable = [entry.envelope for entry in entries if entry.envelope is not None]
    ids = [tuple(map(int, entry.stream_id.split(b"-"))) for entry in entries]
    assert readable == [*sent[:50], large, *sent[50:]]
    assert ids == sorted(set(ids))
    assert [index for index, entry in enumerate(entries) if entry.envelope is None] == [20, 22, 93]
    assert sum(entry.size for entry in entries if entry.envelope) == counters(ends)[1]
    assert ends.reader.delete(entries, 1, TOKEN) == len(entries)
    assert counters(ends) == (0, None, False)


def test_a_backlog_is_read_from_a_broker_that_takes_nothing_more(ends: SimpleNamespace):
    sent = [make_envelope() for _ in range(100)]
    ends.queue.append(sent)
    ends.client.config_set("maxmemory", 1)
    try:
        entries = read_all(ends)
    finally:
        ends.client.config_set("maxmemory", 0)

    entries += read_all(ends)
    assert [entry.envelope for entry in entries] == sent


def test_a_stale_epoch_deletes_nothing(ends: SimpleNamespace):
    ends.queue.append([make_envelope()])
    entries = read_all(ends)
    claim_owner(ends.client, ends.keys, 7, TOKEN)

    with pytest.raises(NotAlone):
        ends.reader.delete(entries, 6, TOKEN)
    with pytest.raises(NotAlone):
        ends.reader.delete(entries, 7, "another")

    assert ends.client.xlen(ends.keys.commands) == 1
    assert ends.reader.delete(entries, 7, TOKEN) == 1


def test_a_higher_epoch_takes_the_stream_over(ends: SimpleNamespace):
    claim_owner(ends.client, ends.keys, 9, TOKEN)

    claim_owner(ends.client, ends.keys, 10, "another")

    with pytest.raises(NotAlone):
        claim_owner(ends.client, ends.keys, 9, TOKEN)
    claim_owner(ends.client, ends.keys, 10, "another")


def test_after_a_wipe_reading_counting_and_owning_go_on(ends: SimpleNamespace):
    claim_owner(ends.client, ends.keys, 3, TOKEN)
    ends.queue.append([make_envelope(), make_envelope()])
    entries = read_all(ends)
    ends.client.flushall()

    assert ends.reader.delete(entries, 3, TOKEN) == 0
    envelope = make_envelope()
    ends.queue.append([envelope])

    [entry] = ends.reader.read(10, 1000)
    assert entry.envelope == envelope
    assert counters(ends) == (1, entry.size, True)
    assert ends.client.get(ends.keys.owner) == b"3:00ff"
    assert ends.reader.delete([entry], 3, TOKEN) == 1
    assert counters(ends) == (0, None, False)


def test_after_a_wipe_entries_with_smaller_ids_are_read(ends: SimpleNamespace):
    ends.queue.append([make_envelope()])
    ends.reader.delete(read_all(ends), 1, TOKEN)
    ends.client.flushall()
    ends.client.xadd(ends.keys.commands, {"e": b"?"}, id="1-1")

    assert len(ends.reader.read(10, 0)) == 1


def test_two_installs_on_one_broker_never_mix(end_factory):
    ours, theirs = end_factory(Keys("aa")), end_factory(Keys("bb"))
    mine, other = make_envelope(), make_envelope()
    ours.queue.append([mine])
    theirs.queue.append([other])
    claim_owner(theirs.client, theirs.keys, 99, "another")

    [entry] = read_all(ours)
    ours.reader.delete([entry], 1, TOKEN)

    assert entry.envelope == mine
    assert [e.envelope for e in read_all(theirs)] == [other]
    assert counters(theirs)[0] == 1


def test_a_large_body_travels_beside_the_stream(ends: SimpleNamespace):
    envelope = make_envelope(b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1))
    ends.queue.append([envelope])
    [path] = list(ends.incoming._directory.iterdir())
    [(_, fields)] = ends.client.xrange(ends.keys.commands)

    [entry] = read_all(ends)

    assert entry.envelope == envelope
    assert len(fields[b"e"]) < 1000
    assert path.stat().st_mode & 0o777 == 0o600
    assert counters(ends)[1] == entry.size > limits.INLINE_COMMAND_MAX_BYTES
    ends.reader.delete([entry], 1, TOKEN)
    assert not path.exists()


def test_another_body_under_the_same_id_does_not_replace_the_first(ends: SimpleNamespace):
    size = limits.INLINE_COMMAND_MAX_BYTES + 1
    first = make_envelope(b"1" * size)
    second = make_envelope(b"2" * size, id=first.id)
    ends.queue.append([first])
    ends.queue.append([second])

    entries = read_all(ends)
    ends.reader.delete(entries[:1], 1, TOKEN)
    ends.reader.forget_tail()

    assert [e.envelope for e in entries] == [first, second]
    assert [e.envelope for e in read_all(ends)] == [second]


def test_a_large_body_that_vanished_is_set_aside_not_waited_for(ends: SimpleNamespace):
    ends.queue.append([make_envelope(b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1)), make_envelope()])
    for path in ends.incoming._directory.iterdir():
        path.unlink()

    lost, whole = read_all(ends)

    assert lost.envelope is None
    assert lost.raw
    assert whole.envelope is not None
    ends.reader.delete([lost, whole], 1, TOKEN)
    assert counters(ends) == (0, None, False)


def test_orphaned_bodies_are_swept_after_a_day_and_never_while_entries_wait(ends: SimpleNamespace):
    body = b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1)
    orphan = ends.incoming.put(make_envelope().id, body)
    fresh = ends.incoming.put(make_envelope().id, body)
    now = time.time()
    for name in (orphan.name,):
        os.utime(ends.incoming._directory / name, (now - 90_000, now - 90_000))
    ends.queue.append([make_envelope()])
    now_us = int(now * MICROSECONDS)

    assert ends.reader.sweep_incoming(now_us) == 0
    ends.reader.delete(read_all(ends), 1, TOKEN)

    assert ends.reader.sweep_incoming(now_us) == 1
    assert [path.name for path in ends.incoming._directory.iterdir()] == [fresh.name]


def test_the_backlog_is_told_in_entries_bytes_and_age(ends: SimpleNamespace):
    assert backlog(ends.client, ends.keys).entries == 0
    ends.queue.append([make_envelope()])
    seconds, microseconds = ends.client.time()
    ends.client.set(ends.keys.oldest, seconds * 1000 + microseconds // 1000 - 3_000)

    depth = backlog(ends.client, ends.keys)

    assert depth.entries == 1
    assert depth.bytes == counters(ends)[1]
    assert 3.0 <= depth.oldest_age_seconds < 4.0


def test_the_broker_writes_its_log_anew_only_while_nothing_waits(ends: SimpleNamespace, broker: Broker):
    def log_bytes() -> int:
        with os.scandir(broker.directory / "appendonlydir") as files:
            try:
                return sum(file.stat().st_size for file in files)
            except FileNotFoundError:  # the broker exchanges its files just now
                return 1 << 30

    ends.queue.append([make_envelope(b"x" * 200_000)])
    assert ends.reader.rewrite_log() is False
    ends.reader.delete(read_all(ends), 1, TOKEN)
    assert log_bytes() > 200_000

    assert ends.reader.rewrite_log() is True

    until(lambda: log_bytes() < 200_000)
