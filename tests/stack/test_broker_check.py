"""A broker that somebody else runs is accepted only when it keeps what a 202 promises."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_core.errors import Invalid, Unavailable
from tests.stack.conftest import wait_until
from workers import broker
from workers.broker_check import check_broker, without_password

pytestmark = pytest.mark.stack

_SOUND = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}

Started = Callable[..., str]


@pytest.fixture
def foreign_broker(tmp_path: Path) -> Iterator[Started]:
    """Starts a broker with given settings on a loopback port; gives its address."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*more: str, **options: str) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        given = {**_SOUND, **{name.replace("_", "-"): value for name, value in options.items()}}
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        place = ["--dir", str(tmp_path), "--port", str(port), "--bind", "127.0.0.1"]
        started.append(
            subprocess.Popen([str(broker.binary()), *place, *words, *more], stdout=subprocess.DEVNULL)
        )
        wait_until(lambda: broker.answers(broker.Endpoint(port=port)))
        return f"redis://127.0.0.1:{port}/0"

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_sound_broker_is_accepted(foreign_broker: Started) -> None:
    assert check_broker(foreign_broker()).promises_void == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "no"), ("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")],
)
def test_each_wrong_setting_is_named_in_the_refusal(name: str, value: str, foreign_broker: Started) -> None:
    url = foreign_broker(**{name: value})

    with pytest.raises(Invalid, match=f"{name} is '{value}'"):
        check_broker(url)


def test_a_weaker_durability_is_accepted_when_told_and_says_what_is_void(foreign_broker: Started) -> None:
    report = check_broker(foreign_broker(appendfsync="everysec"), accept_weaker_durability=True)

    assert report.promises_void == [
        "an accepted event survives a power cut of the broker's machine (appendfsync is 'everysec')"
    ]


def test_a_broker_that_hides_its_settings_is_not_trusted_blindly(foreign_broker: Started) -> None:
    url = foreign_broker("--user", *["default", "on", "nopass", "~*", "&*", "+@all", "-config"])

    with pytest.raises(Invalid, match="appendfsync is 'not told'") as refusal:
        check_broker(url)

    assert "appendonly" not in str(refusal.value)
    assert "maxmemory-policy" not in str(refusal.value)


def test_a_broker_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"redis://:hush@127.0.0.1:{probe.getsockname()[1]}/0"
        with pytest.raises(Unavailable) as refusal:
            check_broker(url)
    assert "hush" not in str(refusal.value)


def test_a_password_is_not_shown() -> None:
    assert without_password("redis://me:hush@host:1/0") == "redis://host:1/0"
