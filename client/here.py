"""Which directory or project a command is about: the directory that it is given in, unless it names another one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import click

from client.durable.directory import identity_of
from client.output import visible
from client.reference import scoped


@dataclass(frozen=True, kw_only=True)
class Here:
    """A directory (host, device, inode, path), a project, or both."""

    directory: dict[str, str] | None
    workspace: str | None
    project: str | None

    @property
    def body(self) -> dict[str, Any]:
        """As a change names it."""
        given = {"directory": self.directory, "workspace": self.workspace, "project": self.project}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def query(self) -> dict[str, str]:
        """As a list asks for it; a path says nothing there."""
        names = {name: value for name, value in self.body.items() if name != "directory"}
        place = self.directory or {}
        return names | {name: value for name, value in place.items() if name != "path"}

    @property
    def said(self) -> str:
        """`the project default/shop`, `the directory /srv/shop`."""
        if self.directory is None:
            return visible(f"the project {self.workspace or 'default'}/{self.project}")
        return visible(f"the directory {self.directory['path']}")


def here_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--directory`, `--workspace` and `--project`; the command gets them for `here`."""
    for option in (
        click.option("--project", help="This project, whatever the directory."),
        click.option("--workspace", help="Workspace of the project; default: 'default'."),
        click.option(
            "-C",
            "--directory",
            type=click.Path(),
            help="The directory that it is about; default: this one, unless a project is named.",
        ),
    ):
        function = option(function)
    return function


def here(directory: str | None, workspace: str | None, project: str | None) -> Here:
    """What the options mean. Raises `DirectoryGone` or `Invalid` for a directory that is none."""
    workspace, project = scoped(workspace, project)
    if workspace and not project:
        raise click.UsageError("--workspace goes with --project")
    place = None if project and directory is None else identity_of(directory or ".", os.environ)
    return Here(
        directory=None if place is None else asdict(place),
        workspace=workspace,
        project=project,
    )
