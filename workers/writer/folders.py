"""The folders of projects, as one look finds them: renamed, copied, gone, unknown; and made anew where somebody asked for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands.finding import Finder, ProjectState
from memory_core.commands.outside import Finding, What
from memory_core.domain.project import Project
from memory_core.store.wiki_tasks import HEAL, REINDEX, WikiTask
from memory_core.wiki.exchange import Blocked
from memory_core.wiki.folders import Folders, Home, is_bare, make_home, make_root
from memory_core.wiki.layout import META, project_directory, usual_directory

logger = logging.getLogger(__name__)

#: A renamed folder is believed when it was seen so often under its new name.
_LOOKS = 2


class FolderLooks:
    """Used by the thread that looks at the wiki. It writes nothing but folders and what says whose they are."""

    def __init__(self, root: Path, finder: Finder, clock: Clock) -> None:
        self._root = root
        self._finder = finder
        self._clock = clock
        #: Folder and project of what seems to be renamed → since when, and in how many looks.
        self._moving: dict[tuple[str, bytes], tuple[float, int]] = {}
        #: Folders that are no project's, and why.
        self.strangers: dict[str, str] = {}
        #: Why the wiki as a whole is not to be had; empty when it is.
        self.away = ""

    @property
    def is_waiting(self) -> bool:
        """Whether some folder seems to be renamed and is looked at again."""
        return bool(self._moving)

    def look(
        self, known: Mapping[str, Project], task: WikiTask | None, states: Mapping[bytes, ProjectState]
    ) -> list[Finding]:
        """What is to be entered about whole folders; `states` are those of the last looks."""
        is_heal = task is not None and task.kind == HEAL
        self.away = self._away(states, is_made=is_heal)
        found = self._finder.folders(known)
        self.strangers = dict(found.strangers)
        findings = self._moved(found)
        findings += self._unknown(found, is_reindex=task is not None and task.kind == REINDEX)
        self._renew(found, is_reindex=task is not None and task.kind == REINDEX)
        if not self.away:
            self._make(found, states, is_heal=is_heal and not (task and task.options.get("accept_deletions")))
        return findings

    def _away(self, states: Mapping[bytes, ProjectState], *, is_made: bool) -> str:
        try:
            if is_made:
                make_root(self._root)
            if not self._root.is_dir():
                return f"the wiki's own directory {self._root} is not there"
            has_pages = any(state.pages for state in states.values())
            if has_pages and not is_made and is_bare(self._root):
                return f"the wiki's own directory {self._root} is empty"
        except OSError as error:
            return f"the wiki's own directory {self._root} cannot be used: {error.strerror}"
        return ""

    def _moved(self, found: Folders) -> list[Finding]:
        now, before = self._clock.monotonic(), self._moving
        self._moving = {}
        findings: list[Finding] = []
        for folder, project in found.moved.items():
            since, looks = before.get((folder, project.id), (now, 0))
            if looks + 1 < _LOOKS or now - since < limits.FILE_QUIET_SECONDS:
                self._moving[folder, project.id] = since, looks + 1
                continue
            old = project_directory(project)
            logger.warning(
                "the folder of a project was renamed; its pages lie there now",
                extra={"action": "project_folder_moved", "folder": folder, "from": old},
            )
            findings.append(Finding(what=What.RELOCATED, project=project, file=folder, old_file=old))
        return findings

    def _unknown(self, found: Folders, *, is_reindex: bool) -> list[Finding]:
        findings: list[Finding] = []
        adopted: set[bytes] = set()
        places = {(one.workspace, one.name): folder for folder, one in found.known.items()}
        # Of two that say the same, the one whose name says it too.
        ordered = sorted(found.unknown.items(), key=lambda pair: pair[0] != usual_directory(pair[1]))
        for folder, project in ordered:
            if (lies := places.get((project.workspace, project.name))) is not None:
                self.strangers[folder] = (
                    f"its project is there already, in {lies}; move its files there by hand"
                )
            elif not is_reindex:
                name = f"{project.workspace}/{project.name}"
                self.strangers[folder] = (
                    f"the database does not know the project {name}; memoryd reindex takes it in"
                )
            elif project.id not in adopted:
                adopted.add(project.id)
                findings.append(Finding(what=What.ADOPTED, project=project, file=folder))
        return findings

    def _renew(self, found: Folders, *, is_reindex: bool) -> None:
        """A rebuild gives the folders of the database before this one to the projects of the same names."""
        for folder, project in found.former.items():
            self.strangers[folder] = (
                "it is from a database before this one; memoryd reindex --force takes it in"
            )
            if is_reindex:
                try:
                    make_home(self._root, project, anew=True)
                    del self.strangers[folder]
                except (OSError, Blocked) as error:
                    self.strangers[folder] = f"its {META} cannot be written: {error}"

    def _make(self, found: Folders, states: Mapping[bytes, ProjectState], *, is_heal: bool) -> None:
        """Say in a project's folder whose it is, where nothing else is missed; when it is healed, make the folder too."""
        for project in found.known.values():
            state = states.get(project.id)
            if state is None or not state.pages or project.id in found.claimed:
                continue
            home = self._finder.home(project)
            is_whole = home is Home.UNMARKED and state.files and not (state.missing or state.waiting)
            if is_whole or (is_heal and home in (Home.ABSENT, Home.UNMARKED)):
                try:
                    make_home(self._root, project)
                except (OSError, Blocked) as error:
                    self.strangers[project_directory(project)] = f"it cannot be made: {error}"


def is_due(
    known: Mapping[str, Project], touched: set[str], states: Mapping[bytes, ProjectState], looks: FolderLooks
) -> bool:
    """Whether something happened to whole folders, as far as a look at single ones can tell."""
    return (
        looks.is_waiting
        or bool(looks.away)
        or any(folder not in known for folder in touched)
        or any(state.away for state in states.values())
    )
