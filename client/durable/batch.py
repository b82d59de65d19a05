"""The tool calls of one model round: planned, allowed, started, completed, each step journaled before the next.

The journal is written by the turn's own thread only; what runs side by side are the tools themselves.
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from client.durable import approvals
from client.durable.errors import LeaseLost, ToolFailed
from client.durable.outputs import OutputBudget, said_by
from client.durable.schema import faults_of
from client.durable.tools import FatalToolError, Tool, ToolContext
from memory_core.domain.agent_message import Message, ToolCall, tool_answer
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, ToolOutput, ToolStarted
from memory_core.domain.tool_journal import (
    INTERRUPTED_TEXT,
    NOT_EXECUTED_TEXT,
    UNCERTAIN_TEXT,
    CallState,
    Origin,
    denial_text,
)
from memory_core.errors import CoreError

if TYPE_CHECKING:
    from client.durable.turn import Turn

_STOPPED_TEXT = "Not run: the turn was stopped when this call was about to begin."


@dataclass(kw_only=True)
class _Call:
    #: As the model gave it; the journal's copy is redacted.
    given: ToolCall
    planned: ToolCall
    state: CallState = CallState.PLANNED
    output: ToolOutput | None = None
    is_being_decided: bool = False
    tool: Tool | None = None


class ToolBatch:
    """`run` returns the results when all calls have one, and raises when nothing was started: then it can be discarded."""

    def __init__(self, turn: Turn, calls: Sequence[tuple[ToolCall, ToolCall]], budget: OutputBudget) -> None:
        """`calls`: as given, and as planned in the journal."""
        self._turn = turn
        self._calls = [_Call(given=given, planned=planned) for given, planned in calls]
        self._budget = budget
        self._ended: queue.SimpleQueue[tuple[_Call, Future[Any]] | None] = queue.SimpleQueue()
        #: The call and the future of each tool that runs.
        self._running: dict[str, tuple[_Call, Future[Any]]] = {}
        #: Why no further call is begun.
        self.stop: CoreError | None = None

    @property
    def is_untouched(self) -> bool:
        return all(call.state is CallState.PLANNED for call in self._calls)

    @property
    def is_lease_lost(self) -> bool:
        """What is in the journal now is for whoever resumes the session."""
        return isinstance(self.stop, LeaseLost)

    @property
    def results(self) -> tuple[Message, ...]:
        return tuple(
            tool_answer(call.planned.id, call.output.content)
            for call in self._calls
            if call.output is not None
        )

    def run(self) -> None:
        """Complete every call, or none of them; `stop` says whether the turn goes on. Raises `JournalFailed`."""
        cancellation = self._turn.cancellation
        with cancellation.waking(lambda: self._ended.put(None)):
            for _, group in groupby(enumerate(self._calls), self._together):
                for _, call in group:
                    if self._is_stopped():
                        break
                    self._begin(call)
                    self._take_ended()
                self._finish_running()
        if self._is_stopped() and (self.is_untouched or self.is_lease_lost):
            return
        for call in self._calls:
            if call.state is CallState.PLANNED:
                self._not_executed(call)

    # --- one call ---

    def _begin(self, call: _Call) -> None:
        tool, refusal = self._checked(call)
        if tool is None:
            self._complete(call, ToolOutput(refusal, is_error=True))
            return
        call.tool = tool
        if not self._is_allowed(call, tool) or self._is_stopped():
            return
        self._turn.journaled(lambda: self._turn.port.start_call(call.planned))
        call.state = CallState.STARTED
        self._tell(ToolStarted(call_id=call.planned.id, tool_name=call.planned.name))
        if self._is_stopped():
            self._complete(call, ToolOutput(_STOPPED_TEXT, is_error=True))
            return
        self._invoke(call, tool)

    def _checked(self, call: _Call) -> tuple[Tool | None, str]:
        tool = self._turn.toolbox.usable(call.given.name)
        if tool is None:
            return None, f"There is no tool {call.given.name} in this session now."
        if faults := faults_of(call.given.arguments, tool.schema):
            return None, "The arguments do not fit the tool's schema: " + "; ".join(faults)
        return tool, ""

    def _is_allowed(self, call: _Call, tool: Tool) -> bool:
        """Whether the call may start; where it was denied it has its result."""
        try:
            reason = approvals.reason_of(tool, call.given.arguments)
        except CoreError as error:
            self._halt(error)
            return False
        if reason is None:
            return True
        directory = self._turn.directory
        request = ApprovalRequested(
            call_id=call.planned.id,
            tool_name=call.planned.name,
            arguments=call.planned.arguments,
            workspace_root=directory.path,
            workspace_host=directory.host,
            workspace_device=directory.device,
            workspace_inode=directory.inode,
            reason=reason,
        )
        self._turn.journaled(lambda: self._turn.port.audit_call(request))
        call.is_being_decided = True
        self._tell(request)
        if self._is_stopped():
            return False
        try:
            decision = approvals.ask(self._turn, call.given, call.planned.id, reason)
        except CoreError as error:
            self._halt(error)
            return False
        if self._is_stopped():
            return False
        resolved = ApprovalResolved(
            call_id=call.planned.id, is_allowed=decision.is_allowed, reason=decision.reason
        )
        self._turn.journaled(lambda: self._turn.port.audit_call(resolved))
        call.is_being_decided = False
        self._tell(resolved)
        if not decision.is_allowed:
            self._complete(call, ToolOutput(denial_text(decision.reason), is_error=True))
        return decision.is_allowed

    def _invoke(self, call: _Call, tool: Tool) -> None:
        context = ToolContext(
            call_id=call.planned.id, directory=self._turn.directory.path, cancelled=self._turn.cancellation
        )
        given: tuple[Any, ...] = (dict(call.given.arguments),)
        future = self._turn.calls.tool(tool.run, *(given + ((context,) if tool.takes_context else ())))
        self._running[call.planned.id] = (call, future)
        future.add_done_callback(lambda done: self._ended.put((call, done)))

    # --- results ---

    def _finish_running(self) -> None:
        """Wait for the tools that run; of a cancelled turn only for those that finish what they began."""
        while self._running:
            if self._is_stopped():
                for call, future in list(self._running.values()):
                    if call.tool is not None and call.tool.on_cancel == "interruptible" and not future.done():
                        future.cancel()
                        self._end(call, ToolOutput(UNCERTAIN_TEXT, is_error=True), Origin.UNCERTAIN)
                if not self._running:
                    return
            self._take(self._ended.get())

    def _take_ended(self) -> None:
        while not self._ended.empty():
            self._take(self._ended.get())

    def _take(self, ended: tuple[_Call, Future[Any]] | None) -> None:
        if ended is None:
            self._is_stopped()
            return
        call, future = ended
        if call.planned.id not in self._running:
            return
        try:
            output = said_by(future.result())
        except FatalToolError as error:
            self._fatal(call, f"{call.planned.name} ended the turn: {error}")
        except CancelledError:
            self._fatal(call, f"{call.planned.name} was cancelled")
        except Exception as error:
            # The model reads what went wrong, and goes on.
            self._end(call, said_by(error))
        except BaseException as error:
            self._fatal(call, f"{call.planned.name} was ended by {type(error).__name__}")
        else:
            self._end(call, output)

    def _fatal(self, call: _Call, why: str) -> None:
        self._halt(ToolFailed(why))
        self._end(call, ToolOutput(UNCERTAIN_TEXT, is_error=True), Origin.UNCERTAIN)

    def _end(self, call: _Call, output: ToolOutput, origin: Origin = Origin.TOOL) -> None:
        del self._running[call.planned.id]
        self._complete(call, output, origin)

    def _complete(
        self,
        call: _Call,
        output: ToolOutput,
        origin: Origin = Origin.TOOL,
        denied: ApprovalResolved | None = None,
    ) -> None:
        kept = self._budget.fitted(self._turn.redacted_output(output), len(output.content.encode()))
        if self.is_lease_lost:
            # Nobody waits for it any more; what can be told spares the question what this call did.
            self._turn.journaled_if_possible(
                lambda: self._turn.port.complete_call(call.planned.id, kept, origin, denied)
            )
        else:
            self._turn.journaled_redacted(
                lambda: self._turn.port.complete_call(call.planned.id, kept, origin, denied)
            )
        call.output, call.state = kept, CallState.COMPLETED
        self._turn.tell_completed(call.planned, kept, self._halt)

    def _not_executed(self, call: _Call) -> None:
        """Nothing of it ran, whatever was asked or allowed before."""
        denied = (
            ApprovalResolved(call_id=call.planned.id, is_allowed=False, reason=INTERRUPTED_TEXT)
            if call.is_being_decided
            else None
        )
        self._complete(call, ToolOutput(NOT_EXECUTED_TEXT, is_error=True), Origin.NOT_EXECUTED, denied)

    # --- stopping ---

    def _tell(self, event: Any) -> None:
        self._turn.tell_audit(event, self._halt)

    def _halt(self, why: CoreError) -> None:
        if self.stop is None:
            self.stop = why

    def _is_stopped(self) -> bool:
        if self.stop is None or self._turn.cancellation.is_set():
            self.stop = self._turn.cancellation.reason or self.stop
        return self.stop is not None

    def _together(self, numbered: tuple[int, _Call]) -> object:
        """A key that neighbouring calls share which may run side by side."""
        index, call = numbered
        tool = self._turn.toolbox.usable(call.given.name)
        return "side by side" if tool is not None and tool.is_parallel else index
