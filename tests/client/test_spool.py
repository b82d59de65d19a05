"""An entry of the spool is whole or absent, private, in order, and never lost in silence."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import pytest

from client.spool import Spool, mint_key
from memory_core import limits
from tests.client.conftest import NOW_US


def files(spool: Spool) -> list[str]:
    return sorted(path.name for path in Path(spool.directory).iterdir())


def test_an_entry_comes_back_as_it_was_put(spool: Spool):
    added = spool.add(query="event=Stop", body={"text": "Café 🙏"}, now_us=NOW_US, seq=7)
    entry = spool.read(added.name)

    assert entry is not None
    assert (entry.query, entry.body, entry.tries) == ("event=Stop", {"text": "Café 🙏"}, 0)
    assert entry.name == f"1780000000000-{os.getpid()}-7.json"
    assert entry.url == f"/hook?event=Stop&ingest_key={added.key}"


def test_only_the_owner_may_read_the_spool(spool: Spool):
    entry = spool.add(query="q", body={}, now_us=NOW_US, seq=1)

    assert Path(spool.directory).stat().st_mode & 0o777 == 0o700
    assert Path(spool.directory, entry.name).stat().st_mode & 0o777 == 0o600


def test_keys_are_uuids_that_say_when_they_were_minted():
    keys = [mint_key(NOW_US) for _ in range(1000)]

    assert len(set(keys)) == 1000
    assert {uuid.UUID(key).version for key in keys} == {7}
    assert {uuid.UUID(key).variant for key in keys} == {uuid.RFC_4122}
    assert {int(key[:12], 16) for key in keys} == {NOW_US // 1000}


def test_entries_are_listed_in_the_order_of_their_making(spool: Spool):
    added = [spool.add(query=str(n), body={}, now_us=NOW_US, seq=n) for n in (1, 2, 15, 16, 300)]
    added.append(spool.add(query="later", body={}, now_us=NOW_US + 1000, seq=1))

    assert spool.names() == [entry.name for entry in added]


def test_a_name_that_is_taken_is_passed_over(spool: Spool):
    first = spool.add(query="a", body={}, now_us=NOW_US, seq=1)
    second = spool.add(query="b", body={}, now_us=NOW_US, seq=1)

    assert first.name != second.name
    assert len(spool.names()) == 2


def test_a_crash_before_the_rename_leaves_no_entry(spool: Spool, monkeypatch: pytest.MonkeyPatch):
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            spool.add(query="event=Stop", body={"n": 1}, now_us=NOW_US, seq=1)

    assert spool.names() == []
    assert len(files(spool)) == 1


def test_what_such_a_crash_left_is_taken_in_later_with_its_key(spool: Spool):
    entry = spool.add(query="event=Stop", body={"n": 1}, now_us=NOW_US, seq=1)
    left = Path(spool.directory, f".{entry.name}.tmp")
    Path(spool.directory, entry.name).rename(left)
    os.utime(left, (NOW_US / 1e6, NOW_US / 1e6))

    assert spool.take_orphans(NOW_US + 1_000_000) == []  # its shim may still be at work
    assert spool.take_orphans(NOW_US + (limits.SPOOL_ORPHAN_SECONDS + 1) * 1_000_000) == [entry.name]
    taken = spool.read(entry.name)
    assert taken is not None
    assert taken.key == entry.key


def test_a_torn_file_is_dropped(spool: Spool):
    entry = spool.add(query="event=Stop", body={"n": 1}, now_us=NOW_US, seq=1)
    path = Path(spool.directory, entry.name)
    torn = Path(spool.directory, f".{entry.name}.tmp")
    torn.write_bytes(path.read_bytes()[:-5])
    path.unlink()
    os.utime(torn, (0, 0))

    assert spool.take_orphans(NOW_US) == []
    assert files(spool) == []


def test_a_full_disk_is_said_and_leaves_nothing(spool: Spool, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool.add(query="q", body={}, now_us=NOW_US, seq=1)

    assert files(spool) == []


def test_a_try_is_counted_and_the_key_stays(spool: Spool):
    entry = spool.add(query="q", body={}, now_us=NOW_US, seq=1)
    spool.count_try(entry)
    again = spool.read(entry.name)

    assert again is not None
    assert (again.tries, again.key, again.created_ms) == (1, entry.key, entry.created_ms)


def test_too_many_entries_push_out_the_oldest(spool: Spool):
    added = [spool.add(query="q", body={}, now_us=NOW_US + n * 1000, seq=n) for n in range(5)]

    assert spool.evict(NOW_US, files_max=3) == [entry.name for entry in added[:2]]
    assert spool.names() == [entry.name for entry in added[2:]]


def test_an_entry_is_kept_for_seven_days(spool: Spool):
    entry = spool.add(query="q", body={}, now_us=NOW_US, seq=1)
    week_us = limits.SPOOL_DAYS * 86_400_000_000

    assert spool.evict(NOW_US + week_us) == []
    assert spool.evict(NOW_US + week_us + 1000) == [entry.name]


def test_a_rejected_entry_lies_aside_with_its_reason(spool: Spool):
    entry = spool.add(query="q", body={"a": 1}, now_us=NOW_US, seq=1)
    spool.reject(entry.name, "no session id")

    assert spool.names() == []
    assert spool.rejected() == [entry.name]
    aside = Path(spool.directory, "rejected")
    assert json.loads((aside / entry.name).read_text())["body"] == {"a": 1}
    assert (aside / f"{entry.name}.reason").read_text() == "no session id\n"


def test_a_file_that_is_no_entry_is_set_aside(spool: Spool):
    spool.add(query="q", body={}, now_us=NOW_US, seq=1)
    Path(spool.directory, "1780000000000-1-1.json").write_text("{}")

    assert spool.read("1780000000000-1-1.json") is None
    assert spool.rejected() == ["1780000000000-1-1.json"]


def test_a_refused_entry_goes_back_with_its_key_and_without_its_tries(spool: Spool):
    entry = spool.add(query="agent=x", body={"a": 1}, now_us=NOW_US, seq=0)
    spool.count_try(entry)
    spool.reject(entry.name, "because")

    spool.take_back(entry.name)

    back = spool.read(entry.name)
    assert back is not None
    assert (back.key, back.body, back.tries) == (entry.key, {"a": 1}, 0)
    assert spool.rejected() == []
    assert spool.reason(entry.name) == ""


def test_a_torn_file_that_lies_aside_cannot_go_back(spool: Spool):
    entry = spool.add(query="agent=x", body={}, now_us=NOW_US, seq=0)
    Path(spool.directory, entry.name).write_bytes(b"{")
    assert spool.read(entry.name) is None

    with pytest.raises(ValueError, match="only be discarded"):
        spool.take_back(entry.name)
    spool.discard(entry.name)

    assert spool.rejected() == []
