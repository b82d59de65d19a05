"""Where a pool worker finds what it needs: beside the data directory, or anywhere that reaches the gate and the broker."""

from __future__ import annotations

import socket
from collections.abc import Callable

from memory_core import config, limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain.job import QUEUES
from memory_core.errors import Forbidden, Invalid, Unavailable
from workers.pool.gate import PoolGate


def queues_of(settings: Settings) -> tuple[str, ...]:
    """The queues to serve, each once. Raises `Invalid` for a name that is none."""
    unknown = [name for name in settings.pool_queues if name not in QUEUES]
    if unknown:
        raise Invalid(f"there is no queue {unknown[0]!r}; there are: {', '.join(QUEUES)}")
    return tuple(dict.fromkeys(settings.pool_queues or QUEUES))


def name_of(settings: Settings) -> str:
    """As told; else `pool`, or for one that lives apart what it serves and the host: of containers each has its own."""
    if settings.worker_name:
        return settings.worker_name
    if not (settings.state_dir or settings.off_data_host):
        return "pool"
    return f"{'-'.join(settings.pool_queues) or 'pool'}-{socket.gethostname()}"[
        : limits.WORKER_NAME_MAX_CHARS
    ]


def gate_of(settings: Settings, clock: Clock) -> PoolGate:
    return PoolGate(settings.effective_gate_url, token_reader(settings), clock)


def install_of(settings: Settings, gate: PoolGate) -> str:
    """The install id, which names the queues on the broker: as told, as the data directory says, or as the gate says.

    Raises `Unavailable` while nobody can tell, `Forbidden` where the gate does not accept the token.
    """
    if settings.install or not settings.off_data_host:
        return config.install_id(settings)
    return install_at(settings, gate)


def install_at(settings: Settings, gate: PoolGate) -> str:
    """The install id as the gate tells it. Raises the errors of `PoolGate`; `Forbidden` names the gate and the token's file."""
    try:
        return str(gate.get("/pool/about")["install"])
    except Forbidden as error:
        raise Forbidden(
            f"{settings.effective_gate_url} does not accept the token in {settings.effective_pool_token_file}; "
            "it has to be one of that server, of scope pool: memoryd tokens create --scope pool"
        ) from error


def token_reader(settings: Settings) -> Callable[[], str]:
    """Reads the pool token anew at each call: it may be replaced. `Unavailable` where there is none."""
    file = settings.effective_pool_token_file

    def read() -> str:
        try:
            with file.open(encoding="ascii") as opened:
                return opened.read(4096).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(
                f"cannot read the pool token in {file}; make one with: memoryd tokens create --scope pool"
            ) from error

    return read
