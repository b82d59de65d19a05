"""A project's folder below the wiki root: it is the project's as long as its `_meta.md` says so, whatever its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from memory_core import limits
from memory_core.domain.project import Project
from memory_core.durable import sync_directory
from memory_core.wiki.exchange import Away, directory, put_new, read_plain, write_synced
from memory_core.wiki.layout import META, TEMPORARY, meta_file, parts_of, project_directory, read_meta


class Home(Enum):
    """What a project's folder says of itself."""

    #: It is the project's.
    OWN = auto()
    #: There is none.
    ABSENT = auto()
    #: It does not say whose it is.
    UNMARKED = auto()
    #: It is another project's.
    FOREIGN = auto()


def home_at(root: Path, project: Project) -> Home:
    """How a project's folder stands at this moment. Raises `Away` without a wiki root, `Blocked` where no folder is."""
    folder = project_directory(project)
    try:
        with directory(root, parts_of(folder), create=False) as descriptor:
            found = read_plain(META, descriptor, limits.FRONT_MATTER_MAX_BYTES)
    except FileNotFoundError:
        return Home.ABSENT
    if found is None:
        return Home.UNMARKED
    said = read_meta(found[1].decode("utf-8", "replace"))
    # One that cannot be read was not written by another project.
    return Home.OWN if said is None or said.id == project.id else Home.FOREIGN


def reason_of(home: Home, folder: str) -> str:
    """Why nothing may be put into a folder of a project that has files; empty where it may."""
    return {
        Home.OWN: "",
        Home.ABSENT: f"the folder {folder} is not there",
        Home.UNMARKED: f"the folder {folder} has no {META}, so it may be another one",
        Home.FOREIGN: f"the folder {folder} says in its {META} that it is another project's",
    }[home]


def check_home(root: Path, project: Project, *, is_new: bool, is_empty_wiki: bool) -> Home:
    """How the project's folder stands; raises `Away` unless files of the project may be put into it now.

    `is_new`: no file of it was ever seen, so its folder may still have to be made; `is_empty_wiki`: nor of any other one. What
    was there before is not made anew: a disk that is not mounted would hide what is written in its place.
    """
    folder, home = project_directory(project), home_at(root, project)
    if home is Home.OWN:
        return home
    if home is Home.FOREIGN or not is_new:
        raise Away(reason_of(home, folder))
    if not is_empty_wiki and is_bare(root):
        raise Away("the wiki's own directory is empty")
    return home


def make_home(root: Path, project: Project, *, anew: bool = False) -> None:
    """Make a project's folder and the file that says whose it is, where they are missing; `anew`: that file in any case."""
    file, content = meta_file(project)
    parts = parts_of(file)
    with directory(root, parts[:-1], create=True) as folder:
        if not anew and read_plain(parts[-1], folder, 0) is not None:
            return
        draft = TEMPORARY[0] + "meta"
        write_synced(draft, content, folder)
        if anew:
            os.rename(draft, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        else:
            put_new(draft, parts[-1], folder)
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        os.fsync(folder)


def make_root(root: Path) -> None:
    """Make the wiki's own directory anew where it is gone. Raises `OSError`."""
    if root.is_dir():
        return
    root.mkdir(mode=0o700)
    sync_directory(root.parent)


def is_bare(root: Path) -> bool:
    """Whether nothing but hidden things lies in the wiki's own directory."""
    with os.scandir(root) as entries:
        return all(entry.name.startswith(".") for entry in entries)


@dataclass(kw_only=True)
class Folders:
    """What the folders on disk say, beside where the projects are expected to lie."""

    #: Folder → project of all that the database knows.
    known: Mapping[str, Project]
    #: Folder → the project that its `_meta.md` names; None: it names none.
    said: Mapping[str, Project | None]
    #: Projects whose folder is found under exactly one other name.
    moved: dict[str, Project] = field(default_factory=dict[str, Project])
    #: Folders that are no project's, and why.
    strangers: dict[str, str] = field(default_factory=dict[str, str])
    #: Projects that some other folder says it is.
    claimed: set[bytes] = field(default_factory=set[bytes])
    #: Folders that were the project of that name for another database: the one before this, which is lost.
    former: dict[str, Project] = field(default_factory=dict[str, Project])
    #: Folders that say they are a project that the database does not know.
    unknown: dict[str, Project] = field(default_factory=dict[str, Project])

    def sort(self) -> Folders:
        """Say of each folder whose it is."""
        ids = {project.id: folder for folder, project in self.known.items()}
        claims: dict[bytes, list[str]] = {}
        for folder, said in self.said.items():
            if said is None:
                if folder not in self.known:
                    self.strangers[folder] = f"it has no {META} that names its project"
            elif said.id not in ids:
                here = self.known.get(folder)
                if here is not None and (here.workspace, here.name) == (said.workspace, said.name):
                    self.former[folder] = here
                else:
                    self.unknown[folder] = said
            elif ids[said.id] != folder:
                claims.setdefault(said.id, []).append(folder)
        self.claimed = set(claims)
        for project_id, folders in claims.items():
            self._claimed(self.known[ids[project_id]], ids[project_id], folders)
        return self

    def _claimed(self, project: Project, home: str, folders: list[str]) -> None:
        said = self.said.get(home)
        if said is not None and said.id == project.id:
            self._strange(folders, f"it is a copy of {home}; move it away")
        elif len(folders) == 1:
            self.moved[folders[0]] = project
        else:
            names = " and ".join(sorted(folders))
            self._strange(folders, f"{names} all say that they are {home}; leave one of them")

    def _strange(self, folders: Iterable[str], why: str) -> None:
        for folder in folders:
            if folder not in self.known:
                self.strangers[folder] = why
