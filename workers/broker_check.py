"""Whether a broker that somebody else runs keeps what an answer 202 promises."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory_core import config, limits
from memory_core.errors import CoreError, Invalid, Unavailable
from workers.broker import broker_url

_OLDEST = (7, 0)
_UNKNOWN = "not told"
#: Setting, the value it must have, the promise that is void without it.
_PROMISES = (
    ("appendonly", "yes", "an accepted event survives the end of the broker process"),
    ("appendfsync", "always", "an accepted event survives a power cut of the broker's machine"),
    ("maxmemory-policy", "noeviction", "an accepted event is never evicted to make room"),
)


@dataclass(frozen=True, kw_only=True)
class BrokerReport:
    """What a broker is, and which promises it cannot keep (empty: it keeps all)."""

    server: str
    version: str
    promises_void: list[str]


def check_broker(url: str, *, accept_weaker_durability: bool = False) -> BrokerReport:
    """Ask a broker for its version and the settings that durability rests on.

    Raises `Unavailable` when it does not answer, `Invalid` when it is too old, and, unless a weaker
    durability is accepted, `Invalid` that names each setting that is wrong.
    """
    client = redis.Redis.from_url(
        url.replace("valkey://", "redis://", 1),
        socket_connect_timeout=limits.BROKER_CONNECT_SECONDS,
        socket_timeout=limits.BROKER_APPEND_SECONDS,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
    )
    try:
        information = client.info()
        found = _settings_of(client, information)
    except redis.RedisError as error:
        raise Unavailable(f"the broker {without_password(url)} does not answer: {error}") from error
    finally:
        client.close()
    server = "Valkey" if "valkey_version" in information else "Redis"
    version = str(information.get("valkey_version") or information.get("redis_version") or "0")
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise Invalid(f"the broker is {server} {version}; memoryd needs 7.0 or newer")
    wrong = [(name, found[name], want, lost) for name, want, lost in _PROMISES if found[name] != want]
    if wrong and not accept_weaker_durability:
        lines = "; ".join(f"{name} is {is_!r}, needed is {want!r}" for name, is_, want, _ in wrong)
        raise Invalid(
            f"the broker {without_password(url)} does not keep what memoryd promises: {lines}. "
            "Change it there, or start with --accept-weaker-durability."
        )
    void = [f"{lost} ({name} is {is_!r})" for name, is_, _, lost in wrong]
    return BrokerReport(server=server, version=version, promises_void=void)


def without_password(url: str) -> str:
    """The address as it may be shown and logged."""
    return re.sub(r"//[^@/]*@", "//", url)


def main() -> int:
    """Check the broker of this process's settings; print the report, or the reason of a refusal, as one JSON object."""
    settings = config.load()
    try:
        report = check_broker(
            broker_url(settings), accept_weaker_durability=settings.accept_weaker_durability
        )
    except CoreError as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": str(error)}) + "\n")
        return 1
    sys.stdout.write(json.dumps(asdict(report)) + "\n")
    return 0


def _settings_of(client: redis.Redis, information: dict[str, object]) -> dict[str, str]:
    """The settings by `CONFIG GET`; where a managed broker forbids that, what `INFO` tells."""
    names = [name for name, _, _ in _PROMISES]
    try:
        answer = client.config_get(*names)
    except redis.ResponseError:
        answer = {
            "appendonly": "yes" if information.get("aof_enabled") in (1, "1") else "no",
            "maxmemory-policy": information.get("maxmemory_policy", _UNKNOWN),
        }
    return {name: str(answer.get(name, _UNKNOWN)) for name in names}


if __name__ == "__main__":
    sys.exit(main())
