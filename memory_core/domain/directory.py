"""Which directory somebody works in, as the machine of the one who works there names it."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.errors import Invalid

_HOST_MAX_BYTES = 255
_NUMBER_MAX_CHARS = 20


@dataclass(frozen=True, kw_only=True)
class DirectoryId:
    """Host, device and inode: what is compared. A renamed directory keeps it, one that was put in its place has another."""

    host: str
    #: Decimal digits, like `inode`: both are wider than a signed 64-bit integer.
    device: str
    inode: str

    def __post_init__(self) -> None:
        if not self.host.strip() or len(self.host.encode("utf-8", "replace")) > _HOST_MAX_BYTES:
            raise Invalid(f"directory.host is a name of at most {_HOST_MAX_BYTES} bytes")
        for name, number in (("device", self.device), ("inode", self.inode)):
            if not (number.isascii() and number.isdigit() and len(number) <= _NUMBER_MAX_CHARS):
                raise Invalid(f"directory.{name} is a number in decimal digits, as text")
