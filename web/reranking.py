"""Judging hits once more for this process: few at once, under the budget, and never in the way of an answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands.question_calls import ReserveQuestionCall, SettleQuestionCall
from memory_core.config import Settings
from memory_core.errors import CoreError, Unavailable
from memory_core.models.metered import BudgetReached
from memory_core.models.port import Meter, Planned, Usage
from memory_core.models.reranker import ModelReranker, Passage, Reranker
from memory_core.models.settings import choose, read_settings
from memory_core.recall.reranking import Judge
from web.auth import Caller
from web.gate import Gate
from web.identity import CommandId
from web.meters import Meters

logger = logging.getLogger(__name__)


class Busy(Unavailable):
    """As many questions are judged as may be at once."""

    code = "busy"


class QuestionMeter:
    """Implements `port.Meter`: the writer grants a call and hears what it used. Which caller and project ask is the thread's."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._asking = threading.local()

    def asks(self, caller: Caller, project: bytes | None) -> None:
        """This thread's next calls are for that caller and about that project (None: several)."""
        self._asking.who = (caller, project)

    def reserve(self, planned: Planned) -> object:
        """Raises `BudgetReached`, or what the gate raises: then nothing may be sent."""
        caller, project = self._asking.who
        call = self._gate.ids.new()
        answer = self._submit(
            ReserveQuestionCall(
                call=call,
                project=project,
                provider=planned.provider,
                model=planned.model,
                input_tokens=planned.input_tokens,
                output_tokens_max=planned.output_tokens_max,
                prompt=planned.prompt,
            ),
            caller,
        )
        if "granted" not in answer:
            raise Unavailable("the writer did not say in time whether the budget allows it")
        if not answer["granted"]:
            raise BudgetReached(
                answer.get("message"), reason=str(answer.get("reason", "")), until=answer.get("until")
            )
        return call, caller

    def settle(self, reserved: object, usage: Usage, outcome: str) -> None:
        """What cannot be told counts as reserved, once the writer takes it for lost."""
        call, caller = cast("tuple[bytes, Caller]", reserved)
        command = SettleQuestionCall(
            call=call,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            outcome=outcome,
        )
        try:
            self._submit(command, caller)
        except CoreError:
            logger.warning(
                "the writer could not be told what a call used", extra={"action": "model_call_unsettled"}
            )

    def _submit(self, command: object, caller: Caller) -> Mapping[str, Any]:
        command_id = CommandId(value=self._gate.ids.new(), is_foreign=False)
        return self._gate.submit(command, command_id, caller, seconds=limits.REPLY_WAIT_SECONDS)


class Reranking:
    """Safe to share between threads."""

    def __init__(
        self, make: Callable[[Meter], Reranker] | None, clock: Clock, gate: Gate, meters: Meters
    ) -> None:
        """`make` is called for the first question that is judged; None: nothing is configured."""
        self._make = make
        self._clock = clock
        self._meter = QuestionMeter(gate)
        self._meters = meters
        self._slots = threading.BoundedSemaphore(limits.RERANKS_AT_ONCE)
        self._lock = threading.Lock()
        self._made: Reranker | None = None

    @classmethod
    def configured(cls, settings: Settings, clock: Clock, gate: Gate, meters: Meters) -> Reranking:
        """By `[models]`; connects to nothing."""
        read = read_settings(settings)

        def make(meter: Meter) -> Reranker:
            model = choose(read, clock, meter)
            if model is None:
                raise Unavailable("no language model is configured")
            return ModelReranker(model)

        return cls(make if read.reranker else None, clock, gate, meters)

    @property
    def is_on(self) -> bool:
        return self._make is not None

    def judge_for(self, caller: Caller) -> Judge:
        """Raises a `CoreError` for each reason to keep the order: at once where `RERANKS_AT_ONCE` are under way."""

        def judge(text: str, passages: Sequence[Passage], projects: Sequence[bytes]) -> Sequence[float]:
            begun, outcome = self._clock.monotonic(), "ok"
            try:
                return self._scores(text, passages, caller, projects)
            except CoreError as error:
                outcome = error.code
                raise
            finally:
                self._meters.reranked(outcome, self._clock.monotonic() - begun)

        return judge

    def _scores(
        self, text: str, passages: Sequence[Passage], caller: Caller, projects: Sequence[bytes]
    ) -> Sequence[float]:
        if not self._slots.acquire(blocking=False):
            raise Busy("too many questions are judged at this moment")
        try:
            self._meter.asks(caller, projects[0] if len(projects) == 1 else None)
            return self._reranker().scores(text, passages)
        finally:
            self._slots.release()

    def _reranker(self) -> Reranker:
        with self._lock:
            if self._made is None:
                if self._make is None:
                    raise Unavailable("no reranker is configured")
                self._made = self._make(self._meter)
            return self._made
