"""`run/wiki.status.json`: what the looks at the wiki found, for the status answers of the web process."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands.finding import ProjectState
from memory_core.store.wiki_tasks import WikiTask

logger = logging.getLogger(__name__)


def status_file(run_dir: Path) -> Path:
    return run_dir / "wiki.status.json"


@dataclass(kw_only=True)
class Seen:
    """What the looks so far left to be said. Times are UTC microseconds."""

    projects: dict[bytes, ProjectState] = field(default_factory=dict[bytes, ProjectState])
    #: Directories that are no project of the database, and why.
    strangers: dict[str, str] = field(default_factory=dict[str, str])
    #: Why the wiki as a whole is not to be had; empty when it is.
    away: str = ""
    #: The same of the look before.
    away_before: str = ""
    looked_at: int | None = None
    #: Of the last look, with the time for entering what it found.
    seconds: float = 0.0
    whole_at: int | None = None
    #: What the comparison of the last whole look took.
    whole_seconds: float = 0.0
    #: What was entered since this process started.
    entered: Counter[str] = field(default_factory=Counter[str])
    #: Files that were read since this process started.
    reads: int = 0
    task: WikiTask | None = None


class StatusFile:
    """Written after each look. `watching` says whether changes are told at once, `obstacles` which files cannot be put in
    place, and why."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        watching: Callable[[], dict[str, Any]] = lambda: {"state": "polling"},
        obstacles: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._path = path
        self._clock = clock
        self._watching = watching
        self._obstacles = obstacles

    def content(self, seen: Seen) -> dict[str, Any]:
        states = list(seen.projects.values())
        held = [
            {
                "project": state.name,
                "folder": state.folder,
                "missing": state.held,
                "pages": state.pages,
                "reason": state.away or "so many files vanished at once",
            }
            for state in states
            if state.held
        ]
        named = {file: trouble for state in states for file, trouble in sorted(state.troubles.items())}
        troubles = [
            {"file": file, "trouble": trouble} for file, trouble in (named | dict(self._obstacles())).items()
        ]
        return {
            "status": "held" if held or seen.away else "ok",
            "away": seen.away,
            "watcher": self._watching(),
            "written_at": self._clock.now_us(),
            "looked_at": seen.looked_at,
            "whole_look_at": seen.whole_at,
            "whole_look_seconds": round(seen.whole_seconds, 3),
            "files_read": seen.reads,
            "files": sum(state.files for state in states),
            "pages": sum(state.pages for state in states),
            # Whatever is still to come, either way: who waits for 0 finds files and database in step.
            "waiting": sum(state.waiting + state.unwritten for state in states),
            "unwritten": sum(state.unwritten for state in states),
            "broken": sum(state.broken for state in states),
            "held": held,
            "troubles": troubles[: limits.WIKI_TROUBLES_SHOWN],
            "troubles_in_all": len(troubles),
            "strangers": dict(list(seen.strangers.items())[: limits.WIKI_TROUBLES_SHOWN]),
            "entered": dict(seen.entered),
        }

    def write(self, seen: Seen) -> None:
        """Replace the file; on a full disk the old one stays. Never raises."""
        aside = self._path.with_suffix(".new")
        try:
            aside.write_text(json.dumps(self.content(seen), ensure_ascii=False), encoding="utf-8")
            aside.chmod(0o600)
            aside.replace(self._path)
        except (OSError, UnicodeError) as error:
            logger.debug(
                "the wiki's status could not be written: %s", error, extra={"action": "metrics_failed"}
            )
