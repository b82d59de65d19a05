"""Bringing an older state of a page back: as a new version, so that nothing after it is lost.

The state is found outside of the writer (`PageHistory`), in the version chain or in git, and written like any other
version.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands import Answer, command, knowledge_pages
from memory_core.commands.checkpoints import checkpoint
from memory_core.commands.files import external_version
from memory_core.commands.pages import check_file, store_version
from memory_core.commands.versions import PageDraft, new_version
from memory_core.config import Settings
from memory_core.domain.command import Refusal
from memory_core.domain.page import PagePath, check_not_reserved, page_path
from memory_core.domain.project import Project
from memory_core.errors import Conflict, CoreError, Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import git_batches, pages, projects
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki import front_matter
from memory_core.wiki.git import Git, revision
from memory_core.wiki.git_repository import LogEntry, Repository
from memory_core.wiki.layout import META, file_of, project_directory, read_meta


@dataclass(frozen=True, kw_only=True)
class RestorePage:
    """Make `content` (a whole file) the newest version of a page that there is, or was. `origin` says where it is from."""

    workspace: str
    project: str
    path: str
    content: str
    origin: str
    base_version: str | None = None


@command(RestorePage, name="restore_page")
def restore_page(body: RestorePage, tx: Transaction) -> Answer | Refusal:
    """Answer: page_id, version_id, path, workspace, project, changed, pre_checkpoint, checkpoint (ids; their commits follow)."""
    try:
        project, path, before = _target(tx, body)
        check_file(tx, file_of(project, path))
        version = _version(tx, body, project, path, before)
        revived = knowledge_pages.buried_page(knowledge_pages.entry_at(tx, project.id, path, before))
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    told = {"workspace": project.workspace, "project": project.name, "path": path.path}
    if before is not None and before.content == version.content and before.sha256 == version.sha256:
        known = git_batches.newest(tx)
        ids = dict.fromkeys(("pre_checkpoint", "checkpoint"), id_text(known.id) if known else None)
        return (
            told
            | ids
            | {
                "page_id": id_text(before.id),
                "version_id": id_text(before.version_id),
                "changed": False,
            }
        )
    earlier = checkpoint(tx)
    page_id, version_id = store_version(tx, project, path, before, version, revived=revived)
    return told | {
        "page_id": id_text(page_id),
        "version_id": id_text(version_id),
        "changed": True,
        "pre_checkpoint": earlier,
        "checkpoint": checkpoint(tx, f"restore {file_of(project, path)} from {body.origin}"),
    }


def _target(reading: Reading, body: RestorePage) -> tuple[Project, PagePath, pages.StoredPage | None]:
    row = projects.named(reading, body.workspace, body.project)
    if row is None:
        raise NotFound(f"there is no project {body.workspace}/{body.project}")
    project, path = Project.from_row(row), page_path(body.path)
    check_not_reserved(path)
    before = pages.page_at(reading, project.id, path.key)
    if body.base_version and id_bytes(body.base_version) != (before.version_id if before else None):
        raise Conflict(f"{path.path} was changed since you read it; look at it again before you restore it")
    return project, page_path(before.path) if before else path, before


def _version(
    tx: Transaction, body: RestorePage, project: Project, path: PagePath, before: pages.StoredPage | None
) -> pages.NewVersion:
    content = body.content.encode()
    if len(content) > limits.PAGE_BODY_MAX_BYTES + limits.FRONT_MATTER_MAX_BYTES:
        raise Invalid("that state of the page is longer than a page may be")
    if problem := front_matter.read(body.content).problem:
        raise Invalid(f"that state of the page cannot be read: {problem}")
    draft = PageDraft(path=path, body=body.content, cause="restore")
    if knowledge_pages.entry_at(tx, project.id, path, before) is not None:
        # Its front matter says which version of its entry it is now, and a pin is not undone by an older state.
        return new_version(knowledge_pages.draft_for(tx, project.id, draft, before), before, tx.principal)
    version = external_version(path, body.content, hashlib.sha256(content).digest())
    return replace(version, cause=draft.cause, actor=tx.principal)


# --- finding an older state (in the gate) --------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OldState:
    """A page's whole file as it once was, and what it is now (None: deleted, or never there)."""

    content: str
    origin: str
    now: pages.StoredPage | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where an older state lies: here (`content`), or in git at `path` of the project in `commit` (None: the commit of the batch
    `source`)."""

    now: pages.StoredPage | None
    project: Project
    path: str
    source: str
    content: str | None = None
    commit: str | None = None
    #: It is a checkpoint whose commit is not in the books yet; git may have it.
    is_waiting: bool = False


class PageHistory:
    """Looks into version chain and git; writes nothing."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._repository = Repository(Git(settings.wiki, settings.tmp_dir), clock)

    def checkpoints(
        self, count: int, project: Project | None = None, path: PagePath | None = None
    ) -> list[LogEntry]:
        """The newest commits, of one page or project where it is given, memoryd's and people's; none without a repository."""
        places = _places(project, path) if project is not None else ()
        try:
            return self._repository.log(count, *places)
        except NotFound:
            return []

    def find(self, reading: Reading, project: Project, path: PagePath, source: str) -> Found:
        """What the database knows of `source`: a version id, a checkpoint id, or a commit in hexadecimal.

        Raises `Invalid`.
        """
        now = pages.page_at(reading, project.id, path.key)
        found = Found(now=now, project=project, path=now.path if now else path.path, source=source)
        if "-" not in source:
            return replace(found, commit=revision(source))
        wanted = id_bytes(source)
        content = pages.version_content(reading, project.id, path.key, wanted)
        if content is not None:
            return replace(found, source=f"version {id_text(wanted)}", content=content)
        batch = git_batches.by_id(reading, wanted)
        return replace(
            found,
            source=id_text(wanted),
            commit=batch.commit_id if batch is not None else None,
            is_waiting=batch is not None and batch.commit_id is None,
        )

    def load(self, found: Found) -> OldState:
        """The whole file, from git where the database does not have it. Raises `NotFound`, `Invalid`, and `Conflict`
        for a checkpoint that is not committed yet. Call it without a snapshot."""
        if found.content is not None:
            return OldState(content=found.content, origin=found.source, now=found.now)
        commit = found.commit or self._repository.find_batch(found.source)
        if commit is None and found.is_waiting:
            raise Conflict("that checkpoint is not committed yet; try again in a few seconds")
        if commit is None:
            raise NotFound(f"{found.source} is neither a version of this page nor a checkpoint")
        try:
            text = self._content(commit, found.project, found.path).decode()
        except UnicodeDecodeError as error:
            raise Invalid(f"{found.path} in commit {commit[:12]} is no UTF-8 text") from error
        return OldState(content=text, origin=f"commit {commit[:12]}", now=found.now)

    def _content(self, commit: str, project: Project, path: str) -> bytes:
        folder = next(
            (place for place in _places(project, None) if self._is_home(commit, project, place)),
            project_directory(project),
        )
        limit = limits.PAGE_BODY_MAX_BYTES + limits.FRONT_MATTER_MAX_BYTES
        return self._repository.content(commit, f"{folder}/{path}", limit)

    def _is_home(self, commit: str, project: Project, folder: str) -> bool:
        """Whether the project lay in that folder then."""
        with suppress(NotFound, Invalid, UnicodeDecodeError):
            text = self._repository.content(commit, f"{folder}/{META}", limits.FRONT_MATTER_MAX_BYTES)
            said = read_meta(text.decode())
            return said is not None and said.id == project.id
        return False


def _places(project: Project, path: PagePath | None) -> tuple[str, ...]:
    """A page's file, or the folder of a whole project: where it lies, and where it lay, the newest place first."""
    folders = (project_directory(project), *reversed(project.earlier_folders))
    return tuple(f"{folder}/{path.path}" if path else folder for folder in folders)
