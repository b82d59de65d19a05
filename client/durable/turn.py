"""One turn: what was asked is journaled, then round by round the model and its tools, until there is an answer.

What a turn has written and what it still may write is known at each step, so that its end, whatever it is,
leaves a journal that agrees with the history, or a session that says that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from client.durable import asking
from client.durable.batch import ToolBatch
from client.durable.calls import Calls, Listener
from client.durable.errors import (
    HistoryFull,
    ListenerFailed,
    ListenerFailedAfterCommit,
    TooManyRounds,
    TurnCancelled,
)
from client.durable.model import Model, ModelReply, ModelRequest, Usage
from client.durable.outputs import OutputBudget
from client.durable.port import SessionPort, Written
from client.durable.redaction import Redact, redact_message
from client.durable.tools import Approve, Toolbox
from client.durable.waiting import Cancellation
from memory_core import limits
from memory_core.domain import audit_event
from memory_core.domain.agent_message import Message, ToolCall
from memory_core.domain.audit_event import (
    TOOL_CALLS,
    AuditEvent,
    CallPlanned,
    Cancelled,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    ToolOutput,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from memory_core.domain.directory import Directory
from memory_core.errors import CoreError, Corrupt

_STOP = "stop"


class JournalFailed(Exception):
    """The journal could not be written; `error` says why. What is in it is not sure."""

    def __init__(self, error: CoreError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """An answer that is committed."""

    turn_id: str
    message: Message
    rounds: int
    usage: Usage
    #: The sequence of the turn's last event in the transcript.
    last_sequence: int

    @property
    def text(self) -> str:
        return self.message.text


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a session gives to each of its turns."""

    port: SessionPort
    directory: Directory
    model: Model
    system_prompt: str
    options: Mapping[str, Any]
    toolbox: Toolbox
    max_rounds: int
    calls: Calls
    redact: Redact
    new_id: Callable[[], str]
    #: The messages that checkpoints wrote, after the server redacted more of them than the client had.
    read_back: Callable[[Written], Sequence[Message]]


class Turn:
    """`run` once. The history passed in grows by what is committed, and by nothing else."""

    def __init__(
        self,
        setting: Setting,
        history: list[Message],
        *,
        cancellation: Cancellation,
        last_sequence: int,
        listener: Listener | None,
        approve: Approve | None,
    ) -> None:
        self._setting = setting
        self._history = history
        self._listener = listener
        self.cancellation = cancellation
        self.approve = approve
        self.turn_id = setting.new_id()
        self.last_sequence = last_sequence
        #: Events of the round under way that no checkpoint holds yet.
        self._audit: list[AuditEvent] = []
        #: The turn's input, until a checkpoint holds it.
        self._input: Message | None = None
        #: The journal holds its input.
        self.has_begun = False
        #: Whether the server redacted something that the next checkpoint will write.
        self._is_redacted = False
        self._is_journal_lost = False
        self._outputs = OutputBudget()
        self._model_budget = asking.ModelBudget()
        self._usage = Usage()

    # --- what its parts use ---

    @property
    def port(self) -> SessionPort:
        return self._setting.port

    @property
    def directory(self) -> Directory:
        return self._setting.directory

    @property
    def toolbox(self) -> Toolbox:
        return self._setting.toolbox

    @property
    def calls(self) -> Calls:
        return self._setting.calls

    @property
    def model(self) -> Model:
        return self._setting.model

    def journaled(self, write: Callable[[], Any]) -> Any:
        """Raises `JournalFailed` where the write did."""
        try:
            return write()
        except CoreError as error:
            raise JournalFailed(error) from error

    def journaled_redacted(self, write: Callable[[], bool]) -> None:
        """A write that says whether the server redacted it further."""
        self._is_redacted |= self.journaled(write)

    def journaled_if_possible(self, write: Callable[[], object]) -> None:
        """For what would be good to have in the journal when the turn is lost anyway."""
        if self._is_journal_lost:
            return
        try:
            write()
        except CoreError:
            self._is_journal_lost = True

    def redacted_output(self, output: ToolOutput) -> ToolOutput:
        found = self._setting.redact({"content": output.content})["content"]
        return ToolOutput(found or "[REDACTED]", is_error=output.is_error)

    def tell_audit(self, event: AuditEvent, halt: Callable[[CoreError], None]) -> None:
        """Tell the listener what the journal holds already; `halt` hears of its failure."""
        try:
            self._tell(audit_event.payload(event))
        except CoreError as error:
            halt(error)

    def tell_completed(self, call: ToolCall, output: ToolOutput, halt: Callable[[CoreError], None]) -> None:
        self.tell_audit(ToolCompleted(call_id=call.id, tool_name=call.name, output=output), halt)

    # --- the turn ---

    def run(self, message: Message) -> TurnResult:
        """Raises `JournalFailed`, the reason of a cancellation, `client.durable.errors.TurnFailed` and its kinds."""
        self._begin(message)
        for number in range(1, self._setting.max_rounds + 1):
            answer = self._round(number)
            if not answer.tool_calls:
                return self._end(answer, number)
        raise AssertionError("the last round either ends the turn or fails it")

    def _begin(self, message: Message) -> None:
        self._input = message
        if self.journaled(lambda: self.port.begin_turn(self.turn_id, message)):
            found = self.journaled(self.port.journal)
            if found is None or found.turn_id != self.turn_id:
                raise JournalFailed(Corrupt("the turn that was begun is not in the journal"))
            self._input = found.input
            self._is_redacted = True
        self.has_begun = True
        self._note(TurnStarted(turn_id=self.turn_id))

    def _round(self, number: int) -> Message:
        self.cancellation.check()
        self._check_room(1)
        self._note(ModelStarted(turn_id=self.turn_id, round=number))
        reply = asking.ask(self, self._request(number), self._tell)
        given = asking.message_of(reply, self._setting.new_id)
        planned = redact_message(given, self._setting.redact)
        self._model_budget.take(planned)
        for call in planned.tool_calls:
            self._note(CallPlanned(turn_id=self.turn_id, round=number, call=call))
        self._usage += reply.usage
        self._note(
            ModelCompleted(
                turn_id=self.turn_id, round=number, finish_reason=_finish(reply), usage=reply.usage.as_json()
            )
        )
        self.cancellation.check()
        if planned.tool_calls:
            self._check_room(1 + len(planned.tool_calls) + 1)
            if number == self._setting.max_rounds:
                raise TooManyRounds(
                    f"the model still asks for tools in round {number}, the last one; nothing of that round was run"
                )
            self._run_tools(given.tool_calls, planned)
        return planned

    def _check_room(self, messages: int) -> None:
        """A longer history could be written and never be resumed."""
        held = len(self._history) + (self._input is not None)
        if held + messages > limits.HISTORY_MESSAGES_MAX:
            raise HistoryFull

    def _request(self, number: int) -> ModelRequest:
        messages = (*self._history, *([self._input] if self._input is not None else []))
        used = {call.name for message in messages for call in message.tool_calls}
        return ModelRequest(
            system_prompt=self._setting.system_prompt,
            messages=messages,
            tools=self.toolbox.shown(used),
            options=self._setting.options,
            round=number,
            read_asset=self._setting.port.read_asset,
            cancelled=self.cancellation,
        )

    def _run_tools(self, given: Sequence[ToolCall], planned: Message) -> None:
        audit = tuple(self._audit)
        self.journaled_redacted(lambda: self.port.open_batch(self.turn_id, planned, audit))
        batch = ToolBatch(self, list(zip(given, planned.tool_calls, strict=True)), self._outputs)
        batch.run()
        if batch.stop is not None and (batch.is_untouched or batch.is_lease_lost):
            # Of an untouched batch nothing has happened: it goes when the turn's failure is written.
            raise batch.stop
        written = self._written(lambda: self.port.checkpoint_round(self.turn_id, expected=self.last_sequence))
        self._audit = []
        self._commit(written, (planned, *batch.results))
        if batch.stop is not None:
            raise batch.stop

    def _end(self, answer: Message, rounds: int) -> TurnResult:
        completed = TurnCompleted(turn_id=self.turn_id, model_rounds=rounds, usage=self._usage.as_json())
        audit = (*self._audit, completed)
        written = self._written(
            lambda: self.port.end_turn(self.turn_id, answer, audit, expected=self.last_sequence)
        )
        self._audit = []
        self._commit(written, (answer,))
        result = TurnResult(
            turn_id=self.turn_id,
            message=self._history[-1],
            rounds=rounds,
            usage=self._usage,
            last_sequence=written.last_sequence,
        )
        try:
            self._tell(audit_event.payload(completed))
        except CoreError as error:
            raise ListenerFailedAfterCommit(f"the turn is committed; {error}", result=result) from error
        return result

    def _written(self, write: Callable[[], Written]) -> Written:
        """A checkpoint, which must go on exactly where the transcript ended. Raises `JournalFailed`."""
        written: Written = self.journaled(write)
        if written.first_sequence != self.last_sequence + 1:
            raise JournalFailed(
                Corrupt(
                    f"the turn was written from event {written.first_sequence} on, and the transcript ended at"
                    f" {self.last_sequence}"
                )
            )
        return written

    def _commit(self, written: Written, messages: Sequence[Message]) -> None:
        """What is in the transcript is in the history, word for word."""
        committed = (*([self._input] if self._input is not None else []), *messages)
        if self._is_redacted or written.is_redacted:
            committed = tuple(self.journaled(lambda: self._setting.read_back(written)))
        self.last_sequence = written.last_sequence
        self._history.extend(committed)
        self._input, self._is_redacted = None, False

    # --- how it fails ---

    def fail(self, error: CoreError) -> None:
        """Write down that the turn ended without an answer. Raises `JournalFailed` where that is not possible."""
        if not self.has_begun:
            return
        ended: AuditEvent = (
            Cancelled(turn_id=self.turn_id)
            if isinstance(error, TurnCancelled)
            else TurnFailed(turn_id=self.turn_id, message=self._told(error))
        )
        audit = (*self._audit, ended)
        written = self._written(
            lambda: self.port.fail_turn(self.turn_id, self._told(error), audit, expected=self.last_sequence)
        )
        self.last_sequence = written.last_sequence
        self.tell_audit(ended, lambda _: None)

    def _told(self, error: CoreError) -> str:
        text = str(self._setting.redact({"error": str(error)})["error"]).replace("\0", "�")
        data = text.encode("utf-8", "replace")[: limits.APPROVAL_TEXT_MAX_BYTES]
        return data.decode("utf-8", "ignore") or error.code

    # --- telling ---

    def _note(self, event: AuditEvent) -> None:
        self._audit.append(event)
        self._tell(audit_event.payload(event))

    def _tell(self, event: Mapping[str, Any]) -> None:
        if self._listener is None:
            return
        try:
            self.calls.listen(self._listener, event)
        except Exception as error:
            raise ListenerFailed(
                f"the listener failed on {event['type']}: {type(error).__name__}: {error}"[:1000]
            ) from error


def _finish(reply: ModelReply) -> str:
    if reply.tool_calls:
        return TOOL_CALLS
    word = (reply.finish_reason or _STOP).lower()
    return word if _is_word(word) else _STOP


def _is_word(text: str) -> bool:
    return len(text) <= 64 and text.isascii() and text.isidentifier() and text[0] != "_"
