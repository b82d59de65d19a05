"""`memoryd spool`: what a person sees of events that wait or were refused, and does with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client import detached
from client.commands.spool import command
from client.settings import load
from client.spool import Spool
from tests.client.conftest import NOW_US


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """URLs for which a drain was started; none is, in this process."""
    urls: list[str] = []
    monkeypatch.setattr(detached, "start", lambda settings: urls.append(settings.url))
    return urls


@pytest.fixture
def spool(home: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_STATE_HOME", "MEMORYD_CLIENT_CONFIG", "XDG_CONFIG_HOME", "MEMORYD_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return Spool(load().spool_dir)


def refused(spool: Spool, seq: int = 0) -> str:
    entry = spool.add(query="agent=x", body={"prompt": "never shown"}, now_us=NOW_US, seq=seq)
    spool.reject(entry.name, "the server calls it invalid: no session")
    return entry.name


def run(*words: str, said: str = "") -> Result:
    return CliRunner().invoke(command, list(words), input=said)


def test_the_list_names_what_waits_and_what_was_refused_and_why_but_no_content(spool: Spool):
    gone, waits = refused(spool), spool.add(query="agent=x", body={}, now_us=NOW_US, seq=9).name

    told = json.loads(run("list", "--json").output)

    assert [(e["name"], e["state"]) for e in told["entries"]] == [(waits, "waiting"), (gone, "refused")]
    assert told["entries"][1]["reason"] == "the server calls it invalid: no session"
    assert "never shown" not in run("list").output


def test_a_retry_puts_back_what_was_named_and_has_it_sent(spool: Spool, started: list[str]):
    first, second = refused(spool, 0), refused(spool, 1)

    assert run("retry", first).exit_code == 0

    assert (spool.names(), spool.rejected()) == ([first], [second])
    assert started == [load().url]


def test_a_retry_of_what_is_no_entry_says_so_and_sends_what_is_one(spool: Spool, started: list[str]):
    first, torn = refused(spool, 0), refused(spool, 1)
    Path(spool.directory, "rejected", torn).write_bytes(b"{")

    told = run("retry", first, torn)

    assert (told.exit_code, "can only be discarded" in told.output) == (1, True)
    assert (spool.names(), len(started)) == ([first], 1)


def test_a_retry_of_nothing_starts_nothing(spool: Spool, started: list[str]):
    assert run("retry", "--all").exit_code == 0
    assert started == []


def test_discarding_asks_and_a_no_keeps_everything(spool: Spool):
    name = refused(spool)

    assert run("discard", "--all", said="n\n").exit_code == 1
    assert spool.rejected() == [name]
    assert run("discard", "--all", said="y\n").exit_code == 0
    assert spool.rejected() == []


@pytest.mark.parametrize("words", [("retry",), ("discard", "--all", "x.json"), ("retry", "unknown.json")])
def test_what_is_not_named_rightly_is_refused_with_a_hint(spool: Spool, words: tuple[str, ...]):
    refused(spool)

    told = run(*words)

    assert told.exit_code == 2
    assert "memoryd spool list" in told.output


def test_a_question_that_nobody_can_answer_says_how_to_go_on(spool: Spool):
    name = refused(spool)

    told = run("discard", "--all")

    assert told.exit_code == 2
    assert "--yes" in told.output
    assert spool.rejected() == [name]
