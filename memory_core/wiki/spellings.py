"""Names that differ only in case or in Unicode's normal form: two such files are one page, so no second one is made."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from memory_core.domain.page import name_key
from memory_core.errors import Invalid
from memory_core.wiki.exchange import Blocked, directory
from memory_core.wiki.layout import parts_of

#: `<workspace>/<project>`: how these are spelled is not the page's.
_PROJECT_PARTS = 2


class Spellings:
    """For one pass over the files: each folder is listed at most once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._listed: dict[tuple[str, ...], dict[str, list[str]]] = {}

    def other(self, file: str) -> str | None:
        """A plain file (relative to the wiki root) that is the same page as `file`, which is not there itself; else None."""
        parts = parts_of(file)
        if self._is_there(parts):
            return None
        places = [parts[:_PROJECT_PARTS]]
        for part in parts[_PROJECT_PARTS:]:
            key = name_key(part)
            places = [[*place, name] for place in places for name in self._names(place).get(key, ())]
        found = (place for place in places if place != parts and self._is_there(place, is_plain=True))
        return next(("/".join(place) for place in found), None)

    def _names(self, place: list[str]) -> dict[str, list[str]]:
        """Key of each name in a folder to how it is spelled there; empty where no folder is."""
        known = self._listed.get(tuple(place))
        if known is None:
            known = self._listed[tuple(place)] = {}
            with (
                suppress(OSError, Blocked),
                directory(self._root, place, create=False) as folder,
                os.scandir(folder) as entries,
            ):
                for name in (entry.name for entry in entries):
                    known.setdefault(name.lower() if name.isascii() else name_key(name), []).append(name)
        return known

    def _is_there(self, parts: list[str], *, is_plain: bool = False) -> bool:
        with (
            suppress(OSError, Blocked, Invalid),
            directory(self._root, parts[:-1], create=False) as folder,
        ):
            mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
            return stat.S_ISREG(mode) or not is_plain
        return False
