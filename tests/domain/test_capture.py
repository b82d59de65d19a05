"""Caps, titles and what makes two deliveries one event."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.capture import capped, cut_bytes, twin_hash
from memory_core.domain.event import EventKind, Outcome, Speaker, ToolCall
from tests.factories import bash, event, said, started, used_tool

LONG = "ä€🙂" * 20_000


@pytest.mark.parametrize(
    ("kind", "max_bytes"),
    [
        (EventKind.USER_PROMPT, 16_384),
        (EventKind.POST_COMPACTION, 16_384),
        (EventKind.STOP, 16_384),
        (EventKind.NOTIFICATION, 2_000),
        (EventKind.OTHER, 2_000),
        (EventKind.SESSION_START, 0),
        (EventKind.SESSION_END, 0),
        (EventKind.PRE_COMPACT, 0),
    ],
)
def test_each_kind_has_its_cap(kind: EventKind, max_bytes: int):
    body = capped(event(kind=kind, body=LONG)).body

    assert max_bytes - 8 <= len(body.encode()) <= max_bytes or max_bytes == 0 == len(body)


def test_a_tool_event_is_capped_field_by_field():
    tool = ToolCall(
        name="T" * 500,
        family="file",
        command=LONG,
        paths=tuple(f"/srv/{n}" for n in range(100)),
        result=LONG,
        call_id="c" * 500,
    )

    kept = capped(used_tool(tool)).tool

    assert kept is not None
    assert len((kept.command or "").encode()) <= limits.TOOL_COMMAND_MAX_BYTES
    assert len((kept.result or "").encode()) <= limits.TOOL_OUTCOME_MAX_BYTES
    assert len(kept.paths) == limits.TOOL_PATHS_MAX
    assert (len(kept.name), len(kept.call_id or "")) == (128, 256)


def test_no_path_is_cut_into_another_one():
    paths = ("/a/" + "x" * 5_000, "/b")

    kept = capped(used_tool(ToolCall(name="Write", paths=paths))).tool

    assert kept is not None
    assert kept.paths == ()
    assert capped(event(cwd="/a/" + "x" * 5_000)).cwd is None


@pytest.mark.parametrize(
    ("what", "title"),
    [
        (event(body="\n  first   line\nsecond"), "first line"),
        (event(body="x" * 200), "x" * 79 + "…"),
        (event(body=""), "user-prompt"),
        (event(title="of the adapter", body="text"), "of the adapter"),
        (started(model="opus"), "opus"),
        (started(), "session-start"),
        (said("Done.\nMore"), "Done."),
        (event(kind=EventKind.POST_COMPACTION, body="What happened"), "What happened"),
        (used_tool(bash("pytest -q\nls")), "Bash: pytest -q"),
        (used_tool(replace(bash("make"), outcome=Outcome.ERROR)), "Bash: make (error)"),
        (used_tool(ToolCall(name="Edit", paths=("/a.py",))), "Edit: /a.py"),
    ],
)
def test_titles(what, title: str):
    assert capped(what).title == title


@given(st.text(alphabet=st.characters()), st.integers(min_value=0, max_value=40))
def test_a_cut_is_within_its_bytes_and_whole_characters(text: str, max_bytes: int):
    kept = cut_bytes(text, max_bytes)

    assert len(kept.encode()) <= max_bytes
    assert "\x00" not in kept
    whole = text.replace("\x00", "�").encode("utf-8", "replace").decode()
    assert kept == whole or (kept.rstrip("…") == "" or whole.startswith(kept[:-1]))


@given(st.text(), st.sampled_from(list(EventKind)), st.text(max_size=600))
def test_capping_twice_changes_nothing(body: str, kind: EventKind, key: str):
    once = capped(event(body=body * 500, kind=kind, session_key=key, title=body))

    assert capped(once) == once


def test_lone_surrogates_do_not_pass():
    kept = capped(event(body="a\ud800b", cwd="/x\ud800", session_key="\ud800"))

    (kept.body + (kept.cwd or "") + kept.session_key).encode()


def test_twins_agree_whatever_the_time_and_differ_in_what_was_said():
    one = event(body="continue", occurred_at=1)

    assert twin_hash(one) == twin_hash(replace(one, occurred_at=2))
    for other in (
        replace(one, body="go on"),
        replace(one, unique_id="p1"),
        replace(one, agent_id="a"),
        replace(one, kind=EventKind.STOP),
        replace(one, session_key="s2"),
    ):
        assert twin_hash(one) != twin_hash(other)
    assert twin_hash(replace(one, title="ab", body="c")) != twin_hash(replace(one, title="a", body="bc"))


def test_tools_with_other_results_are_no_twins():
    assert twin_hash(used_tool(bash("ls", "a"))) != twin_hash(used_tool(bash("ls", "b")))


@pytest.mark.parametrize(
    ("what", "is_boundary"),
    [
        (started(), True),
        (event(kind=EventKind.NOTIFICATION, speaker=Speaker.SYSTEM), True),
        (event(kind=EventKind.SESSION_END), True),
        (said(" "), True),
        (said("text"), False),
        (event(), False),
        (used_tool(), False),
    ],
)
def test_boundaries(what, is_boundary: bool):
    assert capped(what).is_boundary is is_boundary
