"""What a version of a page is made of: a draft, the text's own front matter, and the version before."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory_core import limits
from memory_core.domain.front_matter import PageFacts, facts_from
from memory_core.domain.knowledge import read_head
from memory_core.domain.links import links_in
from memory_core.domain.page import PagePath, Tier, clean_title, kind_for, title_of
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.store.links import LinkTarget
from memory_core.store.pages import NewVersion, StoredPage
from memory_core.wiki import front_matter
from memory_core.wiki.layout import file_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PageDraft:
    """A page as somebody wants it. What is None is taken from the text's own front matter, then from the version before."""

    path: PagePath
    body: str
    title: str | None = None
    kind: str | None = None
    tier: Tier | None = None
    tags: tuple[str, ...] | None = None
    pinned: bool | None = None
    #: UTC microseconds.
    expires_at: int | None = None
    #: Why there is a new version: `write`, `session`, `external`, …
    cause: str = "write"
    session_id: bytes | None = None
    #: The version that the writer of this draft had read; another latest one is a `Conflict`.
    base_version: bytes | None = None
    #: Further keys of the front matter that are memoryd's own, with JSON values.
    own_keys: Mapping[str, Any] = field(default_factory=dict[str, Any])


def new_version(draft: PageDraft, before: StoredPage | None, actor: str) -> NewVersion:
    """The version that `draft` makes, written by `actor`; `Invalid` where its front matter cannot be taken.

    Keys of the version before that the draft does not mention stay. The name of who wrote the page last
    is put right where the page says it, and alone makes no new version. Lines end as they do in the version before.
    """
    older = front_matter.read(before.content) if before else None
    text = front_matter.with_newlines(draft.body, older.newline) if older else draft.body
    own = front_matter.read(text)
    if own.problem:
        raise Invalid(own.problem)
    facts, problems = facts_from(own.values)
    if problems:
        raise Invalid("the page's front matter: " + "; ".join(problems))
    if facts.slot_kind and not draft.path.is_slot:
        raise Invalid("slot_kind is for pages in _slots/")
    if older and older.is_unread and len(older.text.encode()) > limits.FRONT_MATTER_MAX_BYTES:
        raise Invalid(
            f"the front matter in the file of {draft.path.path} is longer than {limits.FRONT_MATTER_MAX_BYTES // limits.KIB} KB, and"
            " a rewrite could not keep it; shorten it in the file first"
        )
    body = text[own.body_start :]
    said, kind = _settled(draft, facts, before, body)

    def rendered(author: str | None) -> tuple[str, int]:
        return front_matter.render(
            replace(said, last_modified_by=author),
            body,
            head=own,
            older=older,
            implied_kind=kind_for(draft.path),
            own=draft.own_keys,
        )

    content, body_start = rendered(None)
    names_author = "last_modified_by" in own.values or (older and "last_modified_by" in older.values)
    if names_author and (before is None or content != before.content):
        content, body_start = rendered(actor)
    return NewVersion(
        title=said.title or draft.path.stem,
        kind=kind,
        tier=said.tier or Tier.SEMANTIC,
        tags=said.tags or (),
        pinned=bool(said.pinned),
        expires_at=said.expires_at,
        content=content,
        body_start=body_start,
        sha256=hashlib.sha256(content.encode()).digest(),
        path=draft.path.path,
        cause=draft.cause,
        session_id=draft.session_id,
        actor=actor,
        entities=_declared(facts, older),
        shows=read_head({**(older.values if older else {}), **own.values}),
    )


def _declared(facts: PageFacts, older: front_matter.FrontMatter | None) -> tuple[str, ...]:
    """The entities that the front matter will say: a key that the text leaves out stays as it was."""
    if facts.entities is None and older is not None:
        facts, _ = facts_from(older.values)
    return facts.entities or ()


def _settled(draft: PageDraft, own: PageFacts, before: StoredPage | None, body: str) -> tuple[PageFacts, str]:
    """What the front matter will say, and the page's kind (said in it only where the path does not say it)."""
    title = clean_title(draft.title or "") or own.title or title_of(body) or (before.title if before else "")
    path_kind = kind_for(draft.path)
    kind = draft.kind or own.kind or (before.kind if before else None) or path_kind
    tags = draft.tags if draft.tags is not None else own.tags
    pinned = draft.pinned if draft.pinned is not None else own.pinned
    facts = PageFacts(
        title=title or draft.path.stem,
        kind=kind if kind != path_kind else None,
        tier=draft.tier or own.tier or (before.tier if before else Tier.SEMANTIC),
        tags=tags if tags is not None else (before.tags if before else ()),
        pinned=True
        if draft.path.is_slot
        else (pinned if pinned is not None else bool(before and before.pinned)),
        # A page written anew does not inherit the end of what it replaces.
        expires_at=draft.expires_at if draft.expires_at is not None else own.expires_at,
    )
    return facts, kind


def link_targets(project: Project, path: PagePath, body: str) -> list[LinkTarget]:
    """Each page that a page's text points to, once, itself left out; at most `LINKS_MAX`."""
    found: dict[tuple[str, str, str], LinkTarget] = {}
    for link in links_in(body, path):
        workspace, name = link.workspace or project.workspace, link.project or project.name
        if (workspace, name) == (project.workspace, project.name):
            if link.target.key == path.key:
                continue
            workspace = name = ""
        target = LinkTarget(path=link.target, workspace=workspace, project=name)
        found.setdefault((workspace, name, link.target.key), target)
        if len(found) > limits.LINKS_MAX:
            found.popitem()
            logger.warning(
                "a page points to more pages than are kept; the first ones count",
                extra={"action": "links_cut", "file": file_of(project, path), "links": limits.LINKS_MAX},
            )
            break
    return list(found.values())
