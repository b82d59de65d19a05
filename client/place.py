"""Where an event happened: the repository around a directory, found without asking git. Light, for the shim."""

from __future__ import annotations

import os

_LEVELS_MAX = 64


def repository_of(directory: str) -> str:
    """The root of the repository that holds `directory`, of a worktree the main one's; empty when there is none.

    So that a session in a subdirectory or in a worktree belongs to the same project.
    """
    if not os.path.isabs(directory):
        return ""
    path = os.path.normpath(directory)
    for _ in range(_LEVELS_MAX):
        marker = os.path.join(path, ".git")
        if os.path.isdir(marker):
            return path
        if os.path.isfile(marker):
            return _main_of(marker) or path
        parent = os.path.dirname(path)
        if parent == path:
            return ""
        path = parent
    return ""


def _main_of(marker: str) -> str:
    """A worktree's `.git` is a file that names `<main>/.git/worktrees/<name>`; a submodule's names no such place."""
    try:
        with open(marker, encoding="utf-8") as file:
            named = file.read(4096)
    except (OSError, ValueError):
        return ""
    target = named.removeprefix("gitdir:").strip()
    target = os.path.normpath(os.path.join(os.path.dirname(marker), target))
    main, found, _ = target.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")
    return main if found else ""
