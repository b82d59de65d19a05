"""Which project an event or a request belongs to: one rule for capture, handoffs and tools."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.commands.folders import add_project
from memory_core.domain import place as places
from memory_core.store import projects
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class ScopeRequest:
    """What a client says of where it is. Names are explicit wishes, paths are in the client's namespace."""

    workspace: str | None = None
    project: str | None = None
    cwd: str | None = None
    #: `basename` (of cwd) or `repo-root` (of `repo_path`), where no project is named.
    strategy: str = "basename"
    #: Root of the repository that cwd is in, as the client found it (of a worktree: the main one's).
    repo_path: str | None = None
    #: The person's home on the client's machine.
    home: str | None = None


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A project, there already (`project_id`) or not yet."""

    workspace: str
    project: str
    project_id: bytes | None
    #: To be noted as the project's repository, where none is known.
    repo_path: str | None = None


def resolve(read: Reading, request: ScopeRequest) -> Scope:
    """The project that a request means; writes nothing.

    A named project wins. Else the project whose repository holds cwd (the longest path wins), else
    the directory's own name. `/`, a home and a request without any directory mean the default project, and so
    does the reserved global one, which nothing is captured into.
    """
    workspace = places.name_from(request.workspace or "") or places.DEFAULT_WORKSPACE
    cwd = places.plain_path(request.cwd)
    root = places.plain_path(request.repo_path)
    root = root if root and not places.has_dots(root) and not places.is_too_wide(root, request.home) else None
    if wanted := _wanted(request.project):
        if wanted == places.GLOBAL_PROJECT:
            return _found(read, places.DEFAULT_WORKSPACE, places.DEFAULT_PROJECT, None)
        return _found(read, workspace, wanted, root if root == cwd else None)
    use_root = root is not None and request.strategy.replace("_", "-") == "repo-root"
    place = root if use_root else cwd
    if place is None or places.is_too_wide(place, request.home):
        return _found(read, workspace, places.DEFAULT_PROJECT, None)
    parent = projects.above(read, workspace, places.ancestors(place))
    if parent is not None:
        return Scope(workspace=workspace, project=parent["name"], project_id=parent["id"])
    name = places.name_from(places.last_component(place)) or places.DEFAULT_PROJECT
    return _found(read, workspace, name, root if use_root or root == cwd else None)


def ensure(tx: Transaction, found: Scope) -> bytes:
    """The id of a resolved project, which is made if it is not there."""
    if found.project_id is None:
        return add_project(tx, workspace=found.workspace, name=found.project, repo_path=found.repo_path)
    if found.repo_path is not None:
        projects.set_repo_path(tx, found.project_id, found.repo_path)
    return found.project_id


def _wanted(project: str | None) -> str:
    text = (project or "").strip()
    return text if text == places.GLOBAL_PROJECT else places.name_from(text)


def _found(read: Reading, workspace: str, name: str, root: str | None) -> Scope:
    row = projects.named(read, workspace, name)
    if row is None:
        return Scope(workspace=workspace, project=name, project_id=None, repo_path=root)
    is_known = root is None or row["repo_path"] is not None
    return Scope(
        workspace=workspace, project=name, project_id=row["id"], repo_path=None if is_known else root
    )
