"""Identities of directories that are not known any more: device 0, which no directory on a disk has, so they match none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

DEVICE: Final = "0"
_INODES: Final = 2**64


def of_path(path: str) -> tuple[str, str]:
    """Device and inode of a directory that is gone: the first 8 bytes, big-endian, of the SHA-256 of its path."""
    return DEVICE, str(_number(path))


def of_row(row_id: str, is_taken: Callable[[str], bool]) -> tuple[str, str]:
    """Device and inode of an entry whose own identity another entry has: from its id, and the next number that `is_taken` lets be."""
    number = _number(row_id)
    while is_taken(str(number)):
        number = number % (_INODES - 1) + 1
    return DEVICE, str(number)


def _number(text: str) -> int:
    return max(1, int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
