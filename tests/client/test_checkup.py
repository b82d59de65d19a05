"""What `memoryd doctor` says of the wiki."""

from __future__ import annotations

from typing import Any

import pytest

from client.checkup import _wiki
from client.findings import Failed


def status(**wiki: Any) -> dict[str, Any]:
    """As `/api/v1/status` says it."""
    return {"wiki": {"files": 3, "pages": 3, "held": [], "troubles_in_all": 0} | wiki}


def test_a_wiki_whose_files_vanished_fails_and_the_way_back_is_named():
    with pytest.raises(Failed, match=r"5 of 5 pages of default/x.*memoryd heal"):
        _wiki(status(held=[{"project": "default/x", "missing": 5, "pages": 5}]))


def test_a_wiki_that_is_away_fails_and_says_where_it_should_be():
    with pytest.raises(Failed, match=r"the directory /x is not there.*memoryd heal"):
        _wiki(status(away="the directory /x is not there"))


def test_files_that_are_passed_over_are_counted_and_named():
    troubles = [{"file": "default/x/a.md", "trouble": "it is not UTF-8 text"}]
    said = _wiki(status(troubles_in_all=1, troubles=troubles, strangers={"a/b": "a copy"}))

    assert "2 files or folders are passed over" in said
    assert "default/x/a.md (it is not UTF-8 text)" in said
    assert "a/b (a copy)" in said


def test_a_wiki_in_step_is_told_in_numbers():
    assert _wiki(status()) == "3 files of 3 pages"


def test_a_server_that_says_nothing_of_its_wiki_fails():
    with pytest.raises(Failed):
        _wiki({})
