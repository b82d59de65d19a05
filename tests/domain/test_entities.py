"""What a text names, by how it is written."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.entities import asked_names, entities_of, fold, names_in

PAGE = "sessions/a.md"
#: Text with what the rules look at in it, and what they must survive.
_pieces = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            " ", "\n", "# ", "`", "```\n", "a_b", "parseHttpBody", "src/app/main.py:42", "./x", "@ada", "Ada", "Lovelace",
            ". ", ": ", "HTTP 503", "ECONNREFUSED", "[REDACTED:aws_secret:ab12]", "://", "\\", "::", "_" * 40, "Aa" * 40,
            "e\u0301", "\u8a8d\u8a3c", "stra\u00dfe_X", "a." * 60, "-", "/" * 9, "~/", "\x00", "\ud800",
        ]
    ),
)  # fmt: skip
texts = st.lists(_pieces, max_size=40).map("".join)


def named(body: str, *declared: str, path: str = "sessions/a.md") -> list[str]:
    return [entity.name for entity in entities_of(path, body, declared)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("we call parse_http_body once", "parse_http_body"),
        ("we call parseHttpBody(request) once", "parsehttpbody"),
        ("see memory_core.store.pages for it", "memory_core.store.pages"),
        ("a std::vector<int> of them", "std::vector"),
        ("in src/app/main.py:42 it fails", "src/app/main.py"),
        ("look into (./scripts/check).", "scripts/check"),
        ("it reads /etc/hosts first", "etc/hosts"),
        ("edit main.py, then run it", "main.py"),
        (r"C:\logs\boot.txt is there", r"c:\logs\boot.txt"),
        ("raises a ValueError when empty", "valueerror"),
        ("ends with ECONNREFUSED at night", "econnrefused"),
        ("killed by SIGKILL again", "sigkill"),
        ("the compiler says E0382 there", "e0382"),
        ("as PROJ-42 has it", "proj-42"),
        ("answered HTTP 503 twice", "http 503"),
        ("with error 1045 from the server", "error 1045"),
        ("since commit 3f2a9bc1d it works", "3f2a9bc1d"),
        ("the `gateway` answers", "gateway"),
        ("so `retry()` is called", "retry"),
        ("then we asked Melanie about it", "melanie"),
        ("Ada Lovelace wrote it", "ada lovelace"),
        ("- **Maria**: hello there", "maria"),
        ("ask @carol_k first", "carol_k"),
        ("\u8a8d\u8a3c\u306fparseJson\u3067\u884c\u3046", "parsejson"),
        ("M\u00fcnchen_Stra\u00dfe is a name", "munchen_strasse"),
    ],
)
def test_what_is_written_like_a_name_is_one(text: str, name: str):
    assert name in named(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain words in a plain sentence, nothing else.",
        "this and/or that, on 12/05/2024 at 10:30",
        "The gateway answers. Then it stops.",
        "see https://example.com/a_b/c_d for more",
        "write to joe_b@example.com",
        "the old secret was [REDACTED:aws_secret:ab12] there",
        "of 11111111-2222-4333-8444-555555555555 nothing is left",
        "# Reading Input Quickly",
        "IDs and APIs, e.g. two, 1_000 times, v. 1.2.3",
    ],
)
def test_what_is_no_name_is_left_alone(text: str):
    assert named(text) == []


def test_where_all_nouns_begin_with_a_capital_they_are_no_names():
    text = (
        "wir haben die Anfrage an den Dienst im Rahmen der Sitzung mit dem Server und der Datenbank gestellt"
    )

    assert named(text) == []


def test_a_page_names_what_it_declares_and_what_it_is_called():
    found = named("nothing", "Payment Gateway", path="notes/Upload-Retries.md")

    assert found == ["payment gateway", "upload-retries"]


def test_a_session_is_not_called_by_its_id():
    assert named("nothing", path="sessions/0191-aaaa.md") == []


def test_the_ends_of_a_name_are_kept_where_a_word_begins():
    (entity,) = entities_of(PAGE, "in src/app/main.py it is")
    assert entity.starts == ("src/app/main.py", "app/main.py", "main.py")
    (entity,) = entities_of(PAGE, "the parseHttpBody of it")
    assert entity.starts == ("parsehttpbody", "httpbody", "body")


def test_a_page_of_many_names_keeps_those_it_declares_and_those_it_says_most_often():
    body = " ".join(f"name_{number}" for number in range(500)) + " often_said" * 3

    found = named(body, "declared")

    assert len(found) == limits.PAGE_ENTITIES_MAX
    assert found[:2] == ["declared", "often_said"]


def test_of_a_path_that_is_too_long_its_end_counts():
    (name,) = named("see " + "a" * 50 + "/" + "folder/" * 4 + "main.py")

    assert name.endswith("folder/main.py")
    assert len(name) <= limits.ENTITY_MAX_CHARS


def test_a_question_asks_for_its_words_and_the_parts_of_those_that_are_put_together():
    assert asked_names(["where", "parseHttpBody", "src/app/main.py?", "Zo\u00eb"]) == (
        "parsehttpbody", "src/app/main.py", "zoe", "where", "parse", "http", "body", "src", "app", "main",
    )  # fmt: skip


def test_of_a_long_question_what_is_written_like_a_name_counts_first():
    asked = asked_names([f"word{'x' * n}" for n in range(30)] + ["payment_gateway"])

    assert asked[0] == "payment_gateway"
    assert len(asked) == limits.ASKED_NAMES_MAX


@given(body=texts, declared=st.lists(st.text(min_size=1, max_size=64), max_size=5))
def test_any_text_gives_few_short_names_each_once(body: str, declared: list[str]):
    found = entities_of(PAGE, body, declared)

    assert len(found) <= limits.PAGE_ENTITIES_MAX
    assert len({entity.name for entity in found}) == len(found)
    for entity in found:
        assert limits.ASKED_NAME_MIN_CHARS <= len(entity.name) <= limits.ENTITY_MAX_CHARS
        assert entity.starts[0] == entity.name
        assert len(entity.starts) <= limits.ENTITY_STARTS_MAX
        assert all(entity.name.endswith(start) for start in entity.starts)
        assert entity.at is None or 0 <= entity.at <= len(body)


@given(body=texts)
def test_names_are_found_the_same_way_in_either_normal_form(body: str):
    composed = unicodedata.normalize("NFC", body)
    decomposed = unicodedata.normalize("NFD", body)

    assert {fold(name) for name in names_in(composed)} == {fold(name) for name in names_in(decomposed)}


@given(text=texts)
def test_folding_twice_is_folding_once(text: str):
    assert fold(fold(text)) == fold(text)


@given(text=texts)
def test_any_question_asks_for_few_names(text: str):
    asked = asked_names([text])

    assert len(asked) <= limits.ASKED_NAMES_MAX
    assert all(limits.ASKED_NAME_MIN_CHARS <= len(name) <= limits.ENTITY_MAX_CHARS for name in asked)


@given(name=st.from_regex(r"[a-z]{3,12}_[a-z]{3,12}", fullmatch=True), around=texts)
def test_a_name_between_spaces_is_found_whatever_stands_around_it(name: str, around: str):
    assert name in {fold(found) for found in names_in(f"{around} {name} {around}")}
