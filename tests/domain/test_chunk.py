"""Dividing a text into the parts by which it is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.chunk import chunks, digest_of, embedded_text, pieces

PIECES_OF_TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["# One\n", "\n## Two ##\n", "\n\n", "```\n", "~~~py\n", "    code\n", "<!--", "-->", "\r\n", "`x`"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=20).map(lambda text: text * 100),
)
TEXTS = st.lists(PIECES_OF_TEXT, max_size=30).map("".join)


def parts_of(body: str) -> list[str]:
    return [body[chunk.start : chunk.end] for chunk in chunks(body)]


@given(TEXTS)
def test_parts_hold_every_character_once_and_in_order(body: str):
    made = chunks(body)

    assert [chunk.ord for chunk in made] == list(range(len(made)))
    behind = 0
    for chunk in made:
        assert body[behind : chunk.start].strip() == ""
        assert behind <= chunk.start <= chunk.end
        behind = chunk.end
    assert body[behind:].strip() == ""


@given(TEXTS)
def test_no_part_is_longer_than_code_may_be(body: str):
    assert all(len(part) <= limits.CHUNK_CODE_MAX_CHARS for part in parts_of(body))


def test_a_text_without_words_has_one_empty_part():
    assert [(chunk.start, chunk.end) for chunk in chunks(" \n\n ")] == [(0, 0)]
    assert pieces("") == [(0, 0)]


def test_a_part_knows_the_headings_that_it_stands_below():
    long = "A sentence of some length. " * 15
    body = f"{long}\n\n# Deploy\n\n{long}\n\n## Rollback ##\n\n{long}\n\n# Backup\n\n{long}"

    assert [chunk.heading for chunk in chunks(body)] == ["", "Deploy", "Deploy / Rollback", "Backup"]


def test_short_sections_make_one_part():
    body = "\n\n".join(f"## Step {n}\n\nDo it." for n in range(5))

    assert parts_of(body) == [body]


def test_a_hash_in_code_is_no_heading_and_code_stays_whole():
    code = "```sh\n# not a heading\n\n" + "run --all\n" * 150 + "```"
    body = f"# Steps\n\n{'Some words. ' * 40}\n\n{code}\n\nBehind."

    assert code in parts_of(body)
    assert {chunk.heading for chunk in chunks(body)} == {"Steps"}


def test_a_long_paragraph_is_cut_behind_a_sentence():
    parts = parts_of("This is a sentence that says little. " * 100)

    assert len(parts) > 2
    assert all(part.endswith(".") for part in parts)


def test_a_heading_stands_with_what_follows_it():
    long = "A sentence of some length. " * 40
    body = f"# One\n\n{long}\n\n# Two\n\n{long}"

    assert [part[:5] for part in parts_of(body)] == ["# One", "# Two"]


def test_what_is_embedded_says_what_it_is_a_part_of():
    assert embedded_text("Title", "Deploy / Rollback", "text") == "Title\nDeploy / Rollback\ntext"
    assert embedded_text("", "", "text") == "text"
    assert len(digest_of("\ud800 lone")) == 16
