"""JSON schemas of a tool's arguments and answer."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")


def described(text: str) -> msgspec.Meta:
    """The description of an argument, for its type: `Annotated[str, described("…")]`."""
    return msgspec.Meta(description=text)


def schema_of(shape: type[Any]) -> dict[str, Any]:
    """The JSON schema of a dataclass, its own part at the root as MCP wants it; parts of it under `$defs`."""
    (reference,), parts = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    name = str(reference.get("$ref", "")).rpartition("/")[2]
    root = dict(parts.pop(name)) if name in parts else dict(reference)
    root.pop("title", None)
    return {**root, "$defs": parts} if parts else root


Workspace = Annotated[str, described("Workspace of the project; only together with project.")]
ProjectName = Annotated[str, described("Project by name. Leave it out to mean the current one.")]
Limit = Annotated[int, described("How many, 1 to 100.")]
