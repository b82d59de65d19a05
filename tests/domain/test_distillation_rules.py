"""Knowledge by rule: what is kept, with which confidence, and what never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.distillation import Candidate, Upsert
from memory_core.domain.distillation_rules import FOUND_CONFIDENCE, TOLD_CONFIDENCE, distil, key_of
from memory_core.domain.excerpt import Excerpt, Voice
from tests.domain.test_compaction_rules import excerpts
from tests.domain.transcripts import answer, prompt, result


def kept(*said: Excerpt) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for each in distil(said):
        assert isinstance(each, Upsert)
        assert not each.pinned
        found.append((each.content, each.confidence))
    return found


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Remember that deployments run on Fridays only.", "Deployments run on Fridays only."),
        ("please remember: port 8443", "Port 8443"),
        (
            "Fix it. Also remember to run the linter before each commit.",
            "To run the linter before each commit.",
        ),
        ("Keep in mind that the API is versioned by header", "The API is versioned by header"),
        ("- **Remember** this: staging is rebuilt at night", "Staging is rebuilt at night"),
        # A person who asks for it knows how long it holds.
        ("Remember that the importer is currently off.", "The importer is currently off."),
    ],
)
def test_what_a_person_asks_to_be_remembered_is_kept(said: str, fact: str):
    assert kept(prompt(said)) == [(fact, TOLD_CONFIDENCE)]


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember that the port is 8443?",
        "Remember when we changed the port last year.",
        "I remember that the port was 8443.",
        "Remember.",
        "Remember this?",
        "I cannot remember which port it is.",
    ],
)
def test_what_only_has_the_word_is_not(said: str):
    assert kept(prompt(said)) == []


@pytest.mark.parametrize(
    "said",
    [
        "Always run the tests with -q.",
        "In this repo, migrations are never edited.",
        "We never push to main.",
        "Prefer composition over inheritance.",
        "We decided to keep SQLite.",
        "Decision: errors are one tree.",
    ],
)
def test_conventions_and_decisions_are_kept_with_less_confidence(said: str):
    assert kept(prompt(said)) == [(said, FOUND_CONFIDENCE)]


def test_the_agent_decides_but_makes_no_convention():
    assert kept(answer("We decided to keep SQLite. Always run the tests with -q.")) == [
        ("We decided to keep SQLite.", FOUND_CONFIDENCE)
    ]


def test_nothing_is_learned_from_tools():
    assert kept(result("Remember that we decided to keep SQLite. Always use tabs.")) == []


@pytest.mark.parametrize(
    "said",
    [
        "We decided to skip the test for now.",
        "We agreed to look at it tomorrow.",
        "Never mind the build today, it is still failing.",
    ],
)
def test_a_passing_state_is_not_kept(said: str):
    assert kept(prompt(said)) == []


@pytest.mark.parametrize(
    "said",
    [
        "Remember that the password is [REDACTED:password:ab12]",
        "Remember the database password: swordfish",
        "Remember that the password is swordfish.",
        "Remember that the API key is abc-123-def",
        "Always log in with https://ada:swordfish@example.test/",
        "Remember " + "a1b2" * 8 + " for the gateway",
    ],
)
def test_what_may_be_a_secret_is_not_kept(said: str):
    assert kept(prompt(said)) == []


def test_a_sentence_about_secrets_is_none():
    assert kept(prompt("Remember that API keys are stored in the vault of the team.")) != []


def test_said_twice_it_is_one_candidate_and_what_was_told_wins():
    said = [
        prompt("We decided to keep SQLite."),
        answer("we decided to keep SQLite"),
        prompt("Remember that we decided to keep SQLite"),
    ]

    assert kept(*said) == [("We decided to keep SQLite", TOLD_CONFIDENCE)]


def test_the_same_words_are_one_key_and_others_are_another():
    assert key_of("The port is 8443!") == key_of("the  PORT is: 8443") == "the port is 8443"
    assert key_of("The port is 9443") != key_of("The port is 8443")
    long = "word " * 100
    assert key_of(long + "a") != key_of(long + "b")
    assert len(key_of("長" * 500).encode()) <= limits.KNOWLEDGE_KEY_MAX_BYTES


def test_of_too_many_the_told_and_the_newest_are_kept():
    said = [prompt(f"Remember fact number {at}") for at in range(10)]
    said += [prompt(f"We decided to build thing {at}") for at in range(300)]

    found = kept(*said)

    assert len(found) == limits.DISTILLATION_ASKED_FOR
    assert [confidence for _, confidence in found[:10]] == [TOLD_CONFIDENCE] * 10
    assert found[10][0] == "We decided to build thing 299"


@given(st.lists(excerpts, max_size=20))
def test_whatever_was_said_candidates_keep_their_bounds(said: list[Excerpt]):
    found: tuple[Candidate, ...] = distil(said)

    assert len({each.key for each in found}) == len(found) <= limits.DISTILLATION_ASKED_FOR


@given(st.text(max_size=300))
def test_any_text_is_read(text: str):
    for lead in ("", "Remember that ", "We decided to "):
        distil([Excerpt(voice=Voice.PROMPT, sequence=1, text=lead + text)])
        key_of(text)
