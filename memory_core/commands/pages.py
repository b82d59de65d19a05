"""Writing and deleting pages."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.commands import Answer, command, knowledge_pages
from memory_core.commands.checkpoints import checkpoint
from memory_core.commands.folders import add_project
from memory_core.commands.removing import remove_page
from memory_core.commands.versions import PageDraft, link_targets, new_version
from memory_core.domain import place
from memory_core.domain.command import Refusal
from memory_core.domain.front_matter import (
    expiry_from,
    kind_named,
    tags_from,
    tier_named,
)
from memory_core.domain.page import (
    PagePath,
    check_may_write,
    clean_title,
    name_for_new_page,
    one_line,
    page_path,
    path_for_title,
)
from memory_core.domain.project import Project
from memory_core.errors import Conflict, CoreError, Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import links, pages, projects
from memory_core.store.audit import record
from memory_core.store.outbox import ABSENT, promise_file, state_of
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki import front_matter
from memory_core.wiki.layout import file_of


@dataclass(frozen=True, kw_only=True)
class PutPage:
    """What became of a draft. `changed` is false when the page said exactly that already."""

    page_id: bytes
    version_id: bytes
    path: str
    #: Relative to the wiki root.
    file: str
    changed: bool


@dataclass(frozen=True, kw_only=True)
class _Plan:
    draft: PageDraft
    before: pages.StoredPage | None
    version: pages.NewVersion
    #: A deleted page that this version brings back: that of an entry which was forgotten.
    revived: bytes | None


def put_page(tx: Transaction, project_id: bytes, draft: PageDraft) -> PutPage:
    """Make `draft` the latest version of its page: rows, index and the promise of its file, in this transaction.

    Raises `Invalid`, `Conflict` or `NotFound` (of the project) before anything is written. Text and
    titles must be redacted already.
    """
    project = project_of(tx, project_id)
    return _carry_out(tx, project, _plan(tx, project, draft, tx.principal, tx.token_scope))


def project_of(reading: Reading, project_id: bytes) -> Project:
    row = projects.by_id(reading, project_id)
    if row is None:
        raise NotFound("the project of that page is not there any more")
    return Project.from_row(row)


def _plan(reading: Reading, project: Project | None, draft: PageDraft, actor: str, token_scope: str) -> _Plan:
    if draft.cause != "external":
        check_may_write(draft.path, token_scope)
    if len(draft.body.encode()) > limits.PAGE_BODY_MAX_BYTES:
        raise Invalid(f"a page has at most {limits.PAGE_BODY_MAX_BYTES // limits.KIB} KB; split it")
    before = pages.page_at(reading, project.id, draft.path.key) if project else None
    latest = before.version_id if before else None
    if draft.base_version is not None and draft.base_version != latest:
        raise Conflict(
            f"{draft.path.path} was changed since you read it; read it again and write with base_version "
            f"{id_text(latest) if latest else '(it is deleted: none)'}"
        )
    draft = knowledge_pages.draft_for(reading, project.id if project else None, draft, before)
    entry = knowledge_pages.entry_at(reading, project.id if project else None, draft.path, before)
    version = new_version(draft, before, actor)
    revived = knowledge_pages.buried_page(entry)
    return _Plan(draft=draft, before=before, version=version, revived=revived)


def _carry_out(tx: Transaction, project: Project, plan: _Plan) -> PutPage:
    before, version, path = plan.before, plan.version, plan.draft.path
    if before is not None:
        # The page keeps the spelling it has on disk.
        path = page_path(before.path)
    file = file_of(project, path)
    if before is not None and before.sha256 == version.sha256 and before.content == version.content:
        return PutPage(
            page_id=before.id, version_id=before.version_id, path=path.path, file=file, changed=False
        )
    page_id, version_id = store_version(tx, project, path, before, version, revived=plan.revived)
    return PutPage(page_id=page_id, version_id=version_id, path=path.path, file=file, changed=True)


def store_version(
    tx: Transaction,
    project: Project,
    path: PagePath,
    before: pages.StoredPage | None,
    version: pages.NewVersion,
    *,
    found: str | None = None,
    is_on_disk: bool = False,
    revived: bytes | None = None,
) -> tuple[bytes, bytes]:
    """Write a version, its index row, its links and the promise of its file; the ids of page and version.

    `found` is what the file holds by our books (default: what the version before has). Where the file
    holds the version already (`is_on_disk`), nothing is promised. `revived` is a deleted page that the version is of, where
    there is none `before`. What the page shows of knowledge follows it.
    """
    if before is None and revived is not None:
        before, found = pages.bring_back(tx, revived), ABSENT
    if before is None:
        page_id, version_id = pages.add_page(tx, project, path, version)
    else:
        page_id, version_id = before.id, pages.supersede(tx, project, before, version)
    targets = link_targets(project, path, version.content[version.body_start :])
    if targets or before is not None:
        links.replace(tx, project, page_id, targets)
    if not is_on_disk:
        promise_file(
            tx,
            project.id,
            page_id=page_id,
            file=file_of(project, path),
            found=found or state_of(before.sha256 if before else None),
            version_id=version_id,
            sha256=version.sha256,
        )
    record(
        tx,
        "supersede_page" if before else "create_page",
        project_id=project.id,
        page_id=page_id,
        detail={
            "cause": version.cause,
            "version": id_text(version_id),
            "bytes": len(version.content.encode()),
        },
    )
    knowledge_pages.follow(tx, project, page_id, version)
    return page_id, version_id


def check_file(tx: Transaction, file: str) -> None:
    """Raise `Conflict` where a page's file (relative to the wiki root) could not be put in place: what lies there is a person's."""
    if (found := tx.obstacle(file)) is not None:
        raise Conflict(f"nothing was written, because of the file {file}: {found.reason}")


# --- the commands --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WritePage:
    """Write a page. `workspace` and `project` are names and are made when missing; without a path the title gives one."""

    workspace: str
    project: str
    body: str
    path: str | None = None
    title: str | None = None
    kind: str | None = None
    tier: str | None = None
    tags: tuple[str, ...] | None = None
    pinned: bool | None = None
    #: RFC 3339, or a day (its end, UTC).
    expires_at: str | None = None
    base_version: str | None = None
    session_id: str | None = None


@command(WritePage, name="write_page")
def write_page(body: WritePage, tx: Transaction) -> Answer | Refusal:
    """Answer: page_id, version_id, path, workspace, project, changed, index_status."""
    try:
        workspace, name = _names(body.workspace, body.project)
        row = projects.named(tx, workspace, name)
        project = Project.from_row(row) if row is not None else None
        plan = _plan(tx, project, _draft(body), tx.principal, tx.token_scope)
        there = project or Project(id=b"", number=0, workspace=workspace, name=name)
        check_file(tx, file_of(there, page_path(plan.before.path) if plan.before else plan.draft.path))
    except CoreError as error:
        return _refused(error)
    if project is None:
        project = project_of(tx, add_project(tx, workspace=workspace, name=name))
    done = _carry_out(tx, project, plan)
    return {
        "page_id": id_text(done.page_id),
        "version_id": id_text(done.version_id),
        "path": done.path,
        "workspace": project.workspace,
        "project": project.name,
        "changed": done.changed,
        "index_status": "indexed",
    }


def _draft(body: WritePage) -> PageDraft:
    own = front_matter.read(body.body)
    title = body.title or ""
    if body.path is not None:
        path = page_path(body.path)
    else:
        # By the whole title, of which the page itself shows only the beginning.
        title = one_line(title) or one_line(str(own.values.get("title") or ""))
        title = title or name_for_new_page(body.body[own.body_start :])
        path = path_for_title(title)
    return PageDraft(
        path=path,
        body=body.body,
        title=clean_title(title) or None,
        kind=kind_named(body.kind) if body.kind else None,
        tier=tier_named(body.tier) if body.tier else None,
        tags=tags_from(body.tags) if body.tags is not None else None,
        pinned=body.pinned,
        expires_at=expiry_from(body.expires_at) if body.expires_at else None,
        base_version=id_bytes(body.base_version) if body.base_version else None,
        session_id=id_bytes(body.session_id) if body.session_id else None,
    )


@dataclass(frozen=True, kw_only=True)
class DeletePage:
    """Delete the page at a path: hidden from everything, its file goes away, its versions stay. Deleting twice is no error."""

    workspace: str
    project: str
    path: str
    base_version: str | None = None


@command(DeletePage, name="delete_page")
def delete_page(body: DeletePage, tx: Transaction) -> Answer | Refusal:
    """Answer: path, deleted (always true), existed, and, where something was deleted, page_id, workspace, project, and the
    ids of the checkpoints before and after (their commits follow)."""
    try:
        path = page_path(body.path)
        page, project = _page_to_delete(body, path, tx)
    except CoreError as error:
        return _refused(error)
    if page is None or project is None:
        return {"path": path.path, "deleted": True, "existed": False}
    earlier = checkpoint(tx)
    remove_page(tx, project, page)
    knowledge_pages.forget_page(tx, page.id)
    return {
        "page_id": id_text(page.id),
        "path": page.path,
        "workspace": project.workspace,
        "project": project.name,
        "deleted": True,
        "existed": True,
        "pre_checkpoint": earlier,
        "checkpoint": checkpoint(tx),
    }


def _page_to_delete(
    body: DeletePage, path: PagePath, tx: Transaction
) -> tuple[pages.StoredPage | None, Project | None]:
    row = projects.named(tx, *_names(body.workspace, body.project))
    if row is None:
        return None, None
    project = Project.from_row(row)
    page = pages.page_at(tx, project.id, path.key)
    if page is not None and body.base_version and id_bytes(body.base_version) != page.version_id:
        raise Conflict(f"{page.path} was changed since you read it; read it again before you delete it")
    if page is not None and (found := tx.obstacle(file_of(project, page_path(page.path)))) and found.is_file:
        raise Conflict(
            f"nothing was deleted, because of the file {file_of(project, page_path(page.path))}: {found.reason}"
        )
    return page, project


def _names(workspace: str, project: str) -> tuple[str, str]:
    found = place.project_named(workspace, project)
    if not all(found):
        raise Invalid("a page needs the names of its workspace and project")
    return found


def _refused(error: CoreError) -> Refusal:
    return Refusal(code=error.code, message=str(error))
