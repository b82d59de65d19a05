"""The hooks table that Claude Code and Codex share: event → groups → handlers. Ours are put in and taken out by structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from client.json_config import Config, section
from memory_core.errors import Invalid

Handler = dict[str, Any]


def put(
    config: Config, path: Path, wanted: Mapping[str, Handler], is_ours: Callable[[Handler], bool]
) -> None:
    """Make `wanted` (event → handler) the only handlers of ours. What stands right already keeps its place."""
    hooks = section(config, "hooks", path)
    for event in [*wanted, *(event for event in hooks if event not in wanted)]:
        groups = _groups(hooks, event, path)
        handler = wanted.get(event)
        mine = [found for group in groups for found in _handlers(group) if is_ours(found)]
        if handler is not None and mine == [handler]:
            continue
        kept = _without(groups, is_ours)
        if handler is not None:
            kept.append({"hooks": [handler]})
        _set(hooks, event, kept, was=groups)


def take_out(config: Config, path: Path, is_ours: Callable[[Handler], bool]) -> None:
    """Remove our handlers, and what holds nothing else any more."""
    if "hooks" not in config:
        return
    hooks = section(config, "hooks", path)
    removed = False
    for event in list(hooks):
        groups = _groups(hooks, event, path)
        kept = _without(groups, is_ours)
        removed = removed or kept != groups
        _set(hooks, event, kept, was=groups)
    if removed and not hooks:
        del config["hooks"]


def _set(hooks: Config, event: str, groups: list[Any], *, was: list[Any]) -> None:
    if groups:
        hooks[event] = groups
    elif was:
        del hooks[event]


def _without(groups: list[Any], is_ours: Callable[[Handler], bool]) -> list[Any]:
    kept: list[Any] = []
    for group in groups:
        handlers = _handlers(group)
        others = [handler for handler in handlers if not is_ours(handler)]
        if len(others) == len(handlers):
            kept.append(group)
        elif others or _rest(group):
            kept.append(
                {**group, "hooks": [h for h in group["hooks"] if not (isinstance(h, dict) and is_ours(h))]}
            )
    return [
        group
        for group in kept
        if not (isinstance(group, dict) and group.get("hooks") == [] and not _rest(group))
    ]


def _rest(group: Any) -> bool:
    """Whether there is something in a group that is not a plain string or our handlers."""
    return isinstance(group, dict) and any(name not in ("hooks", "matcher") for name in group)


def _groups(hooks: Config, event: str, path: Path) -> list[Any]:
    found = hooks.get(event, [])
    if not isinstance(found, list):
        raise Invalid(f"{path}: hooks.{event} is no list")
    return found


def _handlers(group: Any) -> list[Handler]:
    found = group.get("hooks") if isinstance(group, dict) else None
    return [handler for handler in found if isinstance(handler, dict)] if isinstance(found, list) else []
