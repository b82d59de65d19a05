"""Asking the gate for a job: what it gives, and the lease that was made for it."""

from __future__ import annotations

import secrets

import msgspec

from workers.pool.gate import Pause, PoolGate


class ClaimedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says of a job that it gives away."""

    id: str
    kind: str
    queue: str
    #: `workspace/project`; None: the whole install.
    project: str | None = None
    attempt: int
    run_seconds: float
    is_inline: bool = False


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `/pool/claim`."""

    job: ClaimedJob | None
    input: msgspec.Raw = msgspec.Raw(b"null")
    input_digest: str = ""
    more: bool = False


def claim(
    gate: PoolGate,
    queues: list[str],
    *,
    worker: str,
    on_data_host: bool,
    seconds: float,
    pause: Pause,
    kind: str = "",
) -> tuple[Claim, str]:
    """Ask for the next job of some queues, or of one kind in them: the answer, and the lease that was made for it.

    Raises what `PoolGate.insist` does. A claim whose answer never came ends by its lease, uncounted.
    """
    lease = secrets.token_urlsafe(32)
    body = {"queues": queues, "lease": lease, "worker": worker, "on_data_host": on_data_host, "kind": kind}
    return gate.insist("/pool/claim", body, seconds=seconds, pause=pause, type=Claim), lease
