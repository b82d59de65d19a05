"""With what a session may work: fixed when it begins, compared whenever it is resumed. Nothing that was allowed once is part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from client.durable.redaction import Redact, settled
from client.durable.tools import Tool, Toolbox
from memory_core import limits
from memory_core.domain import capped_json
from memory_core.domain.directory import Directory
from memory_core.errors import Invalid, SnapshotMismatch

SNAPSHOT_VERSION = 1


def snapshot_of(
    *,
    directory: Directory,
    model_reference: str,
    system_prompt: str,
    options: Mapping[str, Any],
    toolbox: Toolbox,
    max_rounds: int,
    config: Mapping[str, Any],
    redact: Redact,
) -> dict[str, Any]:
    """`{schema_version, config, authority}` as it is stored, without secrets. Raises `Invalid` for what cannot be."""
    authority = {
        "workspace_root": directory.path,
        "workspace_host": directory.host,
        "workspace_device": directory.device,
        "workspace_inode": directory.inode,
        "model_identity": model_reference,
        "system_prompt": system_prompt,
        "generation_options": dict(options),
        "tools": [tool.declaration for tool in toolbox.all],
        "tool_implementations": {tool.name: tool.version for tool in toolbox.all},
        "tool_cancellation_policies": {tool.name: tool.on_cancel for tool in toolbox.all},
        "tool_approvals": {tool.name: _approval_of(tool) for tool in toolbox.all},
        "parallel_tools": [tool.name for tool in toolbox.all if tool.is_parallel],
        "max_model_rounds": max_rounds,
        "max_tool_output_bytes": limits.TOOL_OUTPUT_MAX_BYTES,
    }
    parts = {"config": dict(config), "authority": authority}
    for name, part in parts.items():
        capped_json.encode(part, max_bytes=limits.SNAPSHOT_PART_MAX_BYTES, what=f"the session's {name}")
    return {"schema_version": SNAPSHOT_VERSION, **settled(parts, redact)}


def check_same(stored: Mapping[str, Any] | None, ours: Mapping[str, Any], *, is_empty: bool) -> None:
    """Raises `SnapshotMismatch` where the session was begun with something else. The directory's path may differ."""
    if stored is None:
        if is_empty:
            return
        raise SnapshotMismatch(
            "the session has events and no snapshot of what it may work with; it cannot be resumed"
        )
    if stored.get("schema_version") != SNAPSHOT_VERSION:
        raise SnapshotMismatch(
            f"the session's snapshot is of version {stored.get('schema_version')}; this is version {SNAPSHOT_VERSION}"
        )
    for part in ("config", "authority"):
        theirs, mine = stored.get(part), ours[part]
        if not isinstance(theirs, Mapping):
            raise SnapshotMismatch(f"the session's snapshot has no {part}")
        differing = sorted(
            name
            for name in {*theirs, *mine} - {"workspace_root"}
            if not _agree(theirs.get(name), mine.get(name))
        )
        if differing:
            raise SnapshotMismatch(
                f"the session was begun with another {part}: {', '.join(differing[:8])} differ",
                detail={"part": part, "differing": differing[:32]},
            )


def _agree(theirs: Any, mine: Any) -> bool:
    """Equal, or redacted further by the server, which then compares by itself."""
    return (
        theirs == mine
        or "[REDACTED:" in capped_json.encode(theirs, max_bytes=limits.SNAPSHOT_PART_MAX_BYTES).decode()
    )


def _approval_of(tool: Tool) -> str:
    if tool.approval is None:
        return "none"
    return "by arguments" if callable(tool.approval) else "always"


def checked_reference(text: str) -> str:
    """A model's name, one line."""
    if not text.strip() or not text.isprintable() or len(text.encode()) > limits.MODEL_REFERENCE_MAX_BYTES:
        raise Invalid(
            f"model_reference is one line of at most {limits.MODEL_REFERENCE_MAX_BYTES} bytes that names the model"
        )
    return text
