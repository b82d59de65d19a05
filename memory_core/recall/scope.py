"""Which projects a question is about. A question never makes one."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.domain import place
from memory_core.domain.project import Project
from memory_core.errors import Invalid, NotFound
from memory_core.store import projects, sessions
from memory_core.store.statement import Row
from memory_core.store.transaction import Reading

_CANDIDATES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks: the principal whose open sessions count, and the session or the directory where the client names it."""

    principal: str
    session_id: bytes | None = None
    #: In the client's namespace.
    directory: str | None = None


def project_for(reading: Reading, asker: Asker, workspace: str | None, project: str | None) -> Project:
    """The one project that is meant: the named one, else that of the asking session, else that of the asker's
    directory, else that of the only open session.

    Raises `NotFound`: there is no such project, the directory's is not there yet, or the scope is unknown; with the candidates.
    """
    if workspace or project:
        return _named(reading, asker, workspace, project)
    if new := _not_yet(reading, asker):
        raise NotFound(
            f"scope unknown: nothing is known yet of {place.DEFAULT_WORKSPACE}/{new}, the project of {asker.directory};"
            f" there are: {_listed(_all_names(reading))}"
        )
    open_ones = sessions.open_projects(reading, owner=asker.principal, limit=_CANDIDATES_SHOWN)
    current = _current(reading, asker, open_ones)
    if current is None:
        raise _unknown(reading, [f"{row['workspace']}/{row['project']}" for row in open_ones])
    return current


def names_for_write(
    reading: Reading, asker: Asker, workspace: str | None, project: str | None
) -> tuple[str, str]:
    """Names of workspace and project to write to. A named project need not be there yet: without a workspace it is then one of
    the workspace that is worked in, else of the default one. Without names as `project_for`, but the directory's project
    need not be there either."""
    if project:
        wanted, name = _names(workspace, project)
        if wanted:
            return wanted, name
        known, active = _alone(reading, asker, name)
        return (known["workspace"] if known is not None else active), name
    if not workspace and (new := _not_yet(reading, asker)):
        return place.DEFAULT_WORKSPACE, new
    found = project_for(reading, asker, workspace, project)
    return found.workspace, found.name


def global_project(reading: Reading) -> Project | None:
    """What holds for every project; None as long as nothing was written there."""
    row = projects.named(reading, place.DEFAULT_WORKSPACE, place.GLOBAL_PROJECT)
    return None if row is None else Project.from_row(row)


def _current(reading: Reading, asker: Asker, open_ones: list[Row]) -> Project | None:
    if asker.session_id is not None:
        row = sessions.one(reading, asker.session_id)
        if row is not None:
            return _by_id(reading, row["project_id"])
    if (around := _around(reading, asker.directory)) is not None:
        return around
    return _by_id(reading, open_ones[0]["project_id"]) if len(open_ones) == 1 else None


def _alone(reading: Reading, asker: Asker, name: str) -> tuple[Row | None, str]:
    """The project that a name without a workspace means (None: there is none), and the workspace that is worked in.

    That workspace's project comes first, then the default one's, then the only one elsewhere; of several elsewhere
    none is guessed (`NotFound`).
    """
    # Two are enough to tell whether there is one.
    open_ones = sessions.open_projects(reading, owner=asker.principal, limit=2)
    current = _current(reading, asker, open_ones)
    active = place.DEFAULT_WORKSPACE if current is None else current.workspace
    for workspace in dict.fromkeys((active, place.DEFAULT_WORKSPACE)):
        row = projects.named(reading, workspace, name)
        if row is not None:
            return row, active
    elsewhere = projects.by_name(reading, name, limit=_CANDIDATES_SHOWN + 1)
    if len(elsewhere) > 1:
        names = _listed([f"{row['workspace']}/{row['name']}" for row in elsewhere])
        raise NotFound(
            f"scope unknown: several workspaces have a project {name!r}: {names}; name workspace too"
        )
    return (elsewhere[0] if elsewhere else None), active


def _named(reading: Reading, asker: Asker, workspace: str | None, project: str | None) -> Project:
    if not project:
        raise Invalid("workspace alone names no project: give project too, or neither")
    wanted, name = _names(workspace, project)
    row = projects.named(reading, wanted, name) if wanted else _alone(reading, asker, name)[0]
    if row is not None:
        return Project.from_row(row)
    said = f"{wanted}/{name}" if wanted else name
    raise NotFound(f"there is no project {said!r}; there are: {_listed(_all_names(reading))}")


def _not_yet(reading: Reading, asker: Asker) -> str:
    """The name of the project that a hook in the asker's directory would make; empty where there is one, where the directory
    means none, and where the session decides."""
    path = place.plain_path(asker.directory)
    if path is None or place.is_too_wide(path) or _around(reading, asker.directory) is not None:
        return ""
    if asker.session_id is not None and sessions.one(reading, asker.session_id) is not None:
        return ""
    return place.name_from(place.last_component(path)) or place.DEFAULT_PROJECT


def _around(reading: Reading, directory: str | None) -> Project | None:
    """The project that an event in that directory would belong to, if there is one."""
    path = place.plain_path(directory)
    if path is None or place.is_too_wide(path):
        return None
    row = projects.above(reading, place.DEFAULT_WORKSPACE, place.ancestors(path))
    row = row or projects.named(reading, place.DEFAULT_WORKSPACE, place.name_from(place.last_component(path)))
    return None if row is None else Project.from_row(row)


def _by_id(reading: Reading, project_id: bytes) -> Project:
    row = projects.by_id(reading, project_id)
    if row is None:
        raise NotFound("the session's project is not there any more")
    return Project.from_row(row)


def _unknown(reading: Reading, open_ones: list[str]) -> NotFound:
    if open_ones:
        return NotFound(
            f"scope unknown: sessions are open in {_listed(open_ones)}; name one as workspace and project"
        )
    names = _all_names(reading)
    if not names:
        return NotFound("scope unknown: nothing is remembered yet; name a project to write to")
    return NotFound(
        f"scope unknown: no session is open; name workspace and project; there are: {_listed(names)}"
    )


def _all_names(reading: Reading) -> list[str]:
    return [
        f"{row['workspace']}/{row['name']}"
        for row in projects.listed(reading, limit=_CANDIDATES_SHOWN + 2)
        if row["name"] != place.CHECK_PROJECT
    ]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_CANDIDATES_SHOWN])
    return (shown + ", …" if len(names) > _CANDIDATES_SHOWN else shown) or "none yet"


def _names(workspace: str | None, project: str) -> tuple[str, str]:
    """Workspace and project; without a workspace its name is empty."""
    wanted, name = place.project_named(workspace, project)
    if not name:
        raise Invalid("project is empty; leave it out to mean the current one")
    return wanted or (place.DEFAULT_WORKSPACE if workspace else ""), name
