"""What happens to the wiki from outside: a thread that looks, and the writer's turns that enter what it found."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands.finding import Finder, ProjectState
from memory_core.commands.lost_writes import NOTHING_LOST
from memory_core.commands.outside import Finding, LookAt, What, apply_findings, count_for_task
from memory_core.domain.project import Project
from memory_core.errors import NotAlone, StorageStopped
from memory_core.store.transaction import Transaction
from memory_core.store.wiki_tasks import WikiTask, open_task
from workers.writer.engine import Engine, Stopping
from workers.writer.folders import FolderLooks, is_due
from workers.writer.handover import Handover
from workers.writer.report import BatchReport
from workers.writer.wiki_status import Seen, StatusFile

logger = logging.getLogger(__name__)

#: A look at a large wiki is followed by a pause of so many times its length.
_PAUSE_PER_LOOK = 10.0
#: Promised files that do not come while an open task waits for them; each is tried several times in it.
_BLOCKED_SECONDS = 3 * limits.OUTBOX_RETRY_SECONDS
_DONE = (What.STALE.value, What.SEEN.value, What.UNRENDERED.value)


class Outside:
    """`step` is called by the writer's loop under its lock; all else runs on the thread that `start` begins."""

    def __init__(
        self,
        engine: Engine,
        finder: Finder,
        look_at: LookAt,
        *,
        clock: Clock,
        status: StatusFile,
        folders: FolderLooks,
        lost_before: int = NOTHING_LOST,
    ) -> None:
        """`lost_before`: see `memory_core.commands.lost_writes`."""
        self._lost_before = lost_before
        self._engine = engine
        self._finder = finder
        self._look_at = look_at
        self._clock = clock
        self._status = status
        self._folders = folders
        #: How many promised files an open task waits for, and since when it has been so many.
        self._unwritten: tuple[int, float] = (0, 0.0)
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._handover = Handover(self._stopping)
        self._seen = Seen()
        self._lock = threading.Lock()
        #: Directories in which something happened since the last look.
        self._touched: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="outside", daemon=True)
        self._careful = False
        self._tasks_seen_at = 0.0
        self._wants_whole = False
        #: Whether findings are just being prepared.
        self._is_preparing = False
        #: Told when directories that were away are there again.
        self.came_back: Callable[[], None] = lambda: None

    # --- the writer's side ---

    @property
    def patience_ms(self) -> int | None:
        """How long the writer may wait for commands: not at all while findings wait for it."""
        if self._handover.waiting():
            return 0
        return limits.OUTSIDE_BUSY_BLOCK_MS if self._is_preparing else None

    def step(self, report: BatchReport, *, is_quiet: bool = False) -> bool:
        """Enter some of what was found, in one transaction; whether there was anything. Raises what stops the storage
        or the process. No command waits where it `is_quiet`: then more is entered at once, which costs less."""
        self._see_tasks()
        findings = self._handover.waiting()
        if not findings:
            if self._handover.task_is_done:
                left = Counter(blocked=self._unwritten[0]) if self._unwritten[0] else Counter[str]()
                self._engine.originate(lambda tx: count_for_task(tx, left, is_finished=True), report)
                self._handover.taken(0, Counter(), task_is_done=True)
            return False
        some = findings[:1] if self._careful else findings
        seconds = limits.FINDINGS_QUIET_SECONDS if is_quiet else limits.FINDINGS_SECONDS
        try:
            number, counts = self._engine.originate(lambda tx: self._enter(tx, some, seconds), report)
        except (NotAlone, StorageStopped, Stopping):
            raise
        except Exception:
            self._failed(some)
            return True
        self._careful = self._careful and number < len(findings)
        self._handover.taken(number, counts)
        return True

    def _see_tasks(self) -> None:
        """A task that somebody asked for is begun at once."""
        now = self._clock.monotonic()
        if now - self._tasks_seen_at < limits.DUTY_SECONDS or not self._thread.is_alive():
            return
        self._tasks_seen_at = now
        if self._seen.task is None and self._engine.read(open_task) is not None:
            self._wants_whole = True
            self._wake.set()

    def _enter(self, tx: Transaction, findings: list[Finding], seconds: float) -> tuple[int, Counter[str]]:
        began = self._clock.monotonic()
        number, counts = apply_findings(
            tx,
            findings,
            self._look_at,
            lambda: self._clock.monotonic() - began > seconds,
            lost_before=self._lost_before,
        )
        count_for_task(tx, counts)
        return number, counts

    def _failed(self, findings: list[Finding]) -> None:
        """From now on one by one: the one that is to blame is passed over until the next whole look."""
        alone = len(findings) == 1
        logger.exception(
            "something that was found in the wiki could not be entered",
            extra={"action": "finding_failed", "file": findings[0].file if alone else ""},
        )
        self._handover.taken(1 if alone else 0, Counter())
        self._careful = True

    # --- the thread's side ---

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def touched(self, directories: Iterable[str]) -> None:
        """Something happened in these directories (`<workspace>/<project>`): look there soon. Any thread may call it."""
        with self._lock:
            self._touched |= set(directories)
        self._wake.set()

    def _run(self) -> None:
        whole_at = 0.0
        while not self._stopping.is_set():
            now = self._clock.monotonic()
            is_whole = now >= whole_at or self._wants_whole
            self._wants_whole = False
            pause, is_due = self._look_safely(is_whole=is_whole)
            if is_whole:
                whole_at = now + limits.RECONCILE_SECONDS
            if is_due:
                self._stopping.wait(pause)
                continue
            self._wake.wait(max(0.0, whole_at - self._clock.monotonic()))
            # What happens together is looked at together.
            self._stopping.wait(pause)
            self._wake.clear()

    def _look_safely(self, *, is_whole: bool) -> tuple[float, bool]:
        """One look; the pause after it, seconds, and whether the next one is due then."""
        try:
            return self.look(is_whole=is_whole)
        except Stopping:
            return 0.0, False
        except Exception:
            logger.exception("the wiki could not be looked at", extra={"action": "wiki_look_failed"})
            return limits.RECONCILE_SECONDS, True
        finally:
            self._is_preparing = False
            self._status.write(self._seen)

    def look(self, *, is_whole: bool = True) -> tuple[float, bool]:
        """Look at everything, or at what was touched, and have it entered; the pause, and whether to look again then."""
        began = self._clock.monotonic()
        with self._lock:
            touched, self._touched = self._touched, set()
        known, task = self._finder.projects(), self._finder.open_task()
        is_whole = is_whole or task is not None
        self._handover.counts()
        states = self._seen.projects
        if is_whole or is_due(known, touched, states, self._folders):
            known = self._look_at_folders(known, task)
        was_away = bool(self._seen.away_before) or any(state.away for state in states.values())
        self._seen.projects = {}
        looking = 0.0
        for directory, project in known.items():
            state = states.get(project.id)
            if is_whole or state is None or directory in touched or state.waiting:
                state = ProjectState(name=f"{project.workspace}/{project.name}")
                looking += self._look_at_project(project, task, state)
            self._seen.projects[project.id] = state
        is_away = bool(self._seen.away) or any(state.away for state in self._seen.projects.values())
        self._seen.away_before = self._seen.away
        if was_away and not is_away:
            self.came_back()
        self._handover.wait_empty()
        if is_whole:
            self._seen.whole_at, self._seen.whole_seconds = self._clock.now_us(), looking
        self._seen.looked_at, self._seen.reads = self._clock.now_us(), self._finder.reads
        self._seen.seconds = self._clock.monotonic() - began
        pause = max(limits.WATCH_DEBOUNCE_SECONDS, min(looking * _PAUSE_PER_LOOK, limits.RECONCILE_SECONDS))
        return self._after(task, pause)

    def _after(self, task: WikiTask | None, pause: float) -> tuple[float, bool]:
        counts = self._handover.counts()
        self._seen.entered += counts
        self._seen.task = task
        states = self._seen.projects.values()
        is_waiting = self._folders.is_waiting or any(state.waiting for state in states)
        if task is None:
            return pause, is_waiting or counts[What.STALE.value] > 0
        done = sum(number for what, number in counts.items() if what not in _DONE)
        if not is_waiting and not done and not self._waits_for_files(sum(s.unwritten for s in states)):
            self._handover.task_is_done = True
            self._handover.wait_empty()
        return limits.FILE_QUIET_SECONDS, True

    def _waits_for_files(self, unwritten: int) -> bool:
        """Whether promised files still come; what stands in the way of the others is named in the status."""
        before, since = self._unwritten
        now = self._clock.monotonic()
        if unwritten != before:
            since = now
        self._unwritten = unwritten, since
        return unwritten > 0 and now - since < _BLOCKED_SECONDS

    def _look_at_folders(self, known: dict[str, Project], task: WikiTask | None) -> dict[str, Project]:
        """Directory → project, as it is when what was found about whole directories is entered."""
        found = self._folders.look(known, task, self._seen.projects)
        self._seen.strangers, self._seen.away = self._folders.strangers, self._folders.away
        if not found:
            return known
        self._give(found)
        self._handover.wait_empty()
        return self._finder.projects()

    def _look_at_project(self, project: Project, task: WikiTask | None, state: ProjectState) -> float:
        """Hand over what is found in one project; how long the comparison took, seconds."""
        began = self._clock.monotonic()
        findings = self._finder.find(project, task, state)
        took = self._clock.monotonic() - began
        batch: list[Finding] = []
        size = 0
        for finding in findings:
            batch.append(finding)
            size += finding.size_bytes
            if len(batch) >= limits.FINDINGS_MAX or size >= limits.FINDINGS_MAX_BYTES:
                self._give(batch)
                batch, size = [], 0
        if batch:
            self._give(batch)
        return took

    def _give(self, findings: list[Finding]) -> None:
        self._is_preparing = True
        self._handover.give(findings)
        self._status.write(self._seen)

    def status(self) -> dict[str, Any]:
        return self._status.content(self._seen)
