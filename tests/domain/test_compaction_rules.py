"""A summary by rule: what a person would want kept is in it, and it is bounded whatever was said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.compaction_rules import MADE_BY_RULE, paths_in, room_bytes, summarise
from memory_core.domain.excerpt import Excerpt, Voice
from tests.domain.transcripts import answer, call, message, prompt, read, result


def section(text: str, title: str) -> list[str]:
    """The lines of a section; empty where there is none."""
    _, found, rest = text.partition(f"## {title}\n\n")
    return rest.partition("\n\n## ")[0].splitlines() if found else []


def told(*excerpts: Excerpt) -> str:
    return summarise(excerpts, limits.SUMMARY_BY_RULE_MAX_BYTES)


def test_it_says_that_it_was_made_by_rule():
    assert told(prompt("Go")).startswith(MADE_BY_RULE)


def test_prompts_are_told_with_what_came_of_them():
    text = told(
        prompt("Add a retry to the uploader\nwith details"),
        answer("Looking at it."),
        answer("Added three tries.\n\nMore words."),
        prompt("Thanks"),
    )

    assert section(text, "Asked and done") == [
        "- Add a retry to the uploader → Added three tries.",
        "- Thanks",
    ]


def test_decisions_and_constraints_are_kept_and_chatter_is_not():
    text = told(
        prompt("Never commit to main directly. How are you?"),
        answer(
            "I looked around. We decided to use SQLite instead of Postgres.\n\n- **Decision:** retries stop after three.\n"
            "```\nwe decided to print this\n```\n"
        ),
    )

    assert section(text, "Decisions and constraints") == [
        "- asked: Never commit to main directly.",
        "- We decided to use SQLite instead of Postgres.",
        "- Decision: retries stop after three.",
    ]


def test_what_is_open_is_told():
    text = told(
        prompt("Go on"),
        answer("Should I have asked this?"),
        prompt("No."),
        answer("TODO: the macOS build.\n\nShall I delete the old table?"),
        result("FAILED tests/x.py", about="pytest tests/x.py", is_error=True),
    )

    assert section(text, "Open") == [
        "- failed at last: bash (pytest tests/x.py)",
        "- TODO: the macOS build.",
        "- Shall I delete the old table?",
    ]


def test_a_command_that_failed_and_then_went_well_is_not_open():
    text = told(
        result("1 failed", about="pytest", is_error=True),
        result("12 passed in 0.4s", about="pytest"),
    )

    assert section(text, "Open") == []
    assert section(text, "Tool results") == ["- bash (pytest): 12 passed in 0.4s"]


def test_tool_results_that_say_something_are_told_by_their_line():
    text = told(
        result("[main 1234abc] Add a retry\n 1 file changed", about="git commit"),
        result("total 12\ndrwxr-xr-x", about="ls -l"),
        result("Traceback …\nValueError: no such host", about="python run.py", is_error=True),
    )

    assert section(text, "Tool results") == [
        "- bash (git commit): [main 1234abc] Add a retry",
        "- bash (python run.py) failed: ValueError: no such host",
    ]


def test_files_that_were_changed_come_before_those_that_were_spoken_of():
    events = read(
        (
            "user_message",
            message("See src/uploader/retry.py and https://example.test/a/b/c.py, and/or docs/"),
        ),
        ("tool_call", message("", calls=[call("1", "edit", path="src/uploader/client.py")])),
        ("assistant_message", message("In src/uploader/retry.py, 1/2 of it.")),
    )

    assert section(told(*events), "Files") == [
        "- src/uploader/client.py (changed)",
        "- src/uploader/retry.py",
    ]


def test_what_looks_like_a_path():
    text = (
        "(`src/a.py`), ./run, ~/notes/x, a/b and/or 3/4 README.md e.g. v1.2 http://h.test/x/y.py /etc/hosts."
    )

    assert list(paths_in(text)) == ["src/a.py", "./run", "~/notes/x", "README.md", "/etc/hosts"]


def test_an_earlier_summary_is_carried_on_in_less_room():
    first = told(prompt("Use the blue theme"), answer("We agreed on blue."))
    summary = Excerpt(voice=Voice.SUMMARY, sequence=9, text=first)

    second = told(summary, prompt("And now the footer"))

    assert section(second, "Asked and done") == ["- And now the footer"]
    assert "We agreed on blue." in second
    assert second.count(MADE_BY_RULE) == 1
    assert "### Asked and done" in second


def test_the_first_prompt_stays_and_then_the_newest():
    said = [prompt(f"Prompt number {at} " + "x" * 150, at) for at in range(200)]

    lines = section(summarise(said, 2_000), "Asked and done")

    assert "number 0 " in lines[0]
    assert "number 199 " in lines[-1]
    assert 2 < len(lines) < 20


def test_other_languages_are_summed_up_by_what_needs_no_words():
    text = told(
        prompt("アップローダーに再試行を追加してください。"),
        answer("了解しました。src/uploader/retry.py を変更します。"),
    )

    assert section(text, "Asked and done")[0].startswith(
        "- アップローダーに再試行を追加してください。 → 了解しました。"
    )
    assert section(text, "Files") == ["- src/uploader/retry.py"]


def test_room_is_a_quarter_within_bounds():
    assert room_bytes(0) == limits.SUMMARY_BY_RULE_MIN_BYTES
    assert room_bytes(40_000) == 10_000
    assert room_bytes(10**9) == limits.SUMMARY_BY_RULE_MAX_BYTES


excerpts = st.builds(
    Excerpt,
    voice=st.sampled_from(Voice),
    sequence=st.integers(1, 100),
    text=st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace").decode())
    | st.sampled_from(
        ["We decided to use é instead of e.", "TODO: x", "src/a.py", "3 failed", "Shall I?", "```\nx\n"]
    ),
    tool=st.sampled_from(["", "bash", "edit"]),
    about=st.sampled_from(["", "pytest", "ls"]),
    paths=st.lists(st.sampled_from(["src/a.py", "é/b.py"]), max_size=3).map(tuple),
    is_error=st.booleans(),
)


@given(st.lists(excerpts, max_size=30), st.integers(limits.SUMMARY_BY_RULE_MIN_BYTES, 6_000))
def test_whatever_was_said_the_summary_is_bounded_and_never_empty(said: list[Excerpt], room: int):
    text = summarise(said, room)

    assert text.startswith(MADE_BY_RULE)
    assert len(text.encode()) <= room
    assert summarise(said, room) == text


def test_a_long_text_without_spaces_takes_no_time():
    told(prompt("a" * 16_000), answer("/" * 16_000), result("x" * 4_000, is_error=True), answer("> " * 8_000))
