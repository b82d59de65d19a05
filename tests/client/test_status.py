"""`memoryd status` tells a person what they need; the details are in its JSON."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from client.checkup import _spool
from client.commands import status as module
from client.findings import Failed
from client.settings import load
from client.spool import Spool

WELL: dict[str, Any] = {
    "counts": {
        "pages_latest": 2,
        "pages_all": 5,
        "sessions": 1,
        "sessions_open": 0,
        "observations": 1_200,
        "handoffs_open": 0,
    },
    "scope": "default/alpha",
    "status": "ok",
    "health": {
        "version": "0.1.0",
        "url": "http://127.0.0.1:1",
        "port": 1,
        "data_dir": "/srv/m",
        "sqlite": "3.50.0",
        "broker": {"status": "ok", "version": "8.1", "is_embedded": True},
        "writer": {"status": "ok", "pid": 4, "silent_seconds": 0.1},
        "git": {"status": "ok", "state": "ok", "last_commit": "a" * 40, "pending_files": 0},
        "disk": {"backlog_room_bytes": 5_000_000_000},
        "wiki": {"status": "ok", "away": "", "files": 2, "pages": 2, "held": [], "troubles_in_all": 0},
        "models": {"state": "off", "provider": None},
    },
    "streams_active": ["pages_strict"],
    "files_pending": 0,
    "backlog": {"entries": 0, "bytes": 0, "oldest_age_seconds": 0.0},
    "last_event": "2031-05-01T12:00:00.000000Z",
}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MEMORYD_CLIENT_CONFIG", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Spool(str(tmp_path / "state/memoryd/spool"))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, state: Spool):
    def show(**health: Any) -> str:
        told = copy.deepcopy(WELL)
        told["health"] |= health
        told["status"] = "ok" if not health else "degraded"
        monkeypatch.setattr(module.Server, "tool", lambda *_args, **_given: told)
        return CliRunner().invoke(module.command, catch_exceptions=False).output

    return show


def test_a_server_that_is_well_says_so_in_a_few_lines(shown):
    text = shown()

    assert text.splitlines()[0] == "memoryd 0.1.0 at http://127.0.0.1:1: all is well"
    assert "default/alpha: 2 pages (5 versions), 1 session (0 open), 1,200 hook events" in text
    assert "2031-05-01 12:00:00 UTC" in text
    assert "no provider (none is needed)" in text
    assert len(text.splitlines()) < 14
    for internal in ("streams_active", "silent_seconds", "backlog_room_bytes", "pages_strict", "{", "None"):
        assert internal not in text


def test_what_is_wrong_is_named_with_its_reason(shown):
    held = {"project": "default/alpha", "folder": "f", "missing": 2, "pages": 3, "reason": "it is not there"}
    text = shown(
        broker={"status": "away", "reason": "connection refused"},
        writer={"status": "silent", "pid": 4, "silent_seconds": 61.2},
        wiki={"status": "held", "away": "the disk is gone", "held": [held], "files": 0, "pages": 3},
    )

    assert "something is wrong" in text
    assert "away; connection refused" in text
    assert "silent; silent for 61 s" in text
    assert "held; the disk is gone; 2 of 3 pages of default/alpha (it is not there)" in text


def test_files_that_are_passed_over_are_named(shown):
    text = shown(
        wiki={
            "status": "ok",
            "files": 3,
            "pages": 2,
            "broken": 1,
            "troubles": [{"file": "default/alpha/notes/a.md", "trouble": "it is not UTF-8 text"}],
            "troubles_in_all": 4,
            "strangers": {"default/copy": "it is a copy"},
        }
    )

    assert "default/alpha/notes/a.md: it is not UTF-8 text" in text
    assert "default/copy: it is a copy" in text
    assert "and 3 files more" in text


def test_events_of_this_machine_that_wait_for_long_are_told_with_what_to_do(shown, state: Spool):
    now = time.time_ns() // 1000
    state.add(query="q", body={}, now_us=now, seq=1)
    assert "all is well" in shown()
    state.add(query="q", body={}, now_us=now - 600_000_000, seq=1)

    text = shown()

    assert "something is wrong" in text
    assert "2 events of this machine not delivered, the oldest for 10 min: memoryd hook --drain" in text
    with pytest.raises(Failed, match=r"2 waiting, the oldest for 10 min.*hook --drain"):
        _spool(load())
