"""Server-side scripts: one round trip, all or nothing, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from redis import Redis
from redis.exceptions import NoScriptError, RedisError

from memory_core.errors import Unavailable

#: The first line makes the broker refuse the whole script when it may not write (memory, replica, disk),
#: instead of its first write in the middle.
_HEAD = "#!lua\n"
#: A script that only reads is run in any state.
_READING_HEAD = "#!lua flags=no-writes\n"


class Script:
    """A Lua script and the name by which the broker knows it once it was sent."""

    def __init__(self, source: str, *, writes: bool = True) -> None:
        self.source = (_HEAD if writes else _READING_HEAD) + source
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def run(self, client: Redis, keys: Sequence[str], arguments: Sequence[bytes | str | int]) -> Any:
        """The script's answer; `Unavailable` when the broker did not give one.

        For scripts that are harmless when run twice: whether it ran is not known then.
        """
        try:
            try:
                return client.evalsha(self.sha, len(keys), *keys, *arguments)  # pyright: ignore[reportArgumentType]
            except NoScriptError:
                return client.eval(self.source, len(keys), *keys, *arguments)  # pyright: ignore[reportArgumentType]
        except RedisError as error:
            raise Unavailable(f"the broker did not answer: {error}") from error
