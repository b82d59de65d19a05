"""The form of a structured answer: a strict part of JSON Schema, what a vendor is shown of it, and what fits it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from memory_core import limits
from memory_core.errors import Invalid

#: What a schema may say. Every vendor takes the first group; the second only we check.
_SHOWN = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description")
)
_OURS = frozenset(
    ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "uniqueItems")
)
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: The answer as one fenced block of Markdown, and nothing else.
_WHOLE_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The form of one kind of answer: an object. Raises `Invalid` when it is not strict.

    Strict: an object at the root; in each object `additionalProperties` is false and every property is required
    (what may be missing is `anyOf` with a null); `type` is one name; no references. That is what all vendors take.
    """

    #: Lower case, digits and `_`; some vendors show it to the model.
    name: str
    json: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise Invalid(f"a schema's name is lower case letters, digits and _, not {self.name!r}")
        if self.json.get("type") != "object":
            raise Invalid(f"schema {self.name}: there must be an object at the root")
        properties = sum(_checked(self.name, "$", self.json, depth=1))
        if properties > limits.ANSWER_SCHEMA_PROPERTIES_MAX:
            raise Invalid(
                f"schema {self.name} has more than {limits.ANSWER_SCHEMA_PROPERTIES_MAX} properties"
            )

    @property
    def shown(self) -> dict[str, Any]:
        """The schema without what only we check: vendors refuse, each in its own way, what they cannot promise."""
        return cast("dict[str, Any]", _without_ours(self.json))


def _checked(name: str, at: str, node: Any, *, depth: int) -> Iterator[int]:
    """Walks the schema; yields how many properties each object has."""
    if not isinstance(node, Mapping):
        raise Invalid(f"schema {name}, {at}: not an object")
    schema = cast("Mapping[str, Any]", node)
    if depth > limits.ANSWER_SCHEMA_DEPTH_MAX:
        raise Invalid(f"schema {name} nests deeper than {limits.ANSWER_SCHEMA_DEPTH_MAX} levels")
    if unknown := set(schema) - _SHOWN - _OURS:
        raise Invalid(
            f"schema {name}, {at}: {', '.join(sorted(unknown))} is not of the part that all vendors take"
        )
    if "anyOf" in schema:
        for index, branch in enumerate(schema["anyOf"]):
            yield from _checked(name, f"{at}.anyOf[{index}]", branch, depth=depth + 1)
        return
    kind = schema.get("type")
    if kind not in _TYPES:
        raise Invalid(f"schema {name}, {at}: type must be one of {', '.join(_TYPES)}")
    if kind == "object":
        properties: Mapping[str, Any] = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            raise Invalid(f"schema {name}, {at}: additionalProperties must be false")
        if sorted(schema.get("required", ())) != sorted(properties):
            raise Invalid(f"schema {name}, {at}: every property must be required; use anyOf with null")
        yield len(properties)
        for key, child in properties.items():
            yield from _checked(name, f"{at}.{key}", child, depth=depth + 1)
    if kind == "array":
        if "items" not in schema:
            raise Invalid(f"schema {name}, {at}: items is missing")
        yield from _checked(name, f"{at}[]", schema["items"], depth=depth + 1)


def _without_ours(node: Any, *, are_names: bool = False) -> Any:
    """`are_names`: the keys of this level are names of properties, which may be called like a keyword."""
    if isinstance(node, Mapping):
        pairs = cast("Mapping[str, Any]", node).items()
        return {
            key: _without_ours(value, are_names=key == "properties" and not are_names)
            for key, value in pairs
            if are_names or key not in _OURS
        }
    if isinstance(node, list | tuple):
        return [_without_ours(item) for item in cast("list[Any]", node)]
    return node


class NotFitting(Exception):
    """An answer that does not fit; `faults` say where and what, in words that quote nothing of it."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("the answer does not fit its schema")
        self.faults = faults


def read_answer(text: str, schema: Schema) -> Mapping[str, Any]:
    """The object in an answer: JSON and nothing else, or one whole fenced block of it. Raises `NotFitting`."""
    value = _parsed(text)
    import jsonschema

    validator = jsonschema.Draft202012Validator(dict(schema.json))
    faults = [_fault(error) for error in validator.iter_errors(value)]  # pyright: ignore[reportUnknownMemberType]
    if faults:
        raise NotFitting(tuple(sorted(set(faults))[: limits.ANSWER_FAULTS_SHOWN]))
    return cast("Mapping[str, Any]", value)


def _parsed(text: str) -> Any:
    bare = text.strip()
    if fenced := _WHOLE_FENCE.match(bare):
        bare = fenced.group(1)
    if bare.count("[") + bare.count("{") > limits.JSON_DEPTH_MAX and _depth(bare) > limits.JSON_DEPTH_MAX:
        raise NotFitting((f"$: nests deeper than {limits.JSON_DEPTH_MAX} levels",))
    try:
        return msgspec.json.decode(bare.encode())
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        raise NotFitting(("$: the text is not one JSON value and nothing else",)) from None


def _depth(text: str) -> int:
    """How deep brackets nest at most, those inside strings left out."""
    depth = deepest = 0
    for mark in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text):
        if mark.group() in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark.group() in ("]", "}"):
            depth -= 1
    return deepest


def _fault(error: Any) -> str:
    """One line: the place, and the rule of the schema that is broken. Nothing of the answer but its property names."""
    rule: str = error.validator
    if rule == "additionalProperties":
        return f"{error.json_path}: has a property that the schema does not name"
    if rule == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"{error.json_path}: without {', '.join(missing)}"
    if rule == "anyOf":
        return f"{error.json_path}: fits none of the forms that are allowed here"
    return f"{error.json_path}: must have {rule} {msgspec.json.encode(error.validator_value).decode()}"
