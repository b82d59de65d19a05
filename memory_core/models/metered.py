"""The models that a job gets: each request is reserved at the gate before it goes out and settled after it.

`Ask` is all that is needed of the worker: it posts to the gate with the job's lease, which is not known here.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.errors import CoreError, Invalid, Unavailable
from memory_core.models.errors import Cancelled
from memory_core.models.port import (
    Cancel,
    Embedder,
    LanguageModel,
    Planned,
    Usage,
    never,
)
from memory_core.models.settings import choose, choose_embedder, open_key_files, read_settings

logger = logging.getLogger(__name__)

#: Post a body to `/pool/…` for the job at hand; the answer. Raises `Unavailable` where there is none.
Ask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


class BudgetReached(CoreError):
    """The budget of models is used up, or they are paused; nothing was sent."""

    code = "budget"

    def __init__(self, message: str | None = None, *, reason: str = "", until: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        #: Others have reserved the rest; or it is this call that is too large for any day.
        self.code = {"reserved": "budget_reserved", "too_large": "budget_too_large"}.get(reason, self.code)
        #: RFC 3339; None: until a person does something.
        self.until = until


class NoProvider(CoreError):
    """No provider is configured, or the configured one cannot be used here."""

    code = "no_provider"


@dataclass
class GateMeter:
    """Implements `port.Meter`, for the job that `ask` asks for."""

    ask: Ask

    def reserve(self, planned: Planned) -> object:
        """The call's id. Raises `BudgetReached`, `Cancelled`, or `Unavailable`: then nothing may be sent."""
        call = str(uuid.uuid4())
        answer = self.ask(
            "/pool/model/reserve",
            {
                "call": call,
                "provider": planned.provider,
                "model": planned.model,
                "input_tokens": planned.input_tokens,
                "output_tokens_max": planned.output_tokens_max,
                "prompt": planned.prompt,
            },
        )
        if answer.get("cancel"):
            raise Cancelled
        if not answer.get("granted"):
            raise BudgetReached(
                answer.get("message"), reason=str(answer.get("reason", "")), until=answer.get("until")
            )
        return call

    def settle(self, reserved: object, usage: Usage, outcome: str) -> None:
        """An answer that was paid for is not thrown away because the gate cannot be told: then all that was reserved counts."""
        body = {
            "call": reserved,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "outcome": outcome,
        }
        try:
            self.ask("/pool/model/settle", body)
        except Unavailable:
            logger.warning(
                "the gate could not be told what a call used", extra={"action": "model_call_unsettled"}
            )


class Models:
    """The models of a process that computes one job at a time; what they learned of their providers outlasts the job."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Reads nothing yet."""
        self._settings = settings
        self._clock = clock
        self._meter = GateMeter(_no_job)
        self._cancelled: Cancel = never
        self._language: LanguageModel | None = None
        self._embedder: Embedder | None = None
        self._is_read = False

    def language_model(self, ask: Ask, cancelled: Cancel) -> LanguageModel | None:
        """The configured language model for the job at hand; None where none is configured. Raises `NoProvider`."""
        self._read(ask, cancelled)
        return self._language

    def embedder(self, ask: Ask, cancelled: Cancel) -> Embedder | None:
        """The configured embedder, likewise."""
        self._read(ask, cancelled)
        return self._embedder

    def _read(self, ask: Ask, cancelled: Cancel) -> None:
        """The models stay, the job at hand changes."""
        self._meter.ask, self._cancelled = ask, cancelled
        if self._is_read:
            return
        try:
            read = read_settings(self._settings)
            self._language = choose(read, self._clock, self._meter, self._is_cancelled)
            self._embedder = choose_embedder(
                read, self._clock, self._meter, self._is_cancelled, settings=self._settings
            )
            for sentence in open_key_files(read):
                logger.warning(sentence, extra={"action": "model_key_open"})
        except Invalid as error:
            raise NoProvider(str(error)) from error
        self._is_read = True

    def _is_cancelled(self) -> bool:
        return self._cancelled()


def _no_job(_path: str, _body: Mapping[str, Any]) -> Mapping[str, Any]:
    raise Unavailable("no job is being computed")
