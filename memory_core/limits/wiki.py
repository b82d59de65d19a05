"""Pages, their files, and the history of these."""

from __future__ import annotations

from memory_core.limits.capture import FIELD_REDACTED_MAX_BYTES
from memory_core.limits.sizes import KIB, MIB

# --- pages --------------------------------------------------------------------------------------
#: Not more than what is redacted of one text, or a page would be cut without a word.
PAGE_BODY_MAX_BYTES = FIELD_REDACTED_MAX_BYTES
PAGE_PATH_MAX_CHARS = 240
#: One folder or file name; file systems take 255.
PAGE_NAME_MAX_BYTES = 240
#: A name made of a title, before its hash.
SLUG_MAX_BYTES = 120
PAGE_TITLE_MAX_CHARS = 200
#: Of a title that names a file; what is behind counts by its hash.
TITLE_READ_MAX_CHARS = 2_000
TAGS_MAX = 32
TAG_MAX_CHARS = 64
FRONT_MATTER_MAX_BYTES = 16 * KIB
FRONT_MATTER_DEPTH_MAX = 32
ENTITIES_MAX = 10
ENTITY_MAX_CHARS = 64
#: Names that are kept of one page, declared ones included, and how much of its text is looked at for them.
PAGE_ENTITIES_MAX = 64
ENTITIES_READ_MAX_CHARS = 64 * KIB
#: Places inside one name where a question's word may begin.
ENTITY_STARTS_MAX = 6
#: Of one page, what is read of its links: text and brackets looked at, other pages that it points to.
LINKS_READ_MAX_CHARS = 256 * KIB
LINK_MARKS_MAX = 5_000
LINKS_MAX = 500

#: Index and log of a project are rendered so long after a change, and not more often than that.
RENDER_DELAY_SECONDS = 10
RENDER_PAUSE_SECONDS = 60
#: What they list: pages that were changed last, session pages, entries of a month.
INDEX_PAGES_MAX = 1_000
INDEX_SESSIONS_MAX = 50
LOG_ROWS_MAX = 1_000
#: Rendered files of one turn.
DUTY_RENDERED = 2

#: Of a file that was changed from outside, what is looked at.
EXTERNAL_FILE_MAX_BYTES = 4 * MIB
#: Rows of the file outbox that one step of the writer installs.
OUTBOX_STEP_ROWS = 200

# --- the wiki's history (git) --------------------------------------------------------------------
#: Changes are committed when there was quiet for so long, and at the latest after the second time.
GIT_QUIET_SECONDS = 2.0
GIT_BATCH_MAX_SECONDS = 10.0
#: For one git command; for those that read everything.
GIT_COMMAND_SECONDS = 30.0
GIT_REPAIR_SECONDS = 300.0
#: A lock that no living process is seen to hold is removed when it was there for so long; the second where processes
#: cannot be looked at.
GIT_LOCK_STALE_SECONDS = 2.0
GIT_LOCK_BLIND_SECONDS = 600.0
#: Between tries while somebody else is at work, and after failures (the last one repeats).
GIT_BUSY_SECONDS = 0.5
GIT_PAUSES_SECONDS = (1.0, 5.0, 30.0)
#: After so many failures in a row the repository is looked through and repaired.
GIT_FAILURES_MAX = 3
#: A commit waits so long for its files to be in place; a file that is blocked does not hold it up for ever.
GIT_FILES_WAIT_SECONDS = 10.0
#: When more checkpoints wait than this, they are joined into one commit.
GIT_WAITING_MAX = 64
#: Commits that are looked through for one that a killed process made.
GIT_LOOK_BACK_COMMITS = 200
#: Batches whose commit is remembered in the database; the older ones are found in git alone.
GIT_BATCHES_KEPT = 1_000
#: Pages that one read of a baseline takes.
GIT_BASELINE_ROWS = 200
#: Commits of one process between two looks at the size of the repository; loose objects and packs until it is packed.
GIT_TIDY_COMMITS = 50
GIT_LOOSE_OBJECTS_MAX = 2_000
GIT_PACKS_MAX = 50
#: At the end of the process, for the last commit.
GIT_STOP_SECONDS = 5.0
#: The thread of the history, silent for longer, is said to be away.
GIT_SILENT_SECONDS = 120.0
CHECKPOINT_MESSAGE_MAX_CHARS = 2_000
#: Lines of a commit message that name files.
GIT_MESSAGE_FILES = 20
#: What a rebuild of the tables takes of a page's history: versions, bytes of text in all, and commits in one question to git.
HISTORY_VERSIONS_MAX = 100
HISTORY_PAGE_MAX_BYTES = 4 * MIB
HISTORY_SLICE_COMMITS = 2_000

# --- the wiki as people edit it -----------------------------------------------------------------
#: A whole look at the wiki; what the watcher tells is looked at after its pause.
RECONCILE_SECONDS = 30.0
WATCH_DEBOUNCE_SECONDS = 0.3
#: A file is read when it has stayed as it is for so long; one that never rests is read after the second time.
FILE_QUIET_SECONDS = 0.3
FILE_RESTLESS_SECONDS = 10.0
#: A page's file is deleted, or emptied, when it has been so for so long: editors do that on their way to a new one.
FILE_GONE_SECONDS = 2.0
#: More pages of a project than this, and more than half of them, do not vanish at once without being asked about.
VANISHED_PAGES_MAX = 20
#: Nor do three quarters of a small project, from so many pages on.
VANISHED_WHOLE_MIN = 3
#: What one transaction of the writer takes in from outside: findings, bytes of text, seconds.
FINDINGS_MAX = 100
FINDINGS_MAX_BYTES = 1 * MIB
FINDINGS_SECONDS = 0.03
#: The same while no commands come, seconds; one that does come waits for it.
FINDINGS_QUIET_SECONDS = 0.1
#: A file whose text is longer is no page; it is reported and left alone.
OUTSIDE_PAGE_MAX_BYTES = PAGE_BODY_MAX_BYTES + FRONT_MATTER_MAX_BYTES
#: An unseen edit that is found under a page that an agent wrote is waited for so long, to tell the agent of it.
EDIT_WAIT_SECONDS = 2.0
EDIT_POLL_SECONDS = 0.02
#: Names of files that are remembered to hold no secret.
CLEAN_NAMES_MAX = 20_000
#: Troubles with files that the status names.
WIKI_TROUBLES_SHOWN = 50
#: Projects whose directories are looked at.
PROJECTS_LOOKED_AT_MAX = 100_000
#: Directories that a project had before somebody renamed them.
EARLIER_FOLDERS_MAX = 20
#: While findings are being prepared the writer waits no longer than this for commands.
OUTSIDE_BUSY_BLOCK_MS = 10
#: A thread that looks at the wiki, silent for longer, is said to be away.
WIKI_SILENT_SECONDS = 120.0
