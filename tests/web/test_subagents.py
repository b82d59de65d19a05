"""What subagents say is left out where a client asks for it, and nothing else is."""

from __future__ import annotations

from typing import Any

from web.subagents import Subagents

ASKED = {"drop_subagent": "on"}


def dropped(known: Subagents, query: dict[str, str] = ASKED, who: str = "ada", **payload: Any) -> bool:
    return known.drops(who, query, payload)


def test_an_event_with_an_agents_id_is_left_out_and_its_parents_next_one_is_not():
    known = Subagents()

    assert dropped(known, session_id="s", agent_id="a1", agent_type="Explore")
    assert dropped(known, session_id="s", agent_id="a1", hook_event_name="SubagentStop")
    assert not dropped(known, session_id="s", prompt="go on")


def test_nothing_is_left_out_without_being_asked_for():
    assert not dropped(Subagents(), {}, session_id="s", agent_id="a1")
    assert not dropped(Subagents(), {"drop_subagent": "0"}, session_id="s", agent_id="a1")


def test_a_whole_session_that_runs_as_an_agent_is_kept():
    assert not dropped(Subagents(), session_id="s", agent_type="reviewer", prompt="go")


def test_a_session_of_a_subagent_is_left_out_until_it_ends():
    known = Subagents()

    assert dropped(known, session_id="child", parent_session_id="s", hook_event_name="SessionStart")
    assert dropped(known, session_id="child", hook_event_name="Stop")
    assert not dropped(known, session_id="s", hook_event_name="Stop")
    assert dropped(known, session_id="child", hook_event_name="SessionEnd")
    assert not dropped(known, session_id="child", hook_event_name="SessionStart")


def test_a_session_that_its_parent_announced_is_left_out():
    known = Subagents()

    assert dropped(known, conversation_id="s", hook_event_name="subagentStart", subagent_id="child")
    assert dropped(known, conversation_id="child", hook_event_name="postToolUse")
    assert not dropped(known, who="bob", conversation_id="child", hook_event_name="postToolUse")
    assert not dropped(known, conversation_id="s", parent_conversation_id="s", hook_event_name="stop")


def test_what_is_remembered_is_bounded_and_the_longest_silent_goes_first():
    known = Subagents(limit=2)
    for child in ("a", "b"):
        dropped(known, session_id=child, parent_session_id="s")
    assert dropped(known, session_id="a")
    dropped(known, session_id="c", parent_session_id="s")

    assert dropped(known, session_id="a")
    assert not dropped(known, session_id="b")
