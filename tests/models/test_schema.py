"""Schemas of structured answers: only strict ones are taken, and only what fits them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.errors import Invalid
from memory_core.models.schema import NotFitting, Schema, read_answer


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def nested(depth: int) -> dict[str, Any]:
    return closed(a=nested(depth - 1)) if depth else {"type": "string"}


@pytest.mark.parametrize(
    ("json", "said"),
    [
        ({"type": "array", "items": {"type": "string"}}, "object at the root"),
        ({"anyOf": [closed(), closed()]}, "object at the root"),
        ({"type": "object", "properties": {}, "required": []}, "additionalProperties must be false"),
        ({**closed(a={"type": "string"}), "required": []}, "every property must be required"),
        (closed(a={"type": ["string", "null"]}), "type must be one of"),
        (closed(a={"type": "strange"}), "type must be one of"),
        (closed(a={"$ref": "#/x"}), r"\$ref is not of the part"),
        (closed(a={"type": "string", "format": "date"}), "format is not of the part"),
        (closed(a={"type": "array"}), "items is missing"),
        (closed(a={"anyOf": [{"type": "object"}]}), "additionalProperties must be false"),
        (nested(limits.ANSWER_SCHEMA_DEPTH_MAX + 1), "nests deeper"),
        (closed(**{f"p{n}": {"type": "null"} for n in range(101)}), "more than 100 properties"),
    ],
)
def test_a_schema_that_is_not_strict_is_refused(json: dict[str, Any], said: str):
    with pytest.raises(Invalid, match=said):
        Schema(name="s", json=json)


def test_a_name_that_a_vendor_refuses_is_refused():
    with pytest.raises(Invalid, match="name"):
        Schema(name="My schema", json=closed())


def test_what_only_we_check_is_not_shown_but_a_property_of_that_name_is():
    schema = Schema(
        name="s",
        json=closed(
            pattern={"type": "string", "pattern": "^a", "description": "it"}, properties={"type": "null"}
        ),
    )

    assert schema.shown == closed(
        pattern={"type": "string", "description": "it"}, properties={"type": "null"}
    )


LINES = Schema(
    name="lines",
    json=closed(
        lines={
            "type": "array",
            "maxItems": 2,
            "items": closed(
                text={"type": "string", "maxLength": 5}, kind={"type": "string", "enum": ["a", "b"]}
            ),
        }
    ),
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"lines":[{"text":"longer","kind":"a"}]}', "$.lines[0].text: must have maxLength 5"),
        ('{"lines":[{"text":"x","kind":"c"}]}', '$.lines[0].kind: must have enum ["a","b"]'),
        ('{"lines":[{"text":"x"}]}', "$.lines[0]: without kind"),
        ('{"lines":[],"secret":1}', "$: has a property that the schema does not name"),
        ('{"lines":7}', '$.lines: must have type "array"'),
        ("[]", '$: must have type "object"'),
        ('{"lines":[]} {"lines":[]}', "$: the text is not one JSON value and nothing else"),
        ("{'lines':[]}", "$: the text is not one JSON value and nothing else"),
        ("", "$: the text is not one JSON value and nothing else"),
    ],
)
def test_a_fault_says_where_and_which_rule_and_quotes_nothing(text: str, fault: str):
    with pytest.raises(NotFitting) as caught:
        read_answer(text, LINES)

    assert fault in caught.value.faults


def test_not_more_faults_than_are_shown():
    many = Schema(name="s", json=closed(**{f"p{n:02}": {"type": "null"} for n in range(50)}))
    bad = "{" + ",".join(f'"p{n:02}":1' for n in range(50)) + "}"

    with pytest.raises(NotFitting) as caught:
        read_answer(bad, many)

    assert len(caught.value.faults) == limits.ANSWER_FAULTS_SHOWN


@given(st.text(alphabet='[]{}",:\\1a \n`', max_size=400))
def test_any_text_is_an_answer_that_fits_or_one_that_does_not(text: str):
    try:
        value = read_answer(text, LINES)
    except NotFitting:
        return
    assert list(value) == ["lines"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '"' + "\\" * 99_999, "`" * 100_000])
def test_deep_and_long_texts_are_refused_not_feared(text: str):
    with pytest.raises(NotFitting):
        read_answer(text, LINES)
