"""Which arguments fit a tool's schema, and which schemas are refused because nobody would look at all of them."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.durable.errors import UnusableSchema
from client.durable.schema import check_schema, faults_of

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"type": "integer"}, True, "type integer"),
        ({"type": "integer"}, 1.5, "type integer"),
        ({"type": ["string", "null"]}, 3, "one of the types"),
        ({"enum": [1, "a"]}, True, "listed"),
        ({"const": {"a": 1}}, {"a": 2}, "the one value"),
        ({"minLength": 2}, "a", "at least 2 characters"),
        ({"pattern": "^a+$"}, "ab", "pattern"),
        ({"minimum": 1}, 0, "at least 1"),
        ({"exclusiveMaximum": 1}, 1, "less than 1"),
        ({"multipleOf": 2}, 3, "multiple of 2"),
        ({"items": {"type": "string"}}, ["a", 1], r"\$\[1\]"),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "nothing is allowed"),
        ({"uniqueItems": True}, [1, 2, 1.0], "twice"),
        ({"maxItems": 1}, [1, 2], "at most 1 items"),
        ({"required": ["a"]}, {}, "a is missing"),
        ({"additionalProperties": False}, {"a": 1}, "no such property"),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, r"\$\.a"),
        ({"patternProperties": {"^n_": {"type": "integer"}}}, {"n_a": "x"}, r"\$\.n_a"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "at most 1 characters"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "fits none"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 1, "exactly one"),
        ({"not": {"type": "string"}}, "a", "not allowed"),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 3, "at most 2"),
        (TREE, {"name": "a", "below": [{"nam": "b"}]}, r"\$\.below\[0\]"),
    ],
)
def test_a_value_that_does_not_fit_is_told_where_and_how(schema: Any, value: Any, fault: str) -> None:
    check_schema(schema)
    (first, *_) = faults_of(value, schema)
    assert re.search(fault, first), first


def test_values_that_fit_have_no_fault() -> None:
    assert faults_of({"name": "a", "below": [{"name": "b", "below": []}]}, TREE) == ()
    assert faults_of(2.0, {"type": "integer"}) == ()
    assert faults_of({"a": 1}, {"additionalProperties": True}) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"dependentRequired": {}},
        {"properties": {"a": {"if": {}}}},
        {"items": [{}]},
        {"type": "text"},
        {"pattern": "("},
        {"$ref": "https://example.test/schema"},
        {"$ref": "#/$defs/missing"},
        {"properties": []},
        "string",
    ],
)
def test_a_schema_that_would_not_be_checked_is_refused(schema: Any) -> None:
    with pytest.raises(UnusableSchema):
        check_schema(schema)


def test_a_schema_that_refers_to_itself_without_an_end_fits_nothing() -> None:
    endless = {"$ref": "#"}
    check_schema(endless)
    assert faults_of(1, endless)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.5, 1.0])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
SCHEMAS = st.recursive(
    st.sampled_from(
        [
            *(
                {"type": kind}
                for kind in ("object", "array", "string", "integer", "number", "boolean", "null")
            ),
            {"enum": [1, "a", None, False]},
            {"const": 1},
            {"minimum": 0},
            {"maxLength": 1},
            {"minItems": 1},
            {"required": ["a"]},
            {"uniqueItems": True},
            {"pattern": "^a"},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda part: {"items": part}, inner),
        st.builds(lambda part: {"properties": {"a": part}, "additionalProperties": False}, inner),
        st.builds(lambda part: {"additionalProperties": part}, inner),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner),
        st.builds(lambda one, other: {"oneOf": [one, other]}, inner, inner),
        st.builds(lambda one, other: {"allOf": [one, other]}, inner, inner),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_it_agrees_with_a_full_validator_where_both_look(schema: Any, value: Any) -> None:
    check_schema(schema)
    assert (faults_of(value, schema) == ()) == jsonschema.Draft202012Validator(schema).is_valid(value)
