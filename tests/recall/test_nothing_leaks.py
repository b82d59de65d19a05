"""No stream and no search gives what the asker may not see, and what he may see is not cut in favour of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memory_core.recall.streams
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.query import parse
from memory_core.recall.streams import streams
from memory_core.registry import discover
from tests.recall.worlds import ASKED, ASKER, WORDS, Thing, World, made, worlds

discover(memory_core.recall.streams)
#: They answer by words alone; vectors of a question need an embedder.
BY_WORDS = sorted(set(streams.names()) - {"vector"})
#: What a stream is asked whose answers no word leads to.
ASKED_FOR = {"time": "what happened today?"}
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def answered(
    world: World,
    name: str,
    text: str,
    limit: int = 100,
    *,
    everywhere: bool = False,
    include_expired: bool = False,
) -> list[Candidate]:
    ask = Ask(
        text=text,
        query=parse(text),
        projects=None if everywhere else world.numbers(ASKED),
        now=world.books.clock.now_us(),
        principal=ASKER,
        include_expired=include_expired,
    )
    with world.books.database.snapshot() as reading:
        return streams.get(name).candidates(reading, ask, limit)


def text_of(world: World, candidate: Candidate) -> str:
    """The text of the whole page, or of the turn."""
    if candidate.unit is Unit.TURN:
        return world.books.query("SELECT body AS text FROM observations WHERE seq = ?", candidate.number)[0][
            "text"
        ]
    return world.books.query(
        "SELECT v.content AS text FROM page_chunks c JOIN pages p ON p.number = c.page_number"
        " JOIN page_versions v ON v.id = p.version_id WHERE c.number = ?",
        candidate.number,
    )[0]["text"]


@pytest.mark.parametrize("name", BY_WORDS)
@given(things=worlds, text=questions, everywhere=st.booleans(), include_expired=st.booleans())
@settings(max_examples=30, deadline=None)
def test_no_stream_gives_what_may_not_be_seen(
    name: str, things: Sequence[Thing], text: str, everywhere: bool, include_expired: bool
):
    with made(things) as world:
        asked = ASKED_FOR.get(name, text)
        found = answered(world, name, asked, everywhere=everywhere, include_expired=include_expired)

        said = {number for one in found for number in world.said_in(text_of(world, one))}
        shown = {
            number
            for number, thing in enumerate(things)
            if thing.is_shown(everywhere=everywhere, include_expired=include_expired)
        }
        assert said <= shown
        assert len({one.key for one in found}) == len(found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@given(things=worlds, text=questions)
@settings(max_examples=40, deadline=None)
def test_every_page_that_holds_a_word_is_found_by_words(things: Sequence[Thing], text: str):
    with made(things) as world:
        said = {
            number
            for one in answered(world, "lexical", text)
            for number in world.said_in(text_of(world, one))
        }

        best = {
            number
            for number, thing in enumerate(things)
            if thing.is_shown() and set(text.split()) <= set(thing.words)
        }
        assert best <= said


@pytest.mark.parametrize("name", BY_WORDS)
def test_every_stream_answers_by_itself(name: str):
    with made() as world:
        world.page(ASKED, "notes/a.md", "# Upload\n\nThe uploader calls parse_body. [[notes/b]]")
        world.page(ASKED, "notes/b.md", "# Other\n\nNothing of it.")

        asked = ASKED_FOR.get(name, "parse_body uploader")
        found = [text_of(world, one) for one in answered(world, name, asked)]

        assert any("parse_body" in text or "Nothing of it" in text for text in found)


MANY = 1_000
#: Pages that answer the same question better: word upon word, in title, text and name.
BETTER = "# parse_body uploader parse_body\n\nparse_body uploader uploader parse_body"


def _many(world: World, project: str, **more: str) -> None:
    for number in range(MANY):
        world.page(project, f"notes/parse_body-uploader-{number}.md", BETTER, **more)


@pytest.mark.parametrize("hidden", ["elsewhere", "expired"])
def test_a_thousand_better_pages_that_may_not_be_seen_push_nothing_out(hidden: str):
    with made() as world:
        world.page(
            ASKED, "notes/mine.md", "# Mine\n\nThis one says uploader and parse_body once. [[notes/near]]"
        )
        world.page(ASKED, "notes/near.md", "# Near\n\nIt lies near.")
        if hidden == "elsewhere":
            _many(world, "beta")
        else:
            _many(world, ASKED, expires_at="2001-01-01")

        for name in BY_WORDS:
            asked = ASKED_FOR.get(name, "uploader parse_body")
            texts = [text_of(world, one) for one in answered(world, name, asked, limit=10)]
            expected = "It lies near" if name == "graph" else "This one says"
            assert any(expected in text for text in texts), name


def test_a_thousand_better_turns_of_somebody_else_push_nothing_out():
    with made() as world:
        world.turn(ASKED, "ada", "the uploader once retries, says ada", key="mine")
        for _ in range(MANY):
            world.turn(ASKED, "bob", "uploader retries uploader retries", key="theirs")

        texts = [text_of(world, one) for one in answered(world, "lexical", "uploader retries", limit=10)]

        assert texts == ["the uploader once retries, says ada"]
        newest = [text_of(world, one) for one in answered(world, "time", ASKED_FOR["time"], limit=10)]
        assert newest == texts
