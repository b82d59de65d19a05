"""The schema: the one source of what the database holds. The picture is in `docs/data-model.md`."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from memory_core.store.columns import at, provenance, row_id

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# --- the install and who may use it --------------------------------------------------------------

#: One row: who this database is, where it lies, and the epoch of the writer that owns it.
install = Table(
    "install",
    metadata,
    Column("only", Integer, CheckConstraint("only = 1", name="one_row"), primary_key=True),
    Column("id", LargeBinary(16), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("machine", Text, nullable=False),
    Column("device", Integer, nullable=False),
    Column("inode", Integer, nullable=False),
    at("created_at"),
)

principals = Table(
    "principals",
    metadata,
    Column("name", Text, primary_key=True),
    at("created_at"),
)

#: Bearer tokens: only the SHA-256 of the secret is kept.
tokens = Table(
    "tokens",
    metadata,
    Column("public_id", Text, primary_key=True),
    Column("principal", Text, ForeignKey("principals.name"), nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column(
        "scope",
        Text,
        CheckConstraint("scope IN ('admin','write','read','capture','pool')", name="scope"),
        nullable=False,
    ),
    Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=True),
    at("created_at"),
    at("expires_at", nullable=True),
    at("revoked_at", nullable=True),
    #: What people call it.
    Column("name", Text, nullable=False, server_default=text("''")),
)

# --- scopes --------------------------------------------------------------------------------------

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    at("created_at"),
)

projects = Table(
    "projects",
    metadata,
    #: Small number: the project's token inside full-text rows is `p<number>`.
    Column("number", Integer, primary_key=True),
    row_id(),
    Column("workspace_id", LargeBinary(16), ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("repo_path", Text, nullable=True),
    at("created_at"),
    #: Of its pages below the wiki root, where somebody renamed it; NULL: the one that the names give.
    Column("folder", Text, nullable=True),
    #: JSON array of the folders before.
    Column("earlier_folders", Text, nullable=False, server_default=text("'[]'")),
    UniqueConstraint("workspace_id", "name"),
)
Index("ix_projects_folder", projects.c.folder, unique=True, sqlite_where=projects.c.folder.is_not(None))
Index(
    "ix_projects_repo_path",
    projects.c.workspace_id,
    projects.c.repo_path,
    sqlite_where=projects.c.repo_path.is_not(None),
)

# --- capture -------------------------------------------------------------------------------------

sessions = Table(
    "sessions",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    *provenance(),
    #: Agent client by its registered name; open-ended on purpose (no CHECK: clients come and go).
    Column("agent", Text, nullable=False),
    Column("vendor_key", Text, nullable=False),
    Column("cwd", Text, nullable=True),
    Column("model", Text, nullable=True),
    Column("title", Text, nullable=True),
    at("started_at"),
    at("last_event_at"),
    at("ended_at", nullable=True),
    Column("end_reason", Text, nullable=True),
    Column("observation_count", Integer, nullable=False),
    #: Events that were more than a boundary; 0 means that the session leaves nothing.
    Column("substance_count", Integer, nullable=False),
    #: Watermark: the count that the session page was made of; a greater count means late events.
    Column("finalised_count", Integer, nullable=True),
    #: When late events make the page and the handoff anew (debounced); NULL: nothing due.
    at("refinalise_at", nullable=True),
    Column("page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="SET NULL"), nullable=True),
)
Index(None, sessions.c.project_id, sessions.c.last_event_at)
Index(
    "ix_sessions_refinalise_at", sessions.c.refinalise_at, sqlite_where=sessions.c.refinalise_at.is_not(None)
)
Index("ix_sessions_open", sessions.c.last_event_at, sqlite_where=sessions.c.ended_at.is_(None))

#: The capped, redacted projection of one hook event; never edited.
observations = Table(
    "observations",
    metadata,
    Column("seq", Integer, primary_key=True),
    row_id(),
    *provenance(),
    Column("session_id", LargeBinary(16), ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_event", Text, nullable=False),
    Column("extension", Text, nullable=True),
    Column("speaker", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("tool", Text, nullable=True),
    Column("tool_family", Text, nullable=True),
    Column("tool_call", Text, nullable=True),
    Column("command", Text, nullable=True),
    #: JSON array of paths.
    Column("paths", Text, nullable=True),
    Column("outcome", Text, nullable=True),
    Column("result", Text, nullable=True),
    Column("agent_id", Text, nullable=True),
    Column("importance", Integer, nullable=False),
    #: Hash of the redacted event, for twins that two hook configurations send.
    Column("twin_hash", LargeBinary(16), nullable=False),
    Column("source", Text, nullable=False),
    #: What the client says of the time; order is by `seq`.
    at("occurred_at", nullable=True),
    at("recorded_at"),
    #: What who said it is called, where several people speak; NULL: not told.
    Column("speaker_name", Text, nullable=True),
    #: Further words by which it is found; NULL: none.
    Column("search_words", Text, nullable=True),
    sqlite_autoincrement=True,
)
Index(None, observations.c.session_id, observations.c.seq)
Index(
    "ix_observations_turns",
    observations.c.session_id,
    observations.c.seq,
    sqlite_where=text("speaker IN ('user','agent') AND body <> ''"),
)
Index("ix_observations_twin", observations.c.session_id, observations.c.twin_hash)

# --- pages ---------------------------------------------------------------------------------------

#: The identity of a page; what is read and counted of it outlives its versions.
pages = Table(
    "pages",
    metadata,
    Column("number", Integer, primary_key=True),
    row_id(),
    *provenance(),
    #: As the person spells it, relative to the project.
    Column("path", Text, nullable=False),
    #: NFC and case-folded: two spellings of one name are one page.
    Column("path_key", Text, nullable=False),
    Column("version_id", LargeBinary(16), nullable=False),
    Column("pinned", Integer, nullable=False),
    Column("access_count", Integer, nullable=False, server_default=text("0")),
    at("last_accessed_at", nullable=True),
    Column("salience", Float, nullable=True),
    at("created_at"),
    at("updated_at"),
    at("expires_at", nullable=True),
    at("tombstoned_at", nullable=True),
)
Index(
    "uq_pages_path",
    pages.c.project_id,
    pages.c.path_key,
    unique=True,
    sqlite_where=pages.c.tombstoned_at.is_(None),
)
Index("ix_pages_recent", pages.c.project_id, pages.c.updated_at, sqlite_where=pages.c.tombstoned_at.is_(None))
Index("ix_pages_expires_at", pages.c.expires_at, sqlite_where=pages.c.expires_at.is_not(None))

page_versions = Table(
    "page_versions",
    metadata,
    Column("seq", Integer, primary_key=True),
    row_id(),
    *provenance(),
    Column("page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="CASCADE"), nullable=False),
    Column("supersedes", LargeBinary(16), nullable=True),
    Column("title", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column(
        "tier",
        Text,
        CheckConstraint("tier IN ('working','episodic','semantic','procedural')", name="tier"),
        nullable=False,
    ),
    #: JSON array.
    Column("tags", Text, nullable=False),
    #: The whole file, front matter included; the file can be written from it alone.
    Column("content", Text, nullable=False),
    #: Where the body begins in `content`, characters.
    Column("body_start", Integer, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    #: `write`, `session`, `external`, `restore`, …
    Column("cause", Text, nullable=False),
    Column("session_id", LargeBinary(16), nullable=True),
    Column("actor", Text, nullable=False),
    at("created_at"),
    at("superseded_at", nullable=True),
)
Index(None, page_versions.c.page_id, page_versions.c.seq)

#: What a page's text points to. Whether such a page is there is found when it is asked.
links = Table(
    "links",
    metadata,
    Column("from_page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="CASCADE"), nullable=False),
    #: Of the page that points.
    Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    #: Names, because a project that is pointed to need not be there; both empty: its own project.
    Column("to_workspace", Text, nullable=False),
    Column("to_project", Text, nullable=False),
    Column("to_path_key", Text, nullable=False),
    #: As the text spells it.
    Column("to_path", Text, nullable=False),
    PrimaryKeyConstraint("from_page_id", "to_workspace", "to_project", "to_path_key"),
    sqlite_with_rowid=False,
)
Index(None, links.c.to_path_key, links.c.project_id)

page_feedback = Table(
    "page_feedback",
    metadata,
    row_id(),
    *provenance(),
    Column("page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="CASCADE"), nullable=False),
    Column("version_id", LargeBinary(16), nullable=False),
    Column(
        "signal",
        Text,
        CheckConstraint("signal IN ('helpful','not_helpful','stale','wrong')", name="signal"),
        nullable=False,
    ),
    Column("reason", Text, nullable=True),
    at("created_at"),
)
Index(None, page_feedback.c.page_id)

# --- handoffs ------------------------------------------------------------------------------------

handoffs = Table(
    "handoffs",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    *provenance(),
    #: NULL: made by hand.
    Column("from_session_id", LargeBinary(16), ForeignKey("sessions.id", ondelete="SET NULL"), nullable=True),
    Column("is_manual", Integer, nullable=False),
    Column("from_agent", Text, nullable=True),
    #: A hint for people, never a filter.
    Column("to_agent", Text, nullable=True),
    Column("model", Text, nullable=True),
    Column("cwd", Text, nullable=True),
    Column("summary", Text, nullable=False),
    Column("open_questions", Text, nullable=False),
    Column("next_steps", Text, nullable=False),
    Column("files_touched", Text, nullable=False),
    Column(
        "state",
        Text,
        CheckConstraint("state IN ('open','offered','accepted','expired')", name="state"),
        nullable=False,
    ),
    Column("offered_to", LargeBinary(16), nullable=True),
    at("offered_until", nullable=True),
    Column("accepted_by_session", LargeBinary(16), nullable=True),
    Column("accepted_by_agent", Text, nullable=True),
    at("accepted_at", nullable=True),
    at("created_at"),
    CheckConstraint(
        "(state = 'offered') = (offered_to IS NOT NULL AND offered_until IS NOT NULL)", name="offer"
    ),
    CheckConstraint("(state = 'accepted') = (accepted_at IS NOT NULL)", name="acceptance"),
)
Index(None, handoffs.c.project_id, handoffs.c.state)
Index("ix_handoffs_offered_to", handoffs.c.offered_to, sqlite_where=handoffs.c.offered_to.is_not(None))
Index(None, handoffs.c.from_session_id)

# --- the writer's books --------------------------------------------------------------------------

#: Which commands took effect; what makes a delivery that comes twice harmless.
command_ids = Table(
    "command_ids",
    metadata,
    Column("principal", Text, nullable=False),
    Column("id", LargeBinary(16), nullable=False),
    Column("body_hash", LargeBinary(16), nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint("status IN ('committed','refused','dead','parked')", name="status"),
        nullable=False,
    ),
    #: JSON answer of commands that have a reply; NULL for hooks.
    Column("result", Text, nullable=True),
    #: Keys that clients made carry no age of ours and are kept longer.
    Column("is_foreign", Integer, nullable=False),
    at("recorded_at"),
    PrimaryKeyConstraint("principal", "id"),
    sqlite_with_rowid=False,
)
Index(None, command_ids.c.is_foreign, command_ids.c.recorded_at)


def _letters(name: str, *more: Column[str] | Column[int]) -> Table:
    return Table(
        name,
        metadata,
        Column("seq", Integer, primary_key=True),
        Column("principal", Text, nullable=False),
        Column("id", LargeBinary(16), nullable=False),
        #: The whole envelope, so that a letter can be sent again as it was.
        Column("envelope", LargeBinary, nullable=False),
        Column("name", Text, nullable=False),
        Column("version", Integer, nullable=False),
        *more,
        at("recorded_at"),
        at("created_at"),
        UniqueConstraint("principal", "id"),
    )


#: Commands that failed each time they were tried.
dead_letters = _letters(
    "dead_letters",
    Column(
        "cause", Text, CheckConstraint("cause IN ('exception','death','hang')", name="cause"), nullable=False
    ),
    Column("error", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
)

#: Commands of an unknown name or a newer version: kept, not counted, applied once we know them.
parked_letters = _letters("parked_letters", Column("reason", Text, nullable=False))

audit_log = Table(
    "audit_log",
    metadata,
    Column("seq", Integer, primary_key=True),
    at("at"),
    Column("op", Text, nullable=False),
    Column("project_id", LargeBinary(16), nullable=True),
    Column("page_id", LargeBinary(16), nullable=True),
    Column("principal", Text, nullable=False),
    Column("command_id", LargeBinary(16), nullable=True),
    #: JSON; ids, counts and names only, never page or prompt text.
    Column("detail", Text, nullable=False),
)
