"""No tool tells what the asker may not see, whatever there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recall.worlds import ASKED, ASKER, WORDS, Thing, made, worlds
from tests.tools.context import Context

SCOPE: dict[str, Any] = {"workspace": "default", "project": ASKED}
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@given(things=worlds, text=questions, everywhere=st.booleans(), include_expired=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_search_gives_what_may_be_seen_and_nothing_else(
    things: Sequence[Thing], text: str, everywhere: bool, include_expired: bool
):
    with made(things) as world:
        context = Context(books=world.books, principal=ASKER)
        scope = {"everywhere": True} if everywhere else SCOPE
        answer = context.call(
            "memory_query", query=text, limit=100, include_expired=include_expired, explain=True, **scope
        )

        shown = {
            number
            for number, thing in enumerate(things)
            if thing.is_shown(everywhere=everywhere, include_expired=include_expired)
        }
        assert world.said_in(json.dumps(answer)) <= shown
        whole = {n for n in shown if things[n].is_page and set(text.split()) <= set(things[n].words)}
        assert {f"notes/page{number}.md" for number in whole} <= {hit["path"] for hit in answer["hits"]}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_recent", {"limit": 100}),
        ("memory_briefing", {"recent_pages_limit": 100}),
        ("memory_explore", {"focus": "quokka uploader"}),
        ("memory_status", {}),
    ],
)
@given(things=worlds)
@settings(max_examples=20, deadline=None)
def test_no_other_tool_tells_more(name: str, arguments: dict[str, Any], things: Sequence[Thing]):
    with made(things) as world:
        answer = Context(books=world.books, principal=ASKER).call(name, **arguments, **SCOPE)

        shown = {number for number, thing in enumerate(things) if thing.is_shown()}
        assert world.said_in(json.dumps(answer)) <= shown


@pytest.mark.parametrize("hidden", ["elsewhere", "expired", "somebody else's"])
def test_a_thousand_better_answers_that_may_not_be_seen_push_nothing_out(hidden: str):
    with made() as world:
        if hidden == "somebody else's":
            world.turn(ASKED, ASKER, "the zebra once, says ada", key="mine")
        else:
            world.page(ASKED, "notes/mine.md", "# Mine\n\nIt says zebra once, in passing.")
        for number in range(1_000):
            if hidden == "somebody else's":
                world.tool(ASKED, "bob", "zebra zebra", key="theirs")
            elif hidden == "expired":
                world.page(
                    ASKED, f"notes/zebra-{number}.md", "# Zebra\n\nzebra zebra", expires_at="2001-01-01"
                )
            else:
                world.page("beta", f"notes/zebra-{number}.md", "# Zebra\n\nzebra zebra")

        answer = Context(books=world.books, principal=ASKER).call(
            "memory_query", query="zebra", limit=5, **SCOPE
        )

        found = answer["hits"] + answer.get("raw_hits", [])
        assert len(found) == 1
        assert "says" in found[0]["snippet"]
