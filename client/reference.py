"""Names as memoryd prints them and takes them back: `workspace/project`, and `workspace/project:path` of a page."""

from __future__ import annotations

from memory_core.errors import Invalid


def scoped(workspace: str | None, project: str | None) -> tuple[str | None, str | None]:
    """Workspace and project, also where the project was given as `workspace/project`. Raises `Invalid` for two workspaces."""
    if project is None or "/" not in project:
        return workspace, project
    before, _, name = project.partition("/")
    if workspace not in (None, before):
        raise Invalid(f"--project {project} names the workspace {before}, --workspace says {workspace}")
    return before, name


def placed(path: str, workspace: str | None, project: str | None) -> tuple[str, str | None, str | None]:
    """Path, workspace and project of a page, also where the path was given as `workspace/project:path`.

    No page has a colon in its path, so nothing else is meant by one. Raises `Invalid` where the options name another project.
    """
    workspace, project = scoped(workspace, project)
    where, _, name = path.partition(":")
    if "/" not in where or not name:
        return path, workspace, project
    told_workspace, told_project = scoped(None, where)
    if project not in (None, told_project) or workspace not in (None, told_workspace):
        raise Invalid(f"{path} lies in {where}; leave --project and --workspace out")
    return name, told_workspace, told_project
