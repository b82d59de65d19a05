"""The owner record on the broker: only the writer of the highest epoch may delete commands."""

from __future__ import annotations

from redis import Redis

from memory_core.errors import NotAlone
from workers.queue.keys import Keys
from workers.queue.script import Script

#: Lua: whether the record in `key` is ours, claimed when it is missing (a wiped broker) or of a lower epoch.
OWNS = """
local function owns(key, epoch, token)
  local record = redis.call('GET', key)
  if record == epoch .. ':' .. token then return true end
  local theirs = record and tonumber(string.match(record, '^(%d+):'))
  if theirs and theirs >= tonumber(epoch) then return false end
  redis.call('SET', key, epoch .. ':' .. token)
  return true
end
"""

_CLAIM = Script(OWNS + "return owns(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0")


def claim_owner(client: Redis, keys: Keys, epoch: int, token: str) -> None:
    """Write or verify the record of the writer with this epoch and token; harmless when repeated.

    Raises `NotAlone` when a higher epoch, or an equal one with another token, owns the stream, and
    `Unavailable` when the broker does not answer.
    """
    if not _CLAIM.run(client, [keys.owner], [epoch, token]):
        raise not_alone(epoch)


def not_alone(epoch: int) -> NotAlone:
    return NotAlone(f"another writer owns the stream of commands; this one has epoch {epoch}")
