"""Changes of knowledge that somebody asks for: remember, activate, pin, unpin, forget.

Each names the directory or the project that it is about, and changes nothing of any other: what belongs elsewhere is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.commands import Answer, command, knowledge_entries
from memory_core.commands.knowledge_entries import said_by
from memory_core.commands.scopes import Scope as Place
from memory_core.commands.scopes import ScopeRequest, ensure, resolve
from memory_core.domain import place
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import (
    MANUAL_CONFIDENCE,
    Origin,
    checked_content,
    checked_key,
    directory_of_project,
    page_paths,
)
from memory_core.domain.page import check_may_write
from memory_core.errors import Conflict, CoreError, Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import knowledge, knowledge_sources, projects, sessions
from memory_core.store.audit import record
from memory_core.store.knowledge import Entry
from memory_core.store.knowledge_changes import Said
from memory_core.store.knowledge_lists import Scope
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class Where:
    """Whose knowledge a change is about: a directory (host, device, inode; `path` describes it), a project by its names, or both."""

    host: str | None = None
    device: str | None = None
    inode: str | None = None
    path: str | None = None
    workspace: str | None = None
    project: str | None = None

    @property
    def directory(self) -> DirectoryId | None:
        """Raises `Invalid` for half a directory."""
        parts = (self.host, self.device, self.inode)
        if all(part is None for part in parts):
            return None
        host, device, inode = (part or "" for part in parts)
        named = DirectoryId(host=host, device=device, inode=inode)
        named.check()
        return named


def scope_of(reading: Reading, where: Where) -> Scope:
    """Raises `Invalid` where nothing is named, `NotFound` for a project that is not there."""
    project_id = None
    if where.project or where.workspace:
        row = projects.named(reading, *_names(where))
        if row is None:
            raise NotFound("there is no such project; nothing is known of it")
        project_id = row["id"]
    return Scope(directory=where.directory, project_id=project_id)


def _names(where: Where) -> tuple[str, str]:
    text = (where.project or "").strip()
    name = text if text == place.GLOBAL_PROJECT else place.name_from(text)
    if not name:
        raise Invalid("workspace alone names no project: give project too")
    return place.name_from(where.workspace or "") or place.DEFAULT_WORKSPACE, name


def entry_in(reading: Reading, where: Where, text: str) -> Entry:
    """The entry of an id, if it is in that directory and project; `NotFound` otherwise."""
    scope, entry = scope_of(reading, where), knowledge.by_id(reading, id_bytes(text))
    if entry is None or not scope.holds(entry):
        raise NotFound("nothing is known under that id there")
    return entry


# --- remember ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Remember:
    """Know `content` under `key`, by hand. Without a directory: that of the one entry of this key in the project, else the project's own."""

    where: Where
    key: str
    content: str
    pinned: bool | None = None
    #: The durable session that it was learnt in.
    session_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Target:
    """What a change is about, there or not yet."""

    entry: Entry | None
    directory: DirectoryId | None
    place: Place | None


@command(Remember, name="remember")
def remember(body: Remember, tx: Transaction) -> Answer | Refusal:
    """Answer: the entry (`told`) and `changed`, false where it said so already, by hand."""
    try:
        key, content = checked_key(body.key), checked_content(body.content)
        target = _target(tx, body, key)
        session = knowledge_sources.of_session(tx, id_bytes(body.session_id)) if body.session_id else None
        if body.session_id and (session is None or not _is_of(session, target)):
            raise NotFound("there is no such session in that directory or project")
        check_may_write(next(page_paths(directory_of_project(b"\0" * 16), key)), tx.token_scope)
        said = Said(
            content=content,
            confidence=MANUAL_CONFIDENCE,
            origin=Origin.MANUAL,
            provenance=session.provenance if session else None,
            source_session_id=session.id if session else None,
        )
        if target.entry is not None and _says_so(target.entry, content, body.pinned):
            return told(target.entry, changed=False)
        if target.entry is not None:
            knowledge_entries.next_version(tx, target.entry)
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    entry = target.entry
    project_id = entry.project_id if entry else ensure(tx, _needed(target.place))
    try:
        made = knowledge_entries.learn(
            tx,
            said,
            entry=entry,
            project_id=project_id,
            directory=entry.directory if entry else target.directory or directory_of_project(project_id),
            key=key,
            pinned=body.pinned,
        )
    except Conflict as error:
        return Refusal(code=error.code, message=str(error))
    _record(tx, "remember", made)
    return told(made, changed=True)


def _target(reading: Reading, body: Remember, key: str) -> _Target:
    where, directory = body.where, body.where.directory
    if directory is not None:
        entry = knowledge.by_identity(reading, directory, key)
        return _Target(
            entry=entry,
            directory=directory,
            place=None if entry else _place(reading, where, directory, body.session_id),
        )
    if not where.project:
        raise Invalid(
            "say whose knowledge it is: a directory (host, device, inode), or workspace and project"
        )
    found = _place(reading, where, None, None)
    known = knowledge.by_key(reading, found.project_id, key) if found.project_id else []
    if len(known) > 1:
        raise Conflict(f"several directories of {found.project} know this key; name the directory too")
    return _Target(entry=known[0] if known else None, directory=None, place=found)


def _place(reading: Reading, where: Where, directory: DirectoryId | None, session_id: str | None) -> Place:
    """The project of a new entry: the named one, that of the session, of the last session in that directory, of its path."""
    if where.project or where.workspace:
        workspace, name = _names(where)
        row = projects.named(reading, workspace, name)
        return Place(workspace=workspace, project=name, project_id=row["id"] if row is not None else None)
    row = sessions.one(reading, id_bytes(session_id)) if session_id else None
    project_id = row["project_id"] if row is not None else None
    if project_id is None and directory is not None:
        project_id = knowledge_sources.project_of_directory(reading, directory)
    found = projects.by_id(reading, project_id) if project_id else None
    if found is not None:
        return Place(workspace=found["workspace"], project=found["name"], project_id=found["id"])
    if not where.path:
        raise Invalid("nothing is known of that directory yet: give its path, or workspace and project")
    return resolve(reading, ScopeRequest(cwd=where.path))


def _is_of(session: knowledge_sources.SourceSession, target: _Target) -> bool:
    """Whether a session took place where an entry belongs."""
    directory = target.directory or (target.entry.directory if target.entry else None)
    if session.directory is not None and directory is not None:
        return session.directory == directory
    project_id = (
        target.entry.project_id if target.entry else (target.place.project_id if target.place else None)
    )
    return session.project_id == project_id


def _says_so(entry: Entry, content: str, pinned: bool | None) -> bool:
    return (
        not entry.is_forgotten
        and entry.page_is_live
        and entry.content == content
        and entry.origin is Origin.MANUAL
        and pinned in (None, entry.pinned)
    )


def _needed(found: Place | None) -> Place:
    if found is None:
        raise NotFound("the entry's project is not there any more")
    return found


# --- activate, pin, forget -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ActivateKnowledge:
    """Make a version that there is the one that holds."""

    where: Where
    entry: str
    version: int


@command(ActivateKnowledge, name="activate_knowledge")
def activate_knowledge(body: ActivateKnowledge, tx: Transaction) -> Answer | Refusal:
    """Answer: the entry and `changed`. No version is made; an entry that was forgotten is known again."""
    try:
        entry = entry_in(tx, body.where, body.entry)
        # A greater number than any column holds is no version either.
        said = said_by(tx, entry, body.version) if 0 < body.version <= limits.KNOWLEDGE_VERSION_MAX else None
        if said is None:
            raise NotFound(f"this entry has no version {body.version} (any more)")
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    if entry.version == body.version and not entry.is_forgotten:
        return told(entry, changed=False)
    try:
        made = knowledge_entries.point_to(tx, entry, body.version, said, pinned=entry.pinned)
    except Conflict as error:
        return Refusal(code=error.code, message=str(error))
    _record(tx, "activate_knowledge", made)
    return told(made, changed=True)


@dataclass(frozen=True, kw_only=True)
class PinKnowledge:
    """Keep an entry from ageing and from automatic change, or let go of it (`pinned` false)."""

    where: Where
    entry: str
    pinned: bool = True


@command(PinKnowledge, name="pin_knowledge")
def pin_knowledge(body: PinKnowledge, tx: Transaction) -> Answer | Refusal:
    """Answer: the entry and `changed`."""
    try:
        entry = entry_in(tx, body.where, body.entry)
        if entry.is_forgotten and body.pinned:
            raise Conflict("this entry is forgotten: activate a version of it first, or remember it again")
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    said = said_by(tx, entry, entry.version)
    if said is None or entry.is_forgotten or entry.pinned == body.pinned:
        return told(entry, changed=False)
    try:
        made = knowledge_entries.point_to(tx, entry, entry.version, said, pinned=body.pinned)
    except Conflict as error:
        return Refusal(code=error.code, message=str(error))
    _record(tx, "pin_knowledge" if body.pinned else "unpin_knowledge", made)
    return told(made, changed=True)


@dataclass(frozen=True, kw_only=True)
class ForgetKnowledge:
    """Hide an entry, its pin, its page and its file. Its versions stay, and `activate_knowledge` brings it back."""

    where: Where
    entry: str


@command(ForgetKnowledge, name="forget_knowledge")
def forget_knowledge(body: ForgetKnowledge, tx: Transaction) -> Answer | Refusal:
    """Answer: the entry and `changed`, false where it was forgotten before: then nothing is written."""
    try:
        entry = entry_in(tx, body.where, body.entry)
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    if entry.is_forgotten:
        return told(entry, changed=False)
    knowledge_entries.forget(tx, entry, Origin.MANUAL, MANUAL_CONFIDENCE)
    _record(tx, "forget_knowledge", entry)
    return told(knowledge.by_id(tx, entry.id) or entry, changed=True)


def told(entry: Entry, *, changed: bool) -> dict[str, Any]:
    """id, key, version, confidence, pinned, forgotten, path, workspace, project, changed."""
    return {
        "id": id_text(entry.id),
        "key": entry.key,
        "version": entry.version,
        "confidence": entry.confidence,
        "pinned": entry.pinned,
        "forgotten": entry.is_forgotten,
        "path": entry.page_path,
        "workspace": entry.workspace,
        "project": entry.project,
        "changed": changed,
    }


def _record(tx: Transaction, what: str, entry: Entry) -> None:
    record(
        tx,
        what,
        project_id=entry.project_id,
        page_id=entry.page_id,
        detail={"entry": id_text(entry.id), "version": entry.version},
    )
