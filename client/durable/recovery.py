"""Closing the interrupted turn of a session, without going on with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from client.durable.directory import identity_of
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from client.settings import ClientSettings, load
from memory_core.errors import CoreError


def recover(
    session_id: str,
    directory: str | os.PathLike[str] = ".",
    *,
    accept_unknown_effects: bool = False,
    settings: ClientSettings | None = None,
) -> Mapping[str, Any]:
    """Close the interrupted turn of a session and let go of it: the report.

    No tool is run again. Raises `UncertainToolInvocations` unless it is accepted that calls without a result
    may have had their effect, and `Invalid` where there is nothing to recover.
    """
    identity = identity_of(directory, os.environ)
    port = HttpSession(Transport(settings or load()), session_id, identity)
    port.claim()
    is_done = False
    try:
        port.confirm_replay(port.replay())
        report = port.recover(accept_unknown_effects=accept_unknown_effects)
        is_done = True
        return report
    finally:
        with suppress(CoreError):
            port.release(is_patient=is_done)
