"""Plain fields become events, and what cannot be read is named."""

from __future__ import annotations

import pytest

from memory_core.agents.generic import read
from memory_core.domain.event import EventKind, Outcome, Speaker
from memory_core.errors import Invalid


def event(**fields: object):
    return read({"session_id": "chat-1", **fields}, {})


@pytest.mark.parametrize(
    ("speaker", "kind"),
    [
        ("user", EventKind.USER_PROMPT),
        ("agent", EventKind.STOP),
        ("assistant", EventKind.STOP),
        ("system", EventKind.NOTIFICATION),
    ],
)
def test_a_speaker_is_enough(speaker: str, kind: EventKind):
    said = event(speaker=speaker, text="hello\nworld")

    assert (said.kind, said.title, said.body) == (kind, "hello", "hello\nworld")


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_can_be_said(kind: EventKind):
    assert event(event=kind.value, text="x", tool={"name": "Bash"}).kind is kind


@pytest.mark.parametrize(
    "time",
    [
        "2026-05-28T20:26:40Z",
        "2026-05-28T22:26:40+02:00",
        1_780_000_000_000,
        "1780000000000",
        1_780_000_000_000_000,
    ],
)
def test_a_time_is_read_in_each_form(time: object):
    assert event(speaker="user", occurred_at=time).occurred_at == 1_780_000_000_000_000


def test_a_tool_call_is_taken_as_given():
    call = {
        "name": "Bash",
        "call_id": "c1",
        "command": "ls",
        "paths": ["a"],
        "outcome": "error",
        "result": [{"text": "no"}],
    }
    ran = event(event="post-tool-use", tool=call)

    assert ran.speaker is Speaker.TOOL
    assert ran.unique_id == "c1"
    assert ran.tool is not None
    assert (ran.tool.command, ran.tool.paths, ran.tool.outcome, ran.tool.result) == (
        "ls",
        ("a",),
        Outcome.ERROR,
        "no",
    )


def test_an_extension_may_have_its_own_events():
    said = read({"session_id": "s", "event": "deployed", "text": "v2"}, {"extension": "ci"})

    assert (said.kind, said.source_event, said.extension) == (EventKind.OTHER, "deployed", "ci")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"text": "x"}, "`event` or `speaker`"),
        ({"event": "dance"}, "unknown event 'dance'"),
        ({"speaker": "robot"}, "unknown speaker"),
        ({"speaker": "user", "txt": "x"}, "unknown field 'txt'"),
        ({"speaker": "user", "title": 3}, "`title` is text"),
        ({"speaker": "user", "occurred_at": "yesterday"}, "occurred_at"),
        ({"speaker": "user", "occurred_at": "2026-05-28T20:26:40"}, "offset"),
        ({"speaker": "user", "occurred_at": 12}, "milliseconds"),
        ({"speaker": "user", "occurred_at": True}, "occurred_at"),
        ({"speaker": "user", "occurred_at": float("nan")}, "milliseconds"),
        ({"event": "post-tool-use"}, "`tool`"),
        ({"event": "post-tool-use", "tool": {"name": "x", "outcome": "meh"}}, "unknown outcome"),
        ({"event": "post-tool-use", "tool": {"name": "x", "paths": "a"}}, "list of texts"),
        ({"event": "post-tool-use", "tool": {"name": "x", "cmd": "a"}}, "unknown field of tool"),
    ],
)
def test_what_cannot_be_read_is_named(fields: dict[str, object], named: str):
    with pytest.raises(Invalid, match=named):
        event(**fields)
