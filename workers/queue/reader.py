"""The writer's end of the queue: reads the stream from its head, deletes what is committed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from memory_core import limits
from memory_core.domain.command import Envelope
from memory_core.errors import Invalid, Unavailable
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.owner import OWNS, not_alone
from workers.queue.script import Script
from workers.queue.wire import FIELD, BodyReference, Packed, open_packed

logger = logging.getLogger(__name__)

_HEAD = "0-0"
#: What an entry is thought to weigh before the first read.
_FIRST_GUESS_BYTES = 64 * limits.KIB

# KEYS commands, bytes, oldest, owner; ARGV epoch, token, then id and size of each entry
_DELETE = Script(
    OWNS
    + """
if not owns(KEYS[4], ARGV[1], ARGV[2]) then return -1 end
local deleted, freed = 0, 0
for i = 3, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
    deleted = deleted + 1
    freed = freed + tonumber(ARGV[i + 1])
  end
end
local head = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not head then
  redis.call('DEL', KEYS[2], KEYS[3])
elseif deleted > 0 then
  local bytes = math.max(0, tonumber(redis.call('GET', KEYS[2]) or '0') - freed)
  redis.call('SET', KEYS[2], string.format('%.0f', bytes))
  redis.call('SET', KEYS[3], string.match(head[1], '^%d+'))
end
return deleted
"""
)

#: So many entries are taken from the answer that is waited for, the others behind them in one piece.
_LOOK_ENTRIES = 16
# KEYS commands; ARGV the last entry that is had, how many. Ends before an entry that is none of ours.
_MORE = Script(
    """
local ids, sizes, texts = {}, {}, {}
for i, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])) do
  local fields = entry[2]
  if #fields ~= 2 or fields[1] ~= ARGV[3] then break end
  ids[i], sizes[i], texts[i] = entry[1], #fields[2], fields[2]
end
return {table.concat(ids, ' '), table.concat(sizes, ' '), table.concat(texts)}
""",
    writes=False,
)


# Both are tuples because one is made for each command: a frozen dataclass takes three times as long.
class Entry(NamedTuple):
    """One entry of the stream. Without an envelope it could not be read: set `raw` aside, then delete it."""

    stream_id: bytes
    #: What it adds to the byte counter: its bytes in the stream and its body beside it.
    size: int
    envelope: Envelope | None
    #: The bytes of an entry that could not be read; empty for others.
    raw: bytes = b""
    #: The file in `incoming/` that carried the body; empty for most.
    beside: str = ""


class _Waiting(NamedTuple):
    """A fetched entry whose large body was not loaded yet."""

    stream_id: bytes
    size: int
    raw: bytes
    packed: Packed
    reference: BodyReference


class StreamReader:
    """Reads in order, from one thread at a time. A re-read after a failure is normal: the id table absorbs it."""

    def __init__(self, client: Redis, keys: Keys, *, incoming: Incoming) -> None:
        self._client = client
        self._keys = keys
        self._incoming = incoming
        self._tail: deque[_Waiting | Entry] = deque()
        self._undeleted: set[bytes] = set()
        self._cursor: str | bytes = _HEAD
        self._typical_bytes = _FIRST_GUESS_BYTES

    def read(self, count: int, block_ms: int) -> list[Entry]:
        """The next entries, at most `count` and 4 MiB (but one at least), oldest first; waits up to
        `block_ms` (0: not at all) while there are none. `Unavailable` when the broker does not answer,
        `StorageStopped` when a large body cannot be read.
        """
        if not self._tail:
            self._fetch(count, block_ms)
        entries: list[Entry] = []
        total_bytes = 0
        while self._tail and len(entries) < count:
            total_bytes += self._tail[0].size
            if entries and total_bytes > limits.BATCH_BYTES_MAX:
                break
            entries.append(self._load(self._tail[0]))
            self._undeleted.add(self._tail.popleft().stream_id)
        return entries

    def give_back(self, entries: Sequence[Entry]) -> None:
        """Put entries of the last read, not applied yet, in front of the tail; the next read begins with them."""
        self._tail.extendleft(reversed(entries))

    def forget_tail(self) -> None:
        """Begin at the head again with the next read; at any exception, and with entries not deleted."""
        self._tail.clear()
        self._undeleted.clear()
        self._cursor = _HEAD

    def delete(self, entries: Sequence[Entry], epoch: int, token: str) -> int:
        """Delete committed entries and their files; how many were still there.

        Checks the owner record in the same script: `NotAlone` when another writer owns the stream
        (nothing is deleted then); `Unavailable` when the broker does not answer.
        """
        arguments: list[bytes | str | int] = [epoch, token]
        for entry in entries:
            arguments += (entry.stream_id, entry.size)
        keys = [self._keys.commands, self._keys.bytes, self._keys.oldest, self._keys.owner]
        deleted = int(_DELETE.run(self._client, keys, arguments))
        if deleted < 0:
            raise not_alone(epoch)
        for entry in entries:
            self._undeleted.discard(entry.stream_id)
            if entry.beside:
                self._incoming.remove(entry.beside)
        return deleted

    def sweep_incoming(self, now_us: int) -> int:
        """Remove bodies that no entry names, older than a day; how many. Does nothing while entries wait."""
        return 0 if self._count() else self._incoming.sweep(now_us)

    def rewrite_log(self) -> bool:
        """Have the broker write its append-only file anew, which is small while nothing waits; whether it
        began. For a disk that gets full: the file keeps what was deleted until then.
        """
        if self._count():
            return False
        try:
            self._client.bgrewriteaof()
        except ResponseError:  # one is under way, or a managed broker forbids it
            return False
        except RedisError as error:
            raise Unavailable(f"the broker did not answer: {error}") from error
        return True

    def _count(self) -> int:
        try:
            return int(self._client.xlen(self._keys.commands))  # pyright: ignore[reportArgumentType]
        except RedisError as error:
            raise Unavailable(f"the broker did not answer: {error}") from error

    def _fetch(self, count: int, block_ms: int) -> None:
        # From the very head whenever nothing read is outstanding: after a wipe and a clock that stepped
        # back, new entries have smaller ids than the last one seen.
        start = self._cursor if self._undeleted else _HEAD
        fitting = max(1, min(count, limits.BATCH_BYTES_MAX // self._typical_bytes))
        try:
            answer: Any = self._client.xread(
                {self._keys.commands: start},
                count=min(fitting, _LOOK_ENTRIES),
                block=block_ms if block_ms > 0 else None,
            )
        except RedisError as error:
            raise Unavailable(f"the broker did not answer: {error}") from error
        if not answer:
            return
        [(_, found)] = answer
        fetched = [_waiting(stream_id, fields) for stream_id, fields in found]
        if len(fetched) == _LOOK_ENTRIES < fitting:
            fetched += self._more(fetched[-1].stream_id, fitting - _LOOK_ENTRIES)
        self._tail.extend(fetched)
        self._cursor = fetched[-1].stream_id
        self._typical_bytes = max(1, sum(entry.size for entry in fetched) // len(fetched))

    def _more(self, behind: bytes, count: int) -> list[_Waiting | Entry]:
        """The entries behind that one, as three texts: the client takes an answer of arrays apart piece by piece, five per entry."""
        ids, sizes, texts = _MORE.run(self._client, [self._keys.commands], [behind, count, FIELD])
        found: list[_Waiting | Entry] = []
        at = 0
        for stream_id, size in zip(ids.split(), map(int, sizes.split()), strict=True):
            found.append(_opened(stream_id, texts[at : at + size]))
            at += size
        return found

    def _load(self, waiting: _Waiting | Entry) -> Entry:
        if isinstance(waiting, Entry):
            return waiting
        try:
            body = self._incoming.get(waiting.reference)
        except Invalid as error:
            return _unreadable(waiting.stream_id, waiting.size, waiting.raw, error)
        envelope = waiting.packed.envelope(body)
        return Entry(waiting.stream_id, waiting.size, envelope, beside=waiting.reference.name)


def _waiting(stream_id: bytes, fields: dict[bytes, bytes]) -> _Waiting | Entry:
    raw = fields.get(FIELD)
    # What no release wrote is kept whole for whoever looks at it.
    return _opened(stream_id, msgspec.msgpack.encode(fields) if raw is None else raw)


def _opened(stream_id: bytes, raw: bytes) -> _Waiting | Entry:
    try:
        packed = open_packed(raw)
    except Invalid as error:
        return _unreadable(stream_id, len(raw), raw, error)
    if (reference := packed.reference) is not None:
        return _Waiting(stream_id, len(raw) + reference.size, raw, packed, reference)
    return Entry(stream_id, len(raw), packed.envelope(packed.body))


def _unreadable(stream_id: bytes, size: int, raw: bytes, error: Invalid) -> Entry:
    logger.warning(
        "an entry of the stream cannot be read: %s",
        error,
        extra={"action": "entry_unreadable", "stream_id": stream_id.decode()},
    )
    return Entry(stream_id, size, None, raw=raw)
