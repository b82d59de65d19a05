"""Our stems are those of the full-text index: what is marked is what was found."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core.domain.stemming import beginning, stem, words_with_places
from memory_core.store import driver
from memory_core.store.fulltext import TOKENIZER

PARTS = st.sampled_from(
    [
        *(
            "run",
            "hop",
            "cares",
            "ponies",
            "agree",
            "plaster",
            "conflat",
            "troubl",
            "siz",
            "fall",
            "fil",
            "happ",
            "y",
            "sky",
        ),
        *(
            "relat",
            "ation",
            "ational",
            "iveness",
            "fulness",
            "ization",
            "icate",
            "iciti",
            "ement",
            "ment",
            "ent",
            "ion",
        ),
        *(
            "s",
            "es",
            "ies",
            "ed",
            "eed",
            "ing",
            "ll",
            "e",
            "er",
            "ous",
            "ism",
            "ate",
            "iti",
            "ive",
            "ize",
            "ful",
            "ness",
        ),
    ]
)
#: Of living languages: of rarer letters the index knows fewer accents than Unicode does.
LETTERS = st.text(st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=0x17F), min_size=1, max_size=12)
SCRIPTS = st.one_of(
    st.characters(categories=["L", "Nd", "Zs", "P"], max_codepoint=0x17F),
    *(
        st.characters(min_codepoint=low, max_codepoint=high)
        for low, high in ((0x410, 0x44F), (0x3B1, 0x3C9), (0x4E00, 0x4FFF))
    ),
)


@pytest.fixture(scope="module")
def index():
    connection = driver.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE f USING fts5(text, tokenize = '{TOKENIZER}')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(f, 'instance')")
    yield connection
    connection.close()


def indexed(index, text: str) -> list[str]:
    index.execute("DELETE FROM f")
    index.execute("INSERT INTO f(text) VALUES (?)", (text,))
    return [row[0] for row in index.execute("SELECT term FROM terms ORDER BY offset").fetchall()]


@given(st.one_of(st.lists(PARTS, min_size=1, max_size=4).map("".join), LETTERS))
@example("Straße")
@example("Здравствуйте")
@example("naïveté")
@example("ſeason")
@example("x" * 80 + "ing")
def test_a_stem_is_what_the_index_holds(index, word: str):
    assert [stem(word)] == indexed(index, word)


@given(st.one_of(st.lists(PARTS, min_size=1, max_size=4).map("".join), LETTERS))
@example("happy")
@example("disability")
def test_a_word_begins_as_its_stem_lets_it_expect(word: str):
    assert not word.isascii() or word.lower().startswith(beginning(stem(word)))


@given(st.text(SCRIPTS, max_size=40))
def test_words_are_those_of_the_index(index, text: str):
    text = unicodedata.normalize("NFC", text)

    assert [stem(text[start:end]) for start, end in words_with_places(text)] == indexed(index, text)


def test_an_accent_that_stands_alone_belongs_to_its_letter(index):
    text = "re\u0301sume\u0301 nai\u0308ve"

    assert (
        [stem(text[start:end]) for start, end in words_with_places(text)]
        == indexed(index, text)
        == ["resum", "naiv"]
    )
