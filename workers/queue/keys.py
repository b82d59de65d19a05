"""The names that one install uses on the broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """Every key and channel of the install `install` (hex); two installs on one broker share none."""

    install: str

    @property
    def commands(self) -> str:
        """The stream of commands: the writer queue."""
        return f"m:{self.install}:commands"

    @property
    def bytes(self) -> str:
        """How many bytes wait in the stream; absent when it is empty."""
        return f"m:{self.install}:bytes"

    @property
    def oldest(self) -> str:
        """When the oldest waiting command came, milliseconds of the broker's clock; absent when none waits."""
        return f"m:{self.install}:oldest"

    @property
    def owner(self) -> str:
        """Who may delete commands: `<epoch>:<token>` of the writer."""
        return f"m:{self.install}:owner"

    @property
    def door(self) -> str:
        """Present for some seconds after a doorbell of the writer was rung."""
        return f"m:{self.install}:door"

    @property
    def replies(self) -> str:
        """The channel on which the writer names the ids that it committed."""
        return f"m:{self.install}:replies"
