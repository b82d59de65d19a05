"""What works in a session, and what a session has around it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from client.durable import authority
from client.durable.calls import Calls, ThreadCalls
from client.durable.lease import Pause
from client.durable.model import Model
from client.durable.redaction import Redact
from client.durable.tools import Tool, Toolbox
from memory_core import errors, limits
from memory_core.clock import Clock, SystemClock
from memory_core.domain.directory import Directory


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What works in a session: the program's model, its prompt and its tools. All of it but `model` is the session's authority.

    A session that was begun with one authority is resumed with the same one only.
    """

    model: Model
    #: Which model it is, for example `vendor:model@2026-01-01`.
    model_reference: str
    system_prompt: str = ""
    tools: Sequence[Tool] = ()
    #: Temperature and the like; the model finds them in its request.
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Whatever else the program wants to be the same when the session is resumed.
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    max_rounds: int = limits.MODEL_ROUNDS_MAX

    def __post_init__(self) -> None:
        authority.checked_reference(self.model_reference)
        if not 1 <= self.max_rounds <= limits.MODEL_ROUNDS_MAX:
            raise errors.Invalid(f"max_rounds is 1 to {limits.MODEL_ROUNDS_MAX}")

    def snapshot(self, directory: Directory, toolbox: Toolbox, redact: Redact) -> dict[str, Any]:
        """What a session of this agent in that directory is begun with, and compared with at each `resume`."""
        return authority.snapshot_of(
            directory=directory,
            model_reference=self.model_reference,
            system_prompt=self.system_prompt,
            options=self.options,
            toolbox=toolbox,
            max_rounds=self.max_rounds,
            config=self.config,
            redact=redact,
        )


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a session has around it; tests put something else there."""

    clock: Clock = field(default_factory=SystemClock)
    redact: Redact
    calls: Callable[[], Calls] = ThreadCalls
    #: Between renewals while a turn runs.
    renew_seconds: float = limits.SESSION_RENEW_SECONDS
    pause: Pause = threading.Event.wait
