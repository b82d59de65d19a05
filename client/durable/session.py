"""A session that an agent can stop anywhere and resume exactly."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from client.durable import authority, history
from client.durable.agent import Agent, Around
from client.durable.calls import Calls, Listener
from client.durable.directory import identity_of
from client.durable.errors import Closed, InUse, LeaseLost, ListenerFailedAfterCommit, Poisoned, TurnCancelled
from client.durable.lease import LeaseKeeper
from client.durable.port import SessionPort, Written
from client.durable.redaction import journaled_input, redact_with
from client.durable.routes import HttpSession
from client.durable.tools import Approve, Toolbox
from client.durable.transport import Transport
from client.durable.turn import JournalFailed, Setting, Turn, TurnResult
from client.durable.waiting import Cancellation
from client.settings import ClientSettings, load
from memory_core import errors
from memory_core.domain.agent_message import AssetReference, Message
from memory_core.domain.directory import Directory
from memory_core.errors import CoreError
from memory_core.ids import IdSource, id_text

#: After these a turn that could not begin has left nothing behind.
_NOTHING_KEPT = (errors.Invalid, errors.Unavailable, errors.Forbidden)


class DurableAgentSession:
    """One agent's session: its history in memory, its lease, and the journal that both agree with.

    `start` begins one, `resume` goes on with one. `run` does a turn. One turn at a time; another thread may `cancel` it.
    """

    def __init__(self, agent: Agent, directory: Directory, port: SessionPort, around: Around) -> None:
        """Not yet usable: see `start` and `resume`."""
        self._agent = agent
        self._directory = directory
        self._port = port
        self._around = around
        self._toolbox = Toolbox(agent.tools)
        self._snapshot = self._made_snapshot()
        ids = IdSource(around.clock)
        self._new_id = lambda: id_text(ids.new())
        self._history: list[Message] = []
        self._last_sequence = 0
        self._leased_at = 0.0
        self._lock = threading.Lock()
        self._turn: tuple[Cancellation, Calls, LeaseKeeper] | None = None
        self._is_dropped = False
        self._is_open = False
        #: Why the session must not be used; None where journal and history agree.
        self._poison: str | None = "it was not opened yet"

    # --- beginning and going on ---

    @classmethod
    def start(
        cls,
        agent: Agent,
        directory: str | os.PathLike[str] = ".",
        *,
        title: str | None = None,
        workspace: str | None = None,
        project: str | None = None,
        settings: ClientSettings | None = None,
        around: Around | None = None,
    ) -> DurableAgentSession:
        """Begin a session in a directory. One whose setting up fails is deleted again."""
        found = settings or load()
        identity = identity_of(directory, os.environ)
        transport = Transport(found)
        session_around = around or Around(redact=redact_with(found.redaction_key))
        port = HttpSession(transport, "", identity)
        # Before anything is sent: an agent that cannot have a session makes none.
        session = cls(agent, identity, port, session_around)
        port.create(title=title, model_reference=agent.model_reference, workspace=workspace, project=project)
        try:
            session.open()
        except BaseException:
            with suppress(CoreError):
                port.delete()
            raise
        return session

    @classmethod
    def resume(
        cls,
        agent: Agent,
        session_id: str,
        directory: str | os.PathLike[str] = ".",
        *,
        settings: ClientSettings | None = None,
        around: Around | None = None,
    ) -> DurableAgentSession:
        """Go on with a session, in its directory and with its authority.

        A turn that was interrupted is closed first. Raises `UncertainToolInvocations` where calls of it may have
        had their effect: look, then `recover` and accept that.
        """
        found = settings or load()
        identity = identity_of(directory, os.environ)
        session = cls(
            agent,
            identity,
            HttpSession(Transport(found), session_id, identity),
            around or Around(redact=redact_with(found.redaction_key)),
        )
        session.open()
        return session

    def open(self) -> None:
        """Claim the session, read it, and be usable. Also the way on after a turn that did not end as it should."""
        with self._exclusively(is_patient=self._is_dropped):
            if self._is_open:
                self._release_quietly()
            self._poison = "it is being resumed"
            self._port.claim()
            self._is_open = True
            self._leased_at = self._around.clock.monotonic()
            try:
                self._read_all()
            except BaseException:
                self._release_quietly(is_patient=False)
                raise
            self._toolbox.reset()
            self._is_dropped = False
            self._poison = None

    def _read_all(self) -> None:
        replay = self._port.replay((read := history.Reader()).take)
        authority.check_same(replay.snapshot, self._snapshot, is_empty=replay.last_sequence == 0)
        self._port.confirm_replay(replay)
        if self._port.journal() is not None:
            self._port.recover(accept_unknown_effects=False)
            replay = self._port.replay((read := history.Reader()).take)
            self._port.confirm_replay(replay)
        found = read.history()
        if self._made_snapshot() != self._snapshot:
            raise errors.SnapshotMismatch("the agent was changed while its session was being opened")
        self._port.store_snapshot(self._snapshot)
        self._history = found
        self._last_sequence = replay.last_sequence

    # --- what it is ---

    @property
    def session_id(self) -> str:
        return self._port.session_id

    @property
    def directory(self) -> Directory:
        return self._directory

    @property
    def history(self) -> tuple[Message, ...]:
        """What the model is shown, the oldest first."""
        return tuple(self._history)

    @property
    def last_sequence(self) -> int:
        """Of the transcript, as far as this object knows."""
        return self._last_sequence

    @property
    def is_usable(self) -> bool:
        return self._is_open and self._poison is None

    @property
    def enabled_tools(self) -> frozenset[str]:
        return self._toolbox.enabled

    def narrow_tools(self, names: Iterable[str]) -> None:
        """Offer just these tools from the next round on. Forgotten at the next `open` or `resume`."""
        self._toolbox.narrow(names)

    # --- working ---

    def run(
        self,
        message: str | Message,
        *,
        on_event: Listener | None = None,
        approve: Approve | None = None,
    ) -> TurnResult:
        """One turn: the answer, committed. `on_event` hears what happens; `approve` decides calls that must be allowed.

        Raises kinds of `TurnFailed` where the turn failed and the session may be used again, `Poisoned` where
        it may not, `ListenerFailedAfterCommit` where all is well but the listener, and what the server refuses.
        """
        given = journaled_input(message, self._around.redact)
        with self._exclusively():
            self._check_usable()
            self._poison = "a turn of it did not end"
            return self._run(given, on_event, approve)

    def _run(self, message: Message, listener: Listener | None, approve: Approve | None) -> TurnResult:
        cancellation, calls = Cancellation(), self._around.calls()
        turn = Turn(
            self._setting(calls),
            self._history,
            cancellation=cancellation,
            last_sequence=self._last_sequence,
            listener=listener,
            approve=approve,
        )
        keeper = LeaseKeeper(
            self._port.renew, cancellation, seconds=self._around.renew_seconds, pause=self._around.pause
        )
        self._turn = cancellation, calls, keeper
        try:
            with keeper:
                self._renew_if_idle()
                return self._settled(turn, message)
        finally:
            self._turn = None
            self._last_sequence = turn.last_sequence
            calls.end()

    def _settled(self, turn: Turn, message: Message) -> TurnResult:
        try:
            result = turn.run(message)
        except JournalFailed as failed:
            self._after_journal_failed(turn, failed.error)
            raise failed.error from failed.error.__cause__
        except LeaseLost:
            raise
        except ListenerFailedAfterCommit:
            self._is_well(turn)
            raise
        except CoreError as error:
            try:
                turn.fail(error)
            except JournalFailed as failed:
                raise error from failed.error
            self._is_well(turn)
            raise
        self._is_well(turn)
        return result

    def _after_journal_failed(self, turn: Turn, error: CoreError) -> None:
        """Usable again only where the turn is out of the journal, or never was in it."""
        if not turn.has_begun:
            if isinstance(error, _NOTHING_KEPT):
                self._is_well(turn)
            return
        if isinstance(error, errors.OutcomeUnknown | errors.StaleLease):
            return
        with suppress(JournalFailed):
            turn.fail(error)
            self._is_well(turn)

    def _is_well(self, turn: Turn) -> None:
        self._last_sequence = turn.last_sequence
        self._leased_at = self._around.clock.monotonic()
        if not self._is_dropped:
            self._poison = None

    def cancel(self, why: str = "the turn was cancelled") -> None:
        """End the turn that runs, if one does; `run` then raises `TurnCancelled`. From any thread."""
        if self._turn is not None:
            self._turn[0].cancel(TurnCancelled(why))

    def drop(self) -> None:
        """Nobody waits for the turn any more: it is cancelled, and the session must be opened anew before it is used.

        What its tools still do is journaled as long as the lease lasts, which nobody renews any more.
        """
        self._is_dropped = True
        self._poison = self._poison or "a turn of it was dropped"
        if self._turn is not None:
            cancellation, calls, keeper = self._turn
            cancellation.cancel(TurnCancelled("nobody waits for the turn any more"))
            calls.leave()
            keeper.stop()

    def attach(self, source: bytes | str | os.PathLike[str], kind: str) -> AssetReference:
        """Take bytes in, or a file by its path, for the content of a message. `kind`: image, audio or video."""
        return self._port.take_in_asset(source, kind)

    def read_asset(self, reference: AssetReference) -> bytes:
        """What a message of the history refers to."""
        return self._port.read_asset(reference)

    def compact(self, context_window: int, current_tokens: int | None = None) -> Mapping[str, Any]:
        """Plan a compaction and queue its job, if so much of the model's context window is used that it is worth it.

        `current_tokens`: as the vendor counts them; without, bytes are counted. The job runs while nobody holds the
        session, and the next `open` reads its summary. Answers `{plan, job, is_new}`, each null where there is none.
        """
        return self._port.compact(context_window, current_tokens)

    def set_title(self, title: str) -> None:
        with self._exclusively():
            self._check_usable()
            self._port.set_title(title)

    # --- ending ---

    def close(self) -> str | None:
        """End the session: what it was about is queued for distillation. The id of the job, or None where there is
        nothing to distil.

        No model is asked. Raises `Poisoned` for a session whose last turn did not end as it should.
        """
        with self._exclusively():
            self._check_usable()
            job = self._port.close()
            self._is_open = False
            self._poison = "it was closed"
            return job

    def release(self) -> None:
        """Let go of the session without ending it; somebody else may resume it at once."""
        self._let_go(is_patient=True)

    def __enter__(self) -> DurableAgentSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """`close` at a good end; otherwise only let go, so that it can be resumed."""
        if not self._is_open:
            return
        if kind is None and self.is_usable:
            self.close()
        else:
            self._let_go(is_patient=kind is None)

    # --- inside ---

    def _let_go(self, *, is_patient: bool) -> None:
        with self._exclusively():
            self._poison = self._poison or "it was released"
            self._release_quietly(is_patient=is_patient)

    def _setting(self, calls: Calls) -> Setting:
        return Setting(
            port=self._port,
            directory=self._directory,
            model=self._agent.model,
            system_prompt=self._agent.system_prompt,
            options=self._agent.options,
            toolbox=self._toolbox,
            max_rounds=self._agent.max_rounds,
            calls=calls,
            redact=self._around.redact,
            new_id=self._new_id,
            read_back=self._read_back,
        )

    def _read_back(self, written: Written) -> list[Message]:
        return history.messages_of(self._port.events_after(written.first_sequence - 1, written.last_sequence))

    def _made_snapshot(self) -> dict[str, Any]:
        return self._agent.snapshot(self._directory, self._toolbox, self._around.redact)

    def _renew_if_idle(self) -> None:
        """Between turns nobody renews, so that a compaction can come in; the first step of a turn is to hold the lease."""
        if self._around.clock.monotonic() - self._leased_at < self._around.renew_seconds:
            return
        try:
            self._port.renew()
        except errors.Unavailable:
            self._poison = None
            raise

    def _check_usable(self) -> None:
        if not self._is_open:
            raise Closed(f"this session cannot be used: {self._poison}; resume it")
        if self._poison is not None:
            raise Poisoned(f"this session cannot be used: {self._poison}; open it again, or recover it")

    @contextmanager
    def _exclusively(self, *, is_patient: bool = False) -> Generator[None]:
        """One thing at a time. `is_patient`: wait for the end of a turn that was dropped."""
        if not self._lock.acquire(blocking=is_patient):
            if self._is_dropped:
                raise Poisoned(
                    "a turn of this session was dropped and has not ended yet; open the session again"
                )
            raise InUse
        try:
            yield
        finally:
            self._lock.release()

    def _release_quietly(self, *, is_patient: bool = True) -> None:
        """A lease that cannot be given back now ends by itself: where something failed already nobody waits for a server that is away."""
        self._is_open = False
        with suppress(CoreError):
            self._port.release(is_patient=is_patient)
