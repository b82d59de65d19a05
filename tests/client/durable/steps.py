"""What a session asks of its server, step by step: noted, and failing where a test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from client.durable.port import SessionPort
from memory_core.domain.audit_event import ApprovalRequested

NAMES = {
    "confirm_replay": "replayed",
    "events_after": "events",
    "store_snapshot": "snapshot",
    "set_title": "title",
    "begin_turn": "begin",
    "open_batch": "plan",
    "start_call": "start",
    "complete_call": "complete",
    "checkpoint_round": "checkpoint",
    "end_turn": "end",
    "fail_turn": "fail",
}


class Killed(BaseException):
    """The program ends here."""


class Steps:
    """Names of the steps that were taken. `before` and `after`: a step → what happens instead of it, or right after it."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def fail(self, step: str, error: BaseException, *, once: bool = True, after: bool = False) -> None:
        """From now on (or once) the step raises, before or after it took effect."""
        table = self.after if after else self.before

        def raise_it() -> None:
            if once:
                del table[step]
            raise error

        table[step] = raise_it

    def of(self, port: Any) -> SessionPort:
        """The port, watched."""
        return _Watched(port, self)  # type: ignore[return-value]


class _Watched:
    def __init__(self, port: Any, steps: Steps) -> None:
        self._port = port
        self._steps = steps

    @property
    def session_id(self) -> str:
        return self._port.session_id

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._port, name)

        def take(*arguments: Any, **named: Any) -> Any:
            step = NAMES.get(name, name)
            if name == "audit_call":
                step = "ask" if isinstance(arguments[0], ApprovalRequested) else "decide"
            if step == "release" and not self._port.has_lease:
                return None
            self._steps.taken.append(step)
            if step in self._steps.before:
                self._steps.before[step]()
            result = method(*arguments, **named)
            if step in self._steps.after:
                self._steps.after[step]()
            return result

        return take
