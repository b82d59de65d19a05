"""A broker that somebody else runs is accepted only when it keeps what a 202 promises."""

from __future__ import annotations

import socket

import pytest

from memory_core.errors import Invalid, Unavailable
from tests.stack.conftest import ForeignStart
from workers.broker_check import check_broker, without_password

pytestmark = pytest.mark.stack


def test_a_sound_broker_is_accepted(start_foreign_broker: ForeignStart) -> None:
    assert check_broker(start_foreign_broker()).promises_void == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "no"), ("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")],
)
def test_each_wrong_setting_is_named_in_the_refusal(
    name: str, value: str, start_foreign_broker: ForeignStart
) -> None:
    url = start_foreign_broker(**{name: value})

    with pytest.raises(Invalid, match=f"{name} is '{value}'"):
        check_broker(url)


def test_a_weaker_durability_is_accepted_when_told_and_says_what_is_void(
    start_foreign_broker: ForeignStart,
) -> None:
    report = check_broker(start_foreign_broker(appendfsync="everysec"), accept_weaker_durability=True)

    assert report.promises_void == [
        "an accepted event survives a power cut of the broker's machine (appendfsync is 'everysec')"
    ]


def test_a_broker_that_hides_its_settings_is_not_trusted_blindly(start_foreign_broker: ForeignStart) -> None:
    url = start_foreign_broker("--user", *["default", "on", "nopass", "~*", "&*", "+@all", "-config"])

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
