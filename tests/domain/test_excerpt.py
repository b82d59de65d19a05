"""What is read of the events of a session, whatever they hold; and the part of it that fits."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.excerpt import Excerpt, TranscriptReader, Voice
from memory_core.domain.transcript_window import (
    TranscriptWindow,
    output_tokens,
    size_bytes,
    source_max_bytes,
    window,
)
from tests.domain.transcripts import answer, call, completed, message, prompt, read, result


def test_a_turn_is_read_with_its_calls_and_results():
    found = read(
        ("user_message", message("Fix the uploader")),
        ("tool_call", message("I look at it.", calls=[call("c1", "bash", command="pytest -q\nls")])),
        ("audit", completed("c1", is_error=True)),
        ("tool_result", message("2 failed", answers="c1")),
        ("assistant_message", message("Done.")),
    )

    assert [(each.voice, each.text) for each in found] == [
        (Voice.PROMPT, "Fix the uploader"),
        (Voice.ANSWER, "I look at it."),
        (Voice.CALL, "pytest -q\nls"),
        (Voice.RESULT, "2 failed"),
        (Voice.ANSWER, "Done."),
    ]
    assert (found[3].tool, found[3].about, found[3].is_error) == ("bash", "pytest -q", True)


def test_files_that_a_call_names_are_kept():
    found = read(("tool_call", message("", calls=[call("c1", "edit", path="src/a.py", text="x")])))

    assert [(each.voice, each.paths) for each in found] == [(Voice.CALL, ("src/a.py",))]


def test_what_was_recalled_is_not_told_again():
    shown = f"Before {recalled.fence('we use tabs', 'page x')} after"

    assert "tabs" not in read(("user_message", message(shown)))[0].text


def test_a_turn_that_failed_tells_what_was_asked_and_why_nothing_came_of_it():
    found = read(
        ("error", {"record": "failed_turn", "version": 1, "input": message("Go"), "error": "no network"})
    )

    assert [(each.voice, each.text) for each in found] == [(Voice.PROMPT, "Go"), (Voice.ERROR, "no network")]


def test_an_earlier_summary_is_read_whatever_its_form():
    assert read(("summary", {"summary": {"text": "so far"}}))[0].text == "so far"
    assert read(("summary", {"summary": "so far"}))[0].text == "so far"
    assert read(("summary", {"summary": {"a": 1}}))[0].text == '{"a":1}'


def test_assets_are_named_by_their_kind():
    payload = message("Look") | {
        "content": [
            {"type": "text", "data": "Look"},
            {"type": "asset", "data": {"kind": "image", "bytes": 3}},
        ]
    }

    assert read(("user_message", payload))[0].text == "Look\n[image]"


def test_a_long_result_keeps_its_beginning_and_its_end():
    (found,) = read(("tool_result", message("first " + "é" * 10_000 + " last", answers="x")))

    assert found.text.startswith("first")
    assert found.text.endswith("last")
    assert found.is_cut
    assert len(found.text.encode()) <= limits.EXCERPT_RESULT_MAX_BYTES


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "user_message",
                    "assistant_message",
                    "tool_call",
                    "tool_result",
                    "audit",
                    "summary",
                    "error",
                    "x",
                ]
            ),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(
                            [
                                "content",
                                "data",
                                "type",
                                "text",
                                "tool_calls",
                                "id",
                                "name",
                                "arguments",
                                "path",
                                "paths",
                                "edits",
                                "tool_call_id",
                                "event",
                                "output",
                                "call_id",
                                "is_error",
                                "summary",
                                "input",
                                "error",
                            ]
                        ),
                        inner,
                        max_size=6,
                    )
                ),
                max_leaves=20,
            ),
        ),
        max_size=5,
    )
)
def test_no_payload_is_an_error(events: list[tuple[str, Any]]):
    for found in read(*events):
        found.text.encode()
        assert found.text.strip() or found.voice is Voice.CALL


@given(st.text(max_size=50))
def test_no_text_is_an_error(text: str):
    assert TranscriptReader().read(1, "user_message", text) == [] or json.loads(text)


def test_half_a_character_is_read_as_a_sign_of_loss():
    (found,) = TranscriptReader().read(1, "user_message", r'{"content":"a\ud800b"}')

    assert found.text == "a?b"


def test_everything_is_kept_where_it_fits():
    said = [prompt("a"), answer("b"), result("c")]
    made = TranscriptWindow(10_000)
    made.add(said)

    assert made.excerpts() == tuple(said)
    assert made.is_whole


def test_prompts_stay_where_not_everything_fits_the_newest_first():
    said: list[Excerpt] = []
    for at in range(0, 100, 3):
        said += [prompt(f"p{at}", at), answer("a" * 300, at + 1), result("r" * 300, at=at + 2)]

    made = TranscriptWindow(4_500)
    made.add(said)
    kept = made.excerpts()

    assert size_bytes(kept) <= 4_500
    assert not made.is_whole
    assert made.left_out == len(said) - len(kept)
    assert [each.sequence for each in kept] == sorted(each.sequence for each in kept)
    assert sum(each.voice is Voice.PROMPT for each in kept) == 34
    assert max(each.sequence for each in kept if each.voice is Voice.ANSWER) == 100


@given(st.lists(st.integers(0, 500), max_size=60), st.integers(0, 3_000))
def test_a_window_never_holds_more_than_its_room(sizes: list[int], room: int):
    said = [result("x" * size, at=at) for at, size in enumerate(sizes)]

    kept = window(said, room)

    assert size_bytes(kept) <= room
    assert len(kept) == len(said) or size_bytes(said) > room


def test_source_limit_reserves_output_and_prompt_space():
    assert source_max_bytes(16_384, 1_024) == 14_336
    assert source_max_bytes(4_096, 1_024) == 2_048
    assert source_max_bytes(512, 512) == 0
    assert source_max_bytes(10**9, 1_024) == limits.SOURCE_MAX_BYTES


def test_configured_output_never_exceeds_context_quarter():
    assert output_tokens(2_048, 4_096) == 512
    assert output_tokens(1, 4_096) == 1
    assert output_tokens(128_000, 4_096) == 1_024
    assert output_tokens(128_000, 300) == 300
