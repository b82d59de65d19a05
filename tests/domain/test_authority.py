"""What a page's standing does to its score: bounded, in the order that people would give, and held down by its tags."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.authority import FACTOR_MAX, FACTOR_MIN, factor
from memory_core.domain.feedback import SALIENCE_DEFAULT
from memory_core.domain.page import Tier

KINDS = ("rule", "decision", "procedure", "gotcha", "concept", "slot", "session", "note", "fact", "turn")
TAGS = (
    "canonical",
    "source-of-truth",
    "active",
    "superseded",
    "historical",
    "do-not-answer-from",
    "test-fixture",
    "else",
)
PATHS = ("notes/a.md", "_lint/2031-01-01.md", "investigations/a.md", "")
CAPS = {"do-not-answer-from": 0.55, "test-fixture": 0.55, "superseded": 0.65, "historical": 0.80}


def of(**given: Any) -> float:
    plain: dict[str, Any] = {
        "kind": "note",
        "tier": Tier.SEMANTIC,
        "path": "notes/a.md",
        "tags": (),
        "pinned": False,
    }
    return factor(**plain | given)


pages = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "tier": st.sampled_from(list(Tier)),
        "path": st.sampled_from(PATHS),
        "tags": st.lists(st.sampled_from(TAGS), max_size=4),
        "pinned": st.booleans(),
        "salience": st.one_of(st.none(), st.floats(0.25, 2.0)),
    }
)


@given(pages)
def test_it_stays_within_its_bounds_whatever_a_page_is(page: dict[str, Any]):
    assert FACTOR_MIN <= factor(**page) <= FACTOR_MAX


@given(pages, st.sampled_from(sorted(CAPS)))
def test_a_tag_that_holds_down_holds_down_whatever_else_the_page_is(page: dict[str, Any], tag: str):
    assert factor(**page | {"tags": [*page["tags"], tag]}) <= CAPS[tag]


@given(pages)
def test_a_pin_and_a_better_judgement_never_lower_it(page: dict[str, Any]):
    assert factor(**page | {"pinned": True}) >= factor(**page | {"pinned": False})
    assert factor(**page | {"salience": 2.0}) >= factor(**page) >= factor(**page | {"salience": 0.25})


@given(pages)
def test_tags_count_once_in_any_order_and_spelling(page: dict[str, Any]):
    spelt = [tag.upper().replace("-", "_") for tag in reversed(page["tags"])]

    assert factor(**page | {"tags": [*spelt, *page["tags"]]}) == factor(**page)


@given(pages)
def test_what_nobody_judged_counts_as_the_middle(page: dict[str, Any]):
    assert factor(**page | {"salience": None}) == factor(**page | {"salience": SALIENCE_DEFAULT})


def test_decisions_come_before_procedures_before_concepts_before_notes_before_sessions():
    values = [of(kind=kind) for kind in ("decision", "procedure", "concept", "note", "session")]

    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("page", "value"),
    [
        ({}, 1.10),
        ({"tier": Tier.EPISODIC}, 0.92),
        ({"tier": Tier.WORKING}, 0.97),
        ({"kind": "rule", "pinned": True}, 1.33),
        ({"kind": "rule", "pinned": True, "tags": ("canonical", "source-of-truth")}, FACTOR_MAX),
        ({"kind": "session", "tier": Tier.EPISODIC}, 0.77),
        ({"path": "_lint/a.md"}, 0.90),
        ({"path": "notes/_lint/a.md"}, 1.10),
        ({"path": "investigations/a.md"}, 1.05),
        ({"salience": 0.25}, 0.9125),
        ({"salience": 2.0}, 1.35),
        ({"tags": ("superseded", "historical")}, 0.65),
        ({"kind": "session", "tier": Tier.EPISODIC, "path": "_lint/a.md", "salience": 0.25}, FACTOR_MIN),
    ],
)
def test_what_a_page_of_a_sort_gets(page: dict[str, Any], value: float):
    assert of(**page) == pytest.approx(value)
