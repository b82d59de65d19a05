"""The gate's end of the writer queue: one script that looks at the backlog first and only then appends."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.connection import Connection
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    NoScriptError,
    RedisError,
    ResponseError,
    TimeoutError,
)

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.command import Envelope
from memory_core.errors import OutcomeUnknown, Unavailable
from workers.queue.disk import DiskGauge
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.script import Script
from workers.queue.wire import pack

logger = logging.getLogger(__name__)

# KEYS commands, bytes, oldest, door
# ARGV max bytes, max entries, max age ms, door ms, then size and payload of each command
# Every key is read before the first append, so that a key of the wrong kind fails before anything is kept.
# The age is a key of its own: reading the head of the stream took 8.6 ms under an entry of 4 MiB.
_APPEND = Script("""
local length = redis.call('XLEN', KEYS[1])
local bytes = 0
local oldest = redis.call('GET', KEYS[3])
if length > 0 then bytes = tonumber(redis.call('GET', KEYS[2]) or '0') end
if length > 0 and oldest then
  local time = redis.call('TIME')
  if time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(oldest) > tonumber(ARGV[3]) then
    return {0, 'age', 0}
  end
end
local accepted, reason = 0, ''
for i = 5, #ARGV, 2 do
  local size = tonumber(ARGV[i])
  if length >= tonumber(ARGV[2]) then reason = 'entries' break end
  if bytes + size > tonumber(ARGV[1]) then reason = 'bytes' break end
  local id = redis.call('XADD', KEYS[1], '*', 'e', ARGV[i + 1])
  if length == 0 then redis.call('SET', KEYS[3], string.match(id, '^%d+')) end
  length = length + 1
  bytes = bytes + size
  accepted = accepted + 1
end
if accepted == 0 then return {0, reason, 0} end
redis.call('SET', KEYS[2], string.format('%.0f', bytes))
local rung = redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[4])
return {accepted, reason, rung and 1 or 0}
""")

#: Errors that the broker gives before it runs a script.
_NOT_RUN = frozenset({
    "BUSY", "LOADING", "OOM", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "NOPERM",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What became of the commands: the first `accepted` are kept and synced, of the others nothing is.

    `refused` names the mark that stopped the rest: `bytes`, `entries`, `age` or `disk`.
    """

    accepted: int
    refused: str | None = None
    retry_after_seconds: float = 0.0
    #: No doorbell was rung lately: ring the writer's.
    must_ring: bool = False


class CommandQueue:
    """Appends commands to the stream of one install. Safe for threads and across forks."""

    def __init__(
        self, client: Redis, keys: Keys, clock: Clock, disk: DiskGauge, *, incoming: Incoming
    ) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._disk = disk
        self._incoming = incoming

    def append(self, envelopes: Sequence[Envelope]) -> Admission:
        """Keep the longest prefix of `envelopes` that the marks allow, in order.

        Raises `Unavailable` when nothing was kept because the broker (or the disk, for a large body) could not be asked, and
        `OutcomeUnknown` when it was asked and did not answer: it may still append them later.
        """
        if not envelopes:
            return Admission(accepted=0)
        room = self._disk.backlog_room_bytes()
        if room <= 0:
            return _refusal(0, "disk")
        arguments: list[bytes | str | int] = [
            min(room, limits.BACKLOG_MAX_BYTES),
            limits.BACKLOG_MAX_ENTRIES,
            int(limits.BACKLOG_MAX_AGE_SECONDS * 1000),
            limits.DOORBELL_TTL_MS,
        ]
        files: list[str | None] = []
        try:
            for envelope in envelopes:
                files.append(self._add(envelope, arguments))
            accepted, reason, must_ring = self._ask(arguments)
        except OutcomeUnknown:
            raise  # the broker may still append what names these files; orphans are swept
        except BaseException:
            self._discard(files)
            raise
        self._discard(files[accepted:])
        if accepted == len(envelopes):
            return Admission(accepted=accepted, must_ring=bool(must_ring))
        mark = reason.decode()
        if mark == "bytes" and room < limits.BACKLOG_MAX_BYTES:
            mark = "disk"
        return _refusal(accepted, mark, must_ring=bool(must_ring))

    def _add(self, envelope: Envelope, arguments: list[bytes | str | int]) -> str | None:
        """Add one command to the script's arguments; the name of the file that its body went to."""
        if len(envelope.body) <= limits.INLINE_COMMAND_MAX_BYTES:
            payload = pack(envelope)
            arguments += (len(payload), payload)
            return None
        reference = self._incoming.put(envelope.id, envelope.body)
        payload = pack(envelope, reference)
        arguments += (len(payload) + reference.size, payload)
        return reference.name

    def _discard(self, files: Sequence[str | None]) -> None:
        for name in files:
            if name:
                self._incoming.remove(name)

    def _ask(self, arguments: Sequence[bytes | str | int]) -> Any:
        keys = (self._keys.commands, self._keys.bytes, self._keys.oldest, self._keys.door)
        pool = self._client.connection_pool
        started = self._clock.monotonic()
        try:
            connection = pool.get_connection()
        except (RedisError, OSError) as error:
            raise Unavailable(f"no connection to the broker: {error}") from error
        try:
            try:
                return _exchange(connection, "EVALSHA", _APPEND.sha, len(keys), *keys, *arguments)
            except NoScriptError:
                return _exchange(connection, "EVAL", _APPEND.source, len(keys), *keys, *arguments)
        except BaseException:
            connection.disconnect()
            raise
        finally:
            pool.release(connection)
            took = self._clock.monotonic() - started
            if took > limits.BROKER_APPEND_SECONDS / 2:
                logger.warning(
                    "the broker was slow", extra={"action": "broker_slow", "milliseconds": round(took * 1000)}
                )


def _exchange(connection: Connection, *parts: bytes | str | int) -> Any:
    """Send one command and read its answer; says for each failure whether it can have run."""
    try:
        connection.send_packed_command([b"".join(connection.pack_command(*parts))], check_health=False)
    except (ConnectionError, TimeoutError) as error:
        # The kernel did not take the whole command, and a broker does not run a part of one.
        raise Unavailable(f"the broker went away: {error}") from error
    try:
        return connection.read_response()
    except NoScriptError:
        raise
    except (BusyLoadingError, AuthenticationError) as error:
        raise Unavailable(f"the broker is not ready: {error}") from error
    except ResponseError as error:
        if _is_refused_before_running(error):
            raise Unavailable(f"the broker takes no commands: {error}") from error
        raise OutcomeUnknown(f"the broker failed: {error}") from error
    except (ConnectionError, TimeoutError) as error:
        if error.status_code:  # an answer: too many clients
            raise Unavailable(f"the broker takes no connection: {error}") from error
        raise OutcomeUnknown(f"the broker did not answer: {error}") from error


def _is_refused_before_running(error: ResponseError) -> bool:
    # redis-py strips the code of the errors that it has a class for.
    return type(error) is not ResponseError or str(error).split(" ", 1)[0] in _NOT_RUN


def _refusal(accepted: int, mark: str, *, must_ring: bool = False) -> Admission:
    wait = limits.RETRY_AFTER_DISK_SECONDS if mark == "disk" else limits.RETRY_AFTER_SECONDS
    return Admission(accepted=accepted, refused=mark, retry_after_seconds=wait, must_ring=must_ring)
