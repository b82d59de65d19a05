"""Which directory of the wiki is a project's: given when the project is made, followed when somebody renames it."""

from __future__ import annotations

from dataclasses import replace

from memory_core import limits
from memory_core.domain.page import short_hash
from memory_core.domain.project import Project
from memory_core.ids import id_text
from memory_core.store import git_batches, outbox, projects, wiki_files
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction
from memory_core.wiki.layout import project_directory, usual_directory


def add_project(
    tx: Transaction,
    *,
    workspace: str,
    name: str,
    repo_path: str | None = None,
    project_id: bytes | None = None,
    folder: str | None = None,
) -> bytes:
    """Make a project and give it a directory that no other one has: the usual one, `folder` where its files lie already."""
    project_id = project_id or tx.new_id()
    made = Project(id=project_id, number=0, name=name, workspace=workspace, folder=folder)
    if folder == usual_directory(made):
        made = replace(made, folder=None)
    if projects.in_folder(tx, project_directory(made)) is not None:
        made = replace(made, folder=_spare(made))
    return projects.add(
        tx, workspace=workspace, name=name, repo_path=repo_path, project_id=project_id, folder=made.folder
    )


def move_project(tx: Transaction, project: Project, old_folder: str, new_folder: str) -> bool:
    """A project's directory has another name: from now on its pages lie there. False where it lies elsewhere by now.

    A project that was thought to lie there gets a directory of its own name; where somebody exchanged the two, it is found
    in the old one next.
    """
    row = projects.by_id(tx, project.id)
    if row is None or project_directory(Project.from_row(row)) != old_folder:
        return False
    for other in map(Project.from_row, projects.listed(tx, limit=limits.PROJECTS_LOOKED_AT_MAX)):
        if other.id != project.id and project_directory(other) == new_folder:
            _settle(tx, other, _spare(other))
    _settle(tx, Project.from_row(row), new_folder)
    return True


def _settle(tx: Transaction, project: Project, folder: str) -> None:
    old = project_directory(project)
    earlier = [name for name in (*project.earlier_folders, old) if name != folder]
    kept = list(dict.fromkeys(reversed(earlier)))[: limits.EARLIER_FOLDERS_MAX][::-1]
    projects.set_folder(tx, project.id, None if folder == usual_directory(project) else folder, kept)
    outbox.refolder(tx, project.id, old, folder)
    wiki_files.refolder(tx, project.id, old, folder)
    git_batches.note_all(tx, project.id)
    record(tx, "move_project", project_id=project.id, detail={"from": old, "to": folder})


def _spare(project: Project) -> str:
    return f"{usual_directory(project)}-{short_hash(id_text(project.id))}"
