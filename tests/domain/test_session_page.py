"""What a session leaves behind: a page and an automatic handoff, as pure text."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.session_page import Observed, SessionFacts, automatic_draft, build, path_of

NOW = 1_780_000_000_000_000
FACTS = SessionFacts(id=bytes(range(16)), agent="codex", started_at=NOW, observation_count=3)


def prompt(text: str, **overrides) -> Observed:
    values = {"kind": EventKind.USER_PROMPT, "title": text.splitlines()[0][:80], "at": NOW, "body": text}
    return Observed(**values | overrides)


def answer(text: str) -> Observed:
    return prompt(text, kind=EventKind.STOP)


def tool(command: str, outcome: Outcome = Outcome.SUCCESS, **overrides) -> Observed:
    values = {
        "kind": EventKind.POST_TOOL_USE,
        "title": f"Bash: {command}",
        "at": NOW,
        "tool": "Bash",
        "tool_family": "non-file",
        "command": command,
        "outcome": outcome,
    }
    return Observed(**values | overrides)


def edited(*paths: str, name: str = "Edit") -> Observed:
    return replace(tool(""), tool=name, tool_family="file", command=None, paths=paths)


def test_the_same_events_give_the_same_page():
    events = [prompt("Fix it\nplease"), tool("ls"), answer("Fixed.")]

    assert build(FACTS, events) == build(FACTS, list(events))


def test_the_first_prompt_of_the_person_is_the_title():
    events = [prompt("of a helper", agent_id="a1"), prompt("of the person"), prompt("later")]

    page = build(FACTS, events)

    assert page.title == "of the person"
    assert page.body.startswith("# of the person\n")
    assert "1. of the person\n2. later" in page.body


@pytest.mark.parametrize(
    ("title", "path"),
    [
        ("Fix the uploader!", "sessions/2026-05-28-fix-the-uploader-0c0d0e0f.md"),
        ("../../etc/passwd", "sessions/2026-05-28-etc-passwd-0c0d0e0f.md"),
        ("Почини загрузку", "sessions/2026-05-28-почини-загрузку-0c0d0e0f.md"),
        ("🙂", "sessions/2026-05-28-session-0c0d0e0f.md"),
    ],
)
def test_paths_are_readable_and_stay_in_their_folder(title: str, path: str):
    assert path_of(FACTS, title) == path


def test_sessions_of_one_minute_with_one_title_have_two_paths():
    other = replace(FACTS, id=FACTS.id[:8] + os.urandom(8))

    assert path_of(FACTS, "x") != path_of(other, "x")


def test_captured_text_makes_no_links_comments_fences_or_headings():
    evil = "[[secrets]] <!-- x -->\n# Heading\n---\n" + recalled.fence("a", "b")

    body = build(FACTS, [prompt(evil)]).body

    assert "[[" not in body
    assert "<!--" not in body
    assert recalled.strip(body) == body
    assert sum(line.startswith("# ") for line in body.splitlines()) == 1


def test_tool_calls_are_counted_with_their_failures():
    events = [tool("a"), tool("b", Outcome.ERROR), edited("/x.py")]

    assert "- Bash: 2 (1 failed)\n- Edit: 1" in build(FACTS, events).body


def test_an_automatic_handoff_tells_first_and_last_prompt_and_the_last_answer():
    draft = automatic_draft(FACTS, [prompt("first"), answer("a1"), prompt("last"), answer("a2")])

    assert draft.summary == "Began with: first\n\nLast prompt: last\n\nLast answer: a2"
    assert draft.open_questions == ("Continue from: last",)
    assert automatic_draft(FACTS, [prompt("only")]).summary == "Focused on: only"


def test_it_names_changed_files_and_what_still_fails():
    events = [
        edited("/a.py"),
        edited("/b.py", "/a.py", name="apply_patch"),
        edited("/read.py", name="Read"),
        tool("make", Outcome.ERROR),
        tool("pytest", Outcome.ERROR),
        tool("make"),
    ]

    draft = automatic_draft(FACTS, events)

    assert draft.files_touched == ("/b.py", "/a.py")
    assert draft.next_steps == ("Failed at last: pytest",)


def test_a_session_without_prompts_still_says_what_it_was():
    draft = automatic_draft(FACTS, [tool("terraform plan")])

    assert "terraform plan" in draft.summary


def test_a_page_that_would_be_too_long_has_shorter_texts_and_says_so():
    prompts = [prompt(f"{number} " + "漢" * 2_000) for number in range(256)]

    page = build(replace(FACTS, observation_count=256), prompts)

    assert len(page.body.encode()) <= limits.SESSION_PAGE_MAX_BYTES
    assert "Shortened, because a page has its limit: here texts are cut to 120 characters." in page.body
    assert "\n1. 0 漢" in page.body
    assert "\n256. 255 漢" in page.body
    assert "Shortened" not in build(FACTS, prompts[:5]).body


def test_of_too_much_the_first_prompt_and_what_came_last_stay():
    prompts = [prompt(f"p{number}") for number in range(100)]

    body = build(FACTS, prompts, max_bytes=3_000).body

    assert "cut to 120 characters and its lists to 16 lines." in body
    assert [line for line in body.splitlines() if line[:1].isdigit()] == [
        "1. p0",
        *(f"{number + 1}. p{number}" for number in range(85, 100)),
    ]
    assert body.count("user-prompt @") == 16
    assert len(body.encode()) <= 3_000


@given(
    st.lists(st.tuples(st.sampled_from("pate"), st.text(max_size=200)), max_size=30),
    st.integers(200, 3_000),
    st.text(max_size=300),
)
def test_a_page_is_never_longer_than_it_may_be(told: list[tuple[str, str]], max_bytes: int, cwd: str):
    made = {"p": lambda t: prompt(t or "?", title=t), "a": lambda t: answer(t or "?"), "t": tool, "e": edited}
    events = [made[kind](text) for kind, text in told]

    body = build(replace(FACTS, cwd=cwd), events, max_bytes=max_bytes).body

    assert len(body.encode()) <= max_bytes
    assert "[[" not in body
