"""The thread of the writer's process that commits the wiki to git, and the duty that keeps its books.

The thread reads through a connection of its own that cannot write, and never asks for the lock of the writer's: what
it did is entered by the duty, in the writer's turn. A commit whose entry was lost by a kill is found by its Batch-Id.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from memory_core import limits
from memory_core.clock import Clock
from memory_core.errors import CoreError
from memory_core.ids import IdSource, id_text
from memory_core.store import git_batches
from memory_core.store.database import Database
from memory_core.store.git_batches import Batch, Change
from memory_core.store.transaction import Transaction
from memory_core.wiki.exchange import Away
from memory_core.wiki.folders import is_bare
from memory_core.wiki.git import GitBusy, GitFailed, GitGone, GitMissing, GitRefused, GitStorage
from memory_core.wiki.git_batch import BatchFiles, batch_message, file_of_change
from memory_core.wiki.git_repair import is_sound, repair, tidy
from memory_core.wiki.git_repository import Committed, Repository
from workers.writer.history_state import HistoryState

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_MISSING_SECONDS = 60.0
#: Repairs of one process; a disk that damages whatever is written is nothing to begin anew for, again and again.
_REPAIRS_MAX = 3


@dataclass(frozen=True, kw_only=True)
class _Done:
    batch: Batch
    commit: Committed


class History:
    """`may_write` says whether the disk has room; `is_unclean` that the process before did not end in order."""

    def __init__(
        self,
        *,
        repository: Repository,
        database: Database,
        root: Path,
        aside: Path,
        state: HistoryState,
        may_write: Callable[[], bool],
        clock: Clock,
        ids: IdSource,
        epoch: int,
        is_unclean: bool,
    ) -> None:
        self._repository = repository
        self._database = database
        self._files = BatchFiles(database, root, self._held_back, repository.tracked)
        self._root = root
        self._aside = aside
        self._state = state
        self._may_write = may_write
        self._clock = clock
        self._ids = ids
        self._epoch = epoch
        self._must_look_through = is_unclean
        self._is_ready = False
        #: The repository that was last prepared: another one in its place, or none, needs all pages anew.
        self._identity: tuple[int, int] | None = None
        #: What was known of our own name in it: an inode may be given again, to another repository.
        self._is_begun = self._is_named = False
        self._waits_for = ""
        #: A commit may have been made whose entry is missing.
        self._is_unsure = True
        self._failures = 0
        self._repairs = 0
        self._commits = 0
        self._waits_since: float | None = None
        #: What the duty has to enter, by batch.
        self._done: dict[bytes, _Done] = {}
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    # --- the writer's side ---

    def start(self) -> None:
        self._thread.start()

    def keep_books(self, tx: Transaction) -> int:
        """The duty: enter what was committed, and close the open changes when their time has come."""
        touched = self._enter(tx)
        found = git_batches.open_changes(tx)
        if found is None or not self._state.is_working:
            return touched
        quiet, age = tx.now - found.last_at, tx.now - found.first_at
        # A clock that was set back must not hold a commit up.
        is_due = (
            quiet >= limits.GIT_QUIET_SECONDS * 1e6 or age >= limits.GIT_BATCH_MAX_SECONDS * 1e6 or quiet < 0
        )
        if is_due:
            git_batches.close_open(tx, git_batches.BATCH)
        return touched + int(is_due)

    def finish(self, originate: Callable[[Callable[[Transaction], object]], object]) -> None:
        """At the end in order: commit what is open, for a few seconds at most. `originate` runs a transaction of the writer's."""
        with suppress(CoreError):
            if self._state.is_working:
                originate(lambda tx: git_batches.close_open(tx, git_batches.BATCH))
                self._finishing.set()
                self._thread.join(limits.GIT_STOP_SECONDS)
                originate(self._enter)
        self.stop()

    def stop(self) -> None:
        """Begin nothing any more. A git command that is under way ends by itself."""
        self._stopping.set()
        self._finishing.set()
        if self._thread.is_alive():
            self._thread.join(limits.GIT_STOP_SECONDS)

    def _enter(self, tx: Transaction) -> int:
        with self._guard:
            done = list(self._done.values())
        entered = 0
        for one in done:
            if one.batch.kind == git_batches.BASELINE:
                git_batches.add_committed(tx, one.batch, files=one.commit.files)
            else:
                entered += int(
                    git_batches.mark_committed(tx, one.batch.id, one.commit.commit_id, files=one.commit.files)
                )
        return entered

    # --- the thread ---

    def _run(self) -> None:
        while not self._stopping.is_set():
            is_last = self._finishing.is_set()
            pause = self._turn()
            if is_last and (pause >= _POLL_SECONDS or self._failures):
                break
            if pause:
                self._finishing.wait(pause) if not is_last else self._stopping.wait(pause)
        self._database.close()

    def _turn(self) -> float:
        """One step; seconds until the next. Nothing that it meets ends the thread."""
        try:
            if not self._may_write():
                self._state.say("waiting", reason="too little free disk")
                return limits.GIT_PAUSES_SECONDS[-1]
            self._prepare()
            pause = self._step()
            self._failures, self._waits_for = 0, ""
            return pause
        except GitGone as error:
            self._gone(error)
            return _POLL_SECONDS / 5
        except GitBusy as error:
            self._is_unsure = True
            self._state.say("busy", reason=str(error))
            return limits.GIT_BUSY_SECONDS
        except (GitMissing, GitRefused) as error:
            self._is_ready = False
            self._state.say("missing" if isinstance(error, GitMissing) else "refused", reason=str(error))
            return _MISSING_SECONDS
        except GitFailed as error:
            return self._failed(error)
        except (CoreError, OSError) as error:
            return self._waits(error)
        except Exception as error:
            logger.exception("the history's thread met an error", extra={"action": "git_failed"})
            self._state.say("failed", reason=f"{type(error).__name__}: {error}")
            return limits.GIT_PAUSES_SECONDS[-1]

    def _gone(self, error: GitGone) -> None:
        """The repository vanished under our hands, or was exchanged: the next turn begins it anew, or says why not."""
        self._is_ready, self._is_unsure = False, True
        self._state.say("failed", reason=str(error))
        logger.warning("%s; all pages are committed anew", error, extra={"action": "git_gone"})

    def _waits(self, error: Exception) -> float:
        self._state.say("waiting", reason=str(error))
        if self._waits_for != str(error):
            self._waits_for = str(error)
            logger.warning("the wiki's history waits: %s", error, extra={"action": "git_waits"})
        return limits.GIT_PAUSES_SECONDS[1]

    def _failed(self, error: GitFailed) -> float:
        self._is_unsure = True
        self._failures += 1
        self._state.say("failed", reason=str(error))
        logger.warning("git failed: %s", error, extra={"action": "git_failed", "failures": self._failures})
        if not isinstance(error, GitStorage) and self._failures >= limits.GIT_FAILURES_MAX:
            self._failures = 0
            self._is_ready = False
            self._must_look_through = True
        return limits.GIT_PAUSES_SECONDS[min(self._failures, len(limits.GIT_PAUSES_SECONDS) - 1)]

    # --- a repository that can be committed to ---

    def _prepare(self) -> None:
        repository = self._repository
        there = repository.git.identity()
        is_same = there == self._identity and (not self._is_named or repository.is_named())
        if self._is_ready and is_same:
            return
        if self._is_ready:
            self._gone(GitGone("the wiki's history is not there any more, or another one lies in its place"))
        self._state.git_version = repository.git.version()
        is_new = there is None
        if is_new:
            self._check_not_away()
            repository.create()
        else:
            with repository.locks.index():
                pass  # nobody is in the middle of anything, and what dead processes left is gone
            repository.leave_out()
            is_new = self._look_through() or self._identity not in (None, there)
        if (is_new or not repository.is_begun()) and self._has_pages():
            self._commit_all()
        self._identity, self._is_begun = repository.git.identity(), repository.is_begun()
        self._is_named = repository.is_named()
        self._is_ready = True
        self._must_look_through = False
        self._state.say("ok", commit=repository.head())

    def _look_through(self) -> bool:
        """Whether the pages are to be committed anew, because the repository had to be repaired."""
        if not self._must_look_through or is_sound(self._repository):
            return False
        if self._repairs >= _REPAIRS_MAX:
            raise GitRefused("the history was repaired several times and is damaged again; look at the disk")
        self._repairs += 1
        self._state.say("repairing")
        with self._database.snapshot() as reading:
            known = [batch.commit_id or "" for batch in git_batches.newest_committed(reading, count=10)]
        done = repair(self._repository, self._aside, [commit for commit in known if commit], self._clock)
        self._state.note = done.note
        self._is_unsure = not done.is_rerooted
        return True

    def _check_not_away(self) -> None:
        """No history is begun in place of one that a disk which is not mounted may have."""
        if self._has_pages() and (not self._root.is_dir() or is_bare(self._root)):
            raise Away("the wiki's own directory is not there or empty; its history waits for it")

    def _has_pages(self) -> bool:
        with self._database.snapshot() as reading:
            return bool(git_batches.live_pages(reading, after=0, count=1)[0])

    def _commit_all(self) -> None:
        with self._database.snapshot() as reading:
            version_seq = git_batches.newest_version(reading)
        batch = Batch(
            seq=0,
            id=self._ids.new(),
            kind=git_batches.BASELINE,
            message=self._state.note,
            version_seq=version_seq,
            commit_id=None,
            closed_at=self._clock.now_us(),
        )
        message = batch_message([batch], [], self._epoch)
        made = self._repository.commit(self._files.of_all_pages(), message)
        self._remember(replace(batch, commit_id=made.commit_id), made)

    # --- batches ---

    def _step(self) -> float:
        with self._database.snapshot() as reading:
            found = git_batches.waiting(reading, limits.GIT_WAITING_MAX + len(self._done) + 1)
            self._forget(
                {batch.id for batch in found},
                {key for key in self._done if git_batches.by_id(reading, key) is not None},
            )
            batches = [batch for batch in found if batch.id not in self._done]
            if len(batches) <= limits.GIT_WAITING_MAX:
                batches = batches[:1]
            merged = {
                (change.project_id, change.path): change
                for batch in batches
                for change in git_batches.changes_of(reading, batch)
            }
            promised = git_batches.promised_files(reading, limits.OUTBOX_STEP_ROWS)
        if not batches:
            self._state.say("ok")
            return _POLL_SECONDS
        changes = list(merged.values())
        if self._waits_for_files(changes, promised):
            return _POLL_SECONDS / 5
        self._commit(batches, changes)
        return 0.0

    def _waits_for_files(self, changes: list[Change], promised: set[str]) -> bool:
        now = self._clock.monotonic()
        if not promised & {file_of_change(change) for change in changes}:
            self._waits_since = None
            return False
        if self._waits_since is None:
            self._waits_since = now
        return now - self._waits_since < limits.GIT_FILES_WAIT_SECONDS

    def _commit(self, batches: list[Batch], changes: list[Change]) -> None:
        began = self._clock.monotonic()
        if self._is_begun and not self._repository.is_begun():
            raise GitGone("another history lies in place of the wiki's")
        earlier = self._repository.find_batch(id_text(batches[-1].id)) if self._is_unsure else None
        if earlier is not None:
            made = Committed(commit_id=earlier, files=0)
        else:
            message = batch_message(batches, changes, self._epoch)
            made = self._repository.commit(self._files.of(changes), message)
            # Only now: of several that a killed process had committed, each is to be found.
            self._is_unsure = False
            self._is_begun = self._is_begun or made.files > 0
            self._is_named = self._repository.is_named()
        self._waits_since = None
        for batch in batches:
            self._remember(batch, made)
        self._state.committed(
            made.commit_id,
            batch_id=id_text(batches[-1].id),
            files=made.files,
            seconds=self._clock.monotonic() - began,
        )
        self._commits += 1
        if self._commits % limits.GIT_TIDY_COMMITS == 0 and tidy(self._repository):
            logger.info("the history was packed", extra={"action": "git_tidied"})

    def _remember(self, batch: Batch, made: Committed) -> None:
        with self._guard:
            self._done[batch.id] = _Done(batch=batch, commit=made)

    def _forget(self, waiting: set[bytes], known: set[bytes]) -> None:
        """What the duty has entered: it is in the books and does not wait any more."""
        with self._guard:
            for key in [key for key in self._done if key in known and key not in waiting]:
                del self._done[key]

    def _held_back(self, file: str) -> None:
        self._state.held_back(file)
        logger.warning(
            "a page with a secret in its file is not committed; take the secret out of the file",
            extra={"action": "git_held_back", "file": file},
        )
