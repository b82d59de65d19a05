"""Which directory on which host somebody works in: what it is, and what it is called.

A directory is told by host, device and inode. Its path only describes it: a renamed directory stays the same one, and another one at the
same path is another one. Nobody here looks at a disk; who is there says what it found.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memory_core import limits
from memory_core.errors import Invalid

_NUMBER = re.compile(rf"0|[1-9][0-9]{{0,{limits.DIRECTORY_NUMBER_MAX_CHARS - 1}}}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class DirectoryId:
    """`host` is the host's name for itself; `device` and `inode` are `st_dev` and `st_ino` in decimal digits (they may pass 63 bits)."""

    host: str
    device: str
    inode: str

    def check(self) -> None:
        """Raises `Invalid` for what cannot be an identity."""
        _check_text("host", self.host, limits.DIRECTORY_HOST_MAX_BYTES)
        for name, number in (("device", self.device), ("inode", self.inode)):
            if not _NUMBER.fullmatch(number):
                raise Invalid(f"directory: {name} is a number of `stat`, as decimal digits in a text")

    @property
    def id(self) -> DirectoryId:
        """The identity alone."""
        return DirectoryId(host=self.host, device=self.device, inode=self.inode)


@dataclass(frozen=True, kw_only=True)
class Directory(DirectoryId):
    """With the path that describes it now."""

    path: str

    def check(self) -> None:
        super().check()
        _check_text("path", self.path, limits.DIRECTORY_PATH_MAX_BYTES)


def _check_text(name: str, text: str, max_bytes: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"directory: {name} is no whole UTF-8") from None
    if not text.strip() or size > max_bytes:
        raise Invalid(f"directory: {name} has 1 to {max_bytes} bytes")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise Invalid(f"directory: {name} holds control characters")
