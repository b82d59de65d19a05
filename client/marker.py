"""`.memoryd.toml`: what a directory wishes of memory. Found and read at every hook, so light."""

from __future__ import annotations

import os

from memory_core import limits

NAME = ".memoryd.toml"
_LEVELS_MAX = 64
#: What a directory may say of knowledge that is recalled: field of the query, key of `[memory]`.
_BOUNDS = {
    "recall_entries": "recall_entries",
    "recall_bytes": "recall_bytes",
    "recall_confidence": "confidence_threshold",
}
_TRUE = ("1", "true", "yes", "on")


class Marker:
    """What one marker says; `problem` says what could not be read, and then nothing else is said."""

    __slots__ = ("capture", "is_broken", "path", "problem", "scope", "told")

    def __init__(self, path: str = "", values: dict[str, object] | None = None, problem: str = "") -> None:
        values = values or {}
        recall, briefing, memory = (_table(values, name) for name in ("recall", "briefing", "memory"))
        self.path = path
        #: It could not be read at all.
        self.is_broken = bool(problem)
        self.scope = _scope_of(values)
        if path and not self.scope and not problem:
            problem = f"{path}: workspace is missing, so its project is not used"
        self.problem = problem
        #: What hooks tell the server, as fields of the query.
        self.told = {
            **self.scope,
            "drop_subagent": "1" if _is_true(values.get("drop_subagent_captures")) else "",
            "default_global": "1" if _is_true(recall.get("default_global")) else "",
            "briefing": "1" if _is_true(briefing.get("inject_on_session_start")) else "",
            "briefing_budget": _number(briefing.get("max_chars")),
            **{name: _bound(memory.get(key)) for name, key in _BOUNDS.items()},
        }
        #: The `[capture]` table as it stands there; a marker that cannot be read may have wished anything.
        self.capture = values.get("capture") if values else ("unreadable" if problem else None)

    @property
    def root(self) -> str:
        return os.path.dirname(self.path)


def marker_for(cwd: str, home: str) -> Marker:
    """The marker that counts in `cwd`: the first one upwards, never merged with another. Never raises.

    Inside the home the search ends at the home; elsewhere at the root of the repository, and where there is
    none it does not leave `cwd`: nobody else's directory above speaks for this one.
    """
    for directory in _upwards(cwd, home):
        path = os.path.join(directory, NAME)
        if os.path.isfile(path):
            return _read(path)
    return Marker()


def _upwards(cwd: str, home: str) -> list[str]:
    if not os.path.isabs(cwd):
        return []
    cwd, home = os.path.normpath(cwd), os.path.normpath(home) if home else ""
    chain = [cwd]
    while len(chain) < _LEVELS_MAX and os.path.dirname(chain[-1]) != chain[-1]:
        chain.append(os.path.dirname(chain[-1]))
    if home in chain:
        return chain[: chain.index(home) + 1]
    for count, directory in enumerate(chain, 1):
        if os.path.exists(os.path.join(directory, ".git")):
            return chain[:count]
    return [cwd]


def _read(path: str) -> Marker:
    import tomllib

    try:
        with open(path, "rb") as file:
            data = file.read(limits.MARKER_MAX_BYTES + 1)
        if len(data) > limits.MARKER_MAX_BYTES:
            return Marker(path, problem=f"{path} is longer than {limits.MARKER_MAX_BYTES} bytes")
        return Marker(path, tomllib.loads(data.decode("utf-8-sig")))
    except (OSError, ValueError, RecursionError) as error:
        # What tomllib says names a line and a sign; other errors may carry bytes of the file.
        said = str(error) if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        return Marker(path, problem=f"{path} cannot be read: {said}")


def _scope_of(values: dict[str, object]) -> dict[str, str]:
    workspace, project = values.get("workspace"), values.get("project")
    if not isinstance(workspace, str) or not workspace.strip():
        return {}
    scope = {"workspace": workspace.strip()}
    if isinstance(project, str) and project.strip():
        return {**scope, "project": project.strip()}
    if values.get("project_strategy") in ("repo-root", "repo_root"):
        return {**scope, "project_strategy": "repo-root"}
    return scope


def _table(values: dict[str, object], name: str) -> dict[str, object]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, int | str) and str(value).strip().lower() in _TRUE)


def _bound(value: object) -> str:
    """A bound of what is recalled, for the server, which takes the stricter one; what is no number allows nothing."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else "none"


def _number(value: object) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else ""
