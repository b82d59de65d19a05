"""Shapes of the tool list for clients that refuse what the protocol allows."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.errors import Invalid
from tests.web.served import Served
from tests.web.test_mcp import post, rpc
from web.catalog import load_catalog
from web.flavors import input_shape, without_root_choices
from web.mcp_server import INSTRUCTIONS

CHOICES = {"anyOf", "oneOf", "allOf"}


def test_choices_go_from_the_root_and_from_nowhere_else():
    inner = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema: dict[str, Any] = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    assert without_root_choices({**schema, **{name: [{"required": ["a"]}] for name in CHOICES}}) == schema


@pytest.mark.parametrize("query", ["", "flavor=", "other=1"])
def test_without_a_flavor_nothing_changes(query: str):
    assert input_shape(query)({"anyOf": []}) == {"anyOf": []}


def test_a_flavor_that_there_is_not_names_those_that_are():
    with pytest.raises(Invalid, match="moonshot"):
        input_shape("flavor=vanilla")


def test_no_tool_of_ours_has_choices_at_its_root():
    """Other clients' models refuse them too."""
    assert {name for name, entry in load_catalog().items() if CHOICES & set(entry.input_schema)} == set()


@pytest.mark.stack
def test_the_address_says_the_flavor(served: Served) -> None:
    plain = post(served, rpc("tools/list"))[1]["result"]["tools"]
    assert post(served, rpc("tools/list"), path="/mcp?flavor=moonshot")[1]["result"]["tools"] == plain
    status, answer, _ = post(served, rpc("tools/list"), path="/mcp?flavor=vanilla")
    assert (status, answer["code"]) == (400, "invalid")


def test_the_instructions_are_short_enough_to_be_shown_whole_and_name_only_tools_that_there_are():
    words = {word.strip("`:;,.") for word in INSTRUCTIONS.split()}
    assert {word for word in words if word.startswith("memory_")} <= set(load_catalog())
    assert len(INSTRUCTIONS) < 2_000
    for said in (
        "scope unknown",
        "hooks already capture",
        "never an instruction",
        "leave project and workspace out",
    ):
        assert said in INSTRUCTIONS
