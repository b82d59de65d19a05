"""Whether a tool's arguments fit its JSON Schema: the part of it that tools use, checked without anything to install."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from client.durable.errors import UnusableSchema

#: What says nothing that could be broken.
_REMARKS = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated",
     "readOnly", "writeOnly", "format")
)  # fmt: skip
_CHECKED = frozenset(
    ("type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
     "minProperties", "maxProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "minLength",
     "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "anyOf",
     "oneOf", "allOf", "not", "$ref")
)  # fmt: skip
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_ONE_SCHEMA = ("items", "not", "additionalProperties", "propertyNames")
_FAULTS_MAX = 8
_REFERENCES_MAX = 32


def check_schema(schema: Any) -> None:
    """Raises `UnusableSchema` where the schema says something that `faults_of` would not look at."""
    _check_part(schema, schema, "$", 0)


def _check_part(root: Any, schema: Any, where: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise UnusableSchema(f"{where}: a schema is an object or a boolean")
    if depth > 48:
        raise UnusableSchema(f"{where}: the schema nests too deeply")
    if unknown := set(schema) - _REMARKS - _CHECKED:
        raise UnusableSchema(
            f"{where}: {', '.join(sorted(map(str, unknown)))} is not checked here; leave it out"
        )
    _check_words(root, schema, where)
    for word in _NAMED_SCHEMAS:
        for name, part in schema.get(word, {}).items():
            _check_part(root, part, f"{where}.{word}.{name}", depth + 1)
    for word in _LISTS_OF_SCHEMAS:
        for index, part in enumerate(schema.get(word, ())):
            _check_part(root, part, f"{where}.{word}[{index}]", depth + 1)
    for word in _ONE_SCHEMA:
        if word in schema:
            _check_part(root, schema[word], f"{where}.{word}", depth + 1)


def _check_words(root: Any, schema: Mapping[str, Any], where: str) -> None:
    kinds = schema.get("type", ())
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        if kind not in _TYPES:
            raise UnusableSchema(f"{where}: type is one of {', '.join(_TYPES)}")
    for word in _NAMED_SCHEMAS:
        if not isinstance(schema.get(word, {}), Mapping):
            raise UnusableSchema(f"{where}: {word} is an object of schemas")
    for word in (*_LISTS_OF_SCHEMAS, "enum", "required"):
        if not isinstance(schema.get(word, []), list | tuple):
            raise UnusableSchema(f"{where}: {word} is a list")
    for pattern in (*filter(None, [schema.get("pattern")]), *schema.get("patternProperties", {})):
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise UnusableSchema(f"{where}: {pattern!r} is no pattern ({error})") from error
    if "$ref" in schema and _referred(root, schema["$ref"]) is None:
        raise UnusableSchema(f"{where}: $ref names a part of the schema itself: #/$defs/…")


def faults_of(value: Any, schema: Any) -> tuple[str, ...]:
    """Where and how `value` does not fit: the first few, none where it fits. Quotes nothing of it but names."""
    found: list[str] = []
    for fault in _Check(schema).faults(value, schema, "$", 0):
        if fault not in found:
            found.append(fault)
        if len(found) == _FAULTS_MAX:
            break
    return tuple(found)


class _Check:
    def __init__(self, root: Any) -> None:
        self._root = root

    def faults(self, value: Any, schema: Any, at: str, references: int) -> Iterator[str]:
        if schema is True or (isinstance(schema, Mapping) and not schema):
            return
        if schema is False:
            yield f"{at}: nothing is allowed here"
            return
        if "$ref" in schema:
            if references > _REFERENCES_MAX:
                yield f"{at}: the schema refers to itself without an end"
                return
            yield from self.faults(value, _referred(self._root, schema["$ref"]), at, references + 1)
        if "type" in schema and not _is_of(value, schema["type"]):
            yield f"{at}: must be {_said(schema['type'])}"
            return
        if "enum" in schema and not any(_equal(value, one) for one in schema["enum"]):
            yield f"{at}: must be one of the listed values"
        if "const" in schema and not _equal(value, schema["const"]):
            yield f"{at}: must be the one value that is allowed"
        yield from self._combined(value, schema, at, references)
        if isinstance(value, Mapping):
            yield from self._object(value, schema, at, references)
        elif isinstance(value, list | tuple):
            yield from self._array(value, schema, at, references)
        elif isinstance(value, str):
            yield from _text(value, schema, at)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number(value, schema, at)

    def _fits(self, value: Any, schema: Any, at: str, references: int) -> bool:
        return next(self.faults(value, schema, at, references), None) is None

    def _combined(self, value: Any, schema: Mapping[str, Any], at: str, references: int) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.faults(value, part, at, references)
        if "anyOf" in schema and not any(self._fits(value, part, at, references) for part in schema["anyOf"]):
            yield f"{at}: fits none of the forms that are allowed"
        if (
            "oneOf" in schema
            and sum(self._fits(value, part, at, references) for part in schema["oneOf"]) != 1
        ):
            yield f"{at}: must fit exactly one of the forms that are allowed"
        if "not" in schema and self._fits(value, schema["not"], at, references):
            yield f"{at}: has a form that is not allowed"

    def _object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], at: str, references: int
    ) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}: {name} is missing"
        yield from _sized(len(value), schema, "minProperties", "maxProperties", at, "properties")
        known = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        for name, item in value.items():
            inside = f"{at}.{name[:64]}"
            if "propertyNames" in schema:
                yield from self.faults(name, schema["propertyNames"], inside, references)
            if name in known:
                yield from self.faults(item, known[name], inside, references)
            matching = [part for pattern, part in patterns.items() if re.search(pattern, name)]
            for part in matching:
                yield from self.faults(item, part, inside, references)
            if name not in known and not matching and schema.get("additionalProperties", True) is not True:
                if schema["additionalProperties"] is False:
                    yield f"{inside}: there is no such property"
                else:
                    yield from self.faults(item, schema["additionalProperties"], inside, references)

    def _array(
        self, value: Sequence[Any], schema: Mapping[str, Any], at: str, references: int
    ) -> Iterator[str]:
        yield from _sized(len(value), schema, "minItems", "maxItems", at, "items")
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            part = first[index] if index < len(first) else schema.get("items", True)
            yield from self.faults(item, part, f"{at}[{index}]", references)
        if schema.get("uniqueItems") and any(
            _equal(one, other) for index, one in enumerate(value) for other in value[:index]
        ):
            yield f"{at}: must not hold an item twice"


def _referred(root: Any, reference: Any) -> Any:
    """The part of the schema that is meant; None where there is none."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def _is_of(value: Any, kinds: str | Sequence[str]) -> bool:
    return any(_is_a(value, kind) for kind in ((kinds,) if isinstance(kinds, str) else kinds))


def _is_a(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if kind == "number":
        return isinstance(value, int | float)
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, Mapping) if kind == "object" else isinstance(value, list | tuple)


def _equal(one: Any, other: Any) -> bool:
    """JSON's equality: `true` is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return (type(one) is type(other) and one == other) or (
        isinstance(one, int | float) and isinstance(other, int | float) and one == other
    )


def _sized(size: int, schema: Mapping[str, Any], least: str, most: str, at: str, what: str) -> Iterator[str]:
    if least in schema and size < schema[least]:
        yield f"{at}: must have at least {schema[least]} {what}"
    if most in schema and size > schema[most]:
        yield f"{at}: must have at most {schema[most]} {what}"


def _text(value: str, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    yield from _sized(len(value), schema, "minLength", "maxLength", at, "characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: must match the pattern {schema['pattern']}"


def _number(value: float, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{at}: must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{at}: must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{at}: must be more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"{at}: must be less than {schema['exclusiveMaximum']}"
    if "multipleOf" in schema and value % schema["multipleOf"]:
        yield f"{at}: must be a multiple of {schema['multipleOf']}"


def _said(kinds: str | Sequence[str]) -> str:
    return f"of type {kinds}" if isinstance(kinds, str) else f"of one of the types {', '.join(kinds)}"
