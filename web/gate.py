"""The one path of a write: redacted, wrapped, admitted, and, where somebody waits for it, looked up when it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock
from memory_core.commands import encode, kind_of
from memory_core.domain import recalled
from memory_core.domain.command import Envelope
from memory_core.errors import (
    Conflict,
    CoreError,
    Corrupt,
    Forbidden,
    Invalid,
    NotFound,
    ReplayRequired,
    ReusedId,
    SessionBusy,
    SnapshotMismatch,
    StaleLease,
    StaleReplay,
    Unavailable,
    UncertainCalls,
    WorkspaceMismatch,
)
from memory_core.ids import IdSource, id_text
from memory_core.redaction.document import RedactedValue
from memory_core.store import command_ids
from memory_core.store.database import Database
from web.answers import TooMuch
from web.auth import Caller
from web.identity import CommandId, body_hash
from web.meters import Meters
from workers.queue.admission import Admission
from workers.queue.replies import Waiter

_ERRORS: dict[str, type[CoreError]] = {
    kind.code: kind
    for kind in (
        Invalid,
        NotFound,
        Conflict,
        Forbidden,
        StaleLease,
        SessionBusy,
        ReplayRequired,
        StaleReplay,
        WorkspaceMismatch,
        SnapshotMismatch,
        UncertainCalls,
        Corrupt,
    )
}


class Appends(Protocol):
    """The gate's end of the queue: `CommandQueue.append`."""

    def append(self, envelopes: Sequence[Envelope]) -> Admission: ...


class Listens(Protocol):
    """Replies of the writer: `Replies`."""

    def ensure_subscribed(self, timeout: float) -> None: ...
    def expect(self, ids: Iterable[bytes]) -> Waiter: ...


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one command. `status`: committed, duplicate, pending, refused, dead, or not_kept."""

    status: str
    result: Any = None
    code: str = ""
    reason: str = ""


PENDING = Outcome(status="pending")
NOT_KEPT = Outcome(status="not_kept", reason="too much is waiting; send the same id again later")
REUSED = Outcome(
    status="refused",
    code=Conflict.code,
    reason=str(ReusedId()),
)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One outcome per command, in order, and the mark that stopped the rest (None: all were taken)."""

    outcomes: list[Outcome]
    refused: str | None = None
    retry_after_seconds: float = 1.0


class Gate:
    def __init__(
        self,
        *,
        queue: Appends,
        replies: Listens,
        database: Database,
        scan: Callable[[Any], RedactedValue],
        hash_key: bytes,
        ids: IdSource,
        clock: Clock,
        meters: Meters,
        ring: Callable[[], None],
    ) -> None:
        self.ids = ids
        self.clock = clock
        self._scan = scan
        self.hash_key = hash_key
        self._queue = queue
        self._replies = replies
        self._database = database
        self._meters = meters
        self._ring = ring
        self._waiters = threading.BoundedSemaphore(limits.REPLY_WAITERS_MAX)

    # --- making commands ---

    def redact(self, value: Any) -> Any:
        """The value without secrets; of one that could not be looked through only its shape is left."""
        return self._scan(value).value

    def envelope(
        self,
        command: object,
        command_id: CommandId,
        caller: Caller,
        *,
        received_hash: bytes,
        wants_reply: bool,
        not_after: int | None = None,
    ) -> Envelope:
        """An already redacted command, ready to be appended."""
        kind = kind_of(command)
        return Envelope(
            id=command_id.value,
            name=kind.name,
            version=kind.version,
            body=encode(command),
            body_hash=received_hash,
            principal=caller.principal,
            token_scope=caller.scope,
            recorded_at=self.clock.now_us(),
            is_foreign=command_id.is_foreign,
            wants_reply=wants_reply,
            not_after=not_after,
        )

    # --- appending ---

    def append(self, envelopes: Sequence[Envelope]) -> Admission:
        """Admit a prefix of `envelopes` in order. Raises `Unavailable` and `OutcomeUnknown`."""
        try:
            admission = self._queue.append(envelopes)
        except CoreError as error:
            self._meters.refused(error.code, len(envelopes))
            raise
        if admission.must_ring:
            self._ring()
        self._meters.accepted(admission.accepted)
        if admission.refused is not None:
            self._meters.refused(admission.refused, len(envelopes) - admission.accepted)
        return admission

    def take(self, envelopes: Sequence[Envelope]) -> Taken:
        """Append without waiting."""
        admission = self.append(envelopes)
        kept = [PENDING] * admission.accepted
        return Taken(
            outcomes=kept + [NOT_KEPT] * (len(envelopes) - admission.accepted),
            refused=admission.refused,
            retry_after_seconds=admission.retry_after_seconds,
        )

    def take_and_wait(self, envelopes: Sequence[Envelope], seconds: float) -> Taken:
        """Append, then wait until all are applied or `seconds` are over. With all places for waiters taken it
        does not wait; the outcomes are then pending."""
        fresh, known = self._split_known(envelopes)
        if not fresh:
            return Taken(outcomes=[known[index] for index in range(len(envelopes))])
        taken = self._waited([envelopes[index] for index in fresh], seconds)
        outcomes = known | dict(zip(fresh, taken.outcomes, strict=True))
        return Taken(
            outcomes=[outcomes[index] for index in range(len(envelopes))],
            refused=taken.refused,
            retry_after_seconds=taken.retry_after_seconds,
        )

    def known(self, envelope: Envelope) -> Outcome | None:
        """What the id table already says of this command (a duplicate, or its id with another body)."""
        return self._look([envelope])[0]

    def submit(
        self,
        command: object,
        command_id: CommandId,
        caller: Caller,
        *,
        seconds: float,
        valid_seconds: float = limits.RPC_VALID_SECONDS,
    ) -> Mapping[str, Any]:
        """Redact, append and wait `seconds` for one command: its answer, or that it is pending. Later than
        `valid_seconds` from now it takes no effect any more.

        Raises what a refusal stands for, `TooMuch`, `Unavailable`, `OutcomeUnknown`.
        """
        return self.send(
            self.cleaned(command),
            command_id,
            caller,
            received_hash=body_hash(self.hash_key, encode(command)),
            seconds=seconds,
            valid_seconds=valid_seconds,
        )

    def send(
        self,
        cleaned: object,
        command_id: CommandId,
        caller: Caller,
        *,
        received_hash: bytes,
        seconds: float,
        valid_seconds: float = limits.RPC_VALID_SECONDS,
    ) -> Mapping[str, Any]:
        """As `submit`, of a command that is redacted already; `received_hash` is of what it was made of."""
        envelope = self.envelope(
            cleaned,
            command_id,
            caller,
            received_hash=received_hash,
            wants_reply=True,
            not_after=self.clock.now_us() + round(valid_seconds * MICROSECONDS),
        )
        taken = self.take_and_wait([envelope], seconds)
        outcome = taken.outcomes[0]
        if outcome.status == "not_kept":
            raise TooMuch(taken.refused or "backlog", retry_after_seconds=taken.retry_after_seconds)
        if outcome.status in ("refused", "dead"):
            raise error_of(outcome)
        if outcome.status == "pending":
            return {"status": "pending", "command_id": id_text(envelope.id)}
        return outcome.result if isinstance(outcome.result, dict) else {}

    def cleaned(self, command: object) -> Any:
        """The same command without secrets and without text that memory itself had put before the agent. Raises `Unavailable`
        for one that could not be looked through."""
        plain = msgspec.to_builtins(command, builtin_types=(bytes,))
        # Ids are bytes here and stay as they are; every text goes through.
        scanned = self._scan(plain)
        if scanned.is_unscanned:
            # An event without its text still says that something happened; a page without it would be a lie.
            raise Unavailable(
                "the text could not be looked through for secrets in the time there is, and nothing was kept; send it again, or in parts"
            )
        return msgspec.convert(_unfenced(scanned.value), type=type(command), builtin_types=(bytes,))

    # --- waiting ---

    def _waited(self, envelopes: Sequence[Envelope], seconds: float) -> Taken:
        if not self._waiters.acquire(blocking=False):
            return self.take(envelopes)
        try:
            # A reply that nobody can hear is a wait for nothing: not subscribed, nothing is appended.
            self._replies.ensure_subscribed(limits.SUBSCRIBE_SECONDS)
            ids = [envelope.id for envelope in envelopes]
            with self._replies.expect(ids) as waiter:
                taken = self.take(envelopes)
                kept = envelopes[: sum(outcome is PENDING for outcome in taken.outcomes)]
                waiter.expect_only([envelope.id for envelope in kept])
                deadline = self.clock.monotonic() + seconds
                while True:
                    is_woken = waiter.wait(deadline)
                    outcomes = [outcome or PENDING for outcome in self._look(kept, first="committed")]
                    if not is_woken or PENDING not in outcomes:
                        break
        finally:
            self._waiters.release()
        rest = taken.outcomes[len(kept) :]
        return Taken(
            outcomes=outcomes + rest, refused=taken.refused, retry_after_seconds=taken.retry_after_seconds
        )

    def _split_known(self, envelopes: Sequence[Envelope]) -> tuple[list[int], dict[int, Outcome]]:
        """Indices of the commands to append, and the outcomes of those that need not be."""
        fresh: list[int] = []
        known: dict[int, Outcome] = {}
        first: dict[bytes, Envelope] = {}
        for index, (envelope, outcome) in enumerate(zip(envelopes, self._look(envelopes), strict=True)):
            earlier = first.setdefault(envelope.id, envelope)
            if outcome is not None:
                known[index] = outcome
            elif earlier is not envelope:
                is_same = earlier.body_hash == envelope.body_hash
                # Not yet applied itself: a duplicate of something that may still be lost is not done.
                known[index] = PENDING if is_same else REUSED
            else:
                fresh.append(index)
        return fresh, known

    def _look(self, envelopes: Sequence[Envelope], first: str = "duplicate") -> list[Outcome | None]:
        """What the id table says; None where it says nothing or cannot be asked. `first` names a committed one."""
        try:
            with self._database.snapshot() as reading:
                rows = [command_ids.lookup(reading, e.principal, e.id) for e in envelopes]
        except CoreError:
            return [None] * len(envelopes)
        return [
            None if row is None else self._outcome(envelope, row, first)
            for envelope, row in zip(envelopes, rows, strict=True)
        ]

    def _outcome(self, envelope: Envelope, row: Any, first: str) -> Outcome:
        if row["body_hash"] != envelope.body_hash:
            self._meters.refused("conflict", 1)
            return REUSED
        result = msgspec.json.decode(row["result"]) if row["result"] is not None else None
        if row["status"] == command_ids.COMMITTED:
            if first == "duplicate":
                self._meters.duplicate(1)
            return Outcome(status=first, result=result)
        told = result if isinstance(result, dict) else {}
        reason = told.get("message") or "the command was refused"
        return Outcome(
            status=row["status"], code=str(told.get("code", "")), reason=str(reason), result=result
        )


def error_of(outcome: Outcome) -> CoreError:
    """The error that a refusal stands for."""
    if outcome is REUSED:
        return ReusedId()
    told = outcome.result.get("detail") if isinstance(outcome.result, dict) else None
    return _ERRORS.get(outcome.code, Conflict)(outcome.reason, detail=told)


def _unfenced(value: Any) -> Any:
    if isinstance(value, str):
        return recalled.strip(value)
    if isinstance(value, dict):
        return {key: _unfenced(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unfenced(item) for item in value]
    return value
