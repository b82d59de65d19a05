"""A route builds the same addresses as werkzeug's own rule."""

from __future__ import annotations

import pytest
from werkzeug.routing import Map, Rule

from web.route import Route

PATTERNS = [
    ("/api/v1/jobs/<job>/retry", {"job": "0a"}),
    ("/wiki/<path:page>", {"page": "notes/ä b.md"}),
    ("/list", {"limit": 3, "rule": "x"}),
]


@pytest.mark.parametrize(("pattern", "values"), PATTERNS)
def test_an_address_is_built_as_by_any_rule(pattern: str, values: dict[str, object]):
    built = [
        Map([kind(pattern, endpoint="it")]).bind("memoryd.test").build("it", values) for kind in (Rule, Route)
    ]

    assert built[0] == built[1]


def test_it_answers_the_same_paths():
    adapter = Map([Route("/wiki/<path:page>", endpoint="it")]).bind("memoryd.test")

    assert adapter.match("/wiki/notes/a.md") == ("it", {"page": "notes/a.md"})
