"""A language model over a vendor's wire: tries, structured answers and their one repair."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from memory_core import limits
from memory_core.clock import Clock
from memory_core.models.bounds import Bounds
from memory_core.models.errors import BadAnswer, ProviderError, Rejected
from memory_core.models.port import (
    NOTHING,
    Cancel,
    Completion,
    Message,
    Meter,
    Planned,
    Request,
    Role,
    StopReason,
    StructuredCompletion,
    Usage,
    either,
    most_tokens,
    never,
)
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import NotFitting, Schema, read_answer
from memory_core.models.tries import metered
from memory_core.models.wire import Asked, LanguageWire

_REPAIR = load_prompt("repair", 1)
_USED_UP = "max_output_tokens were used up before the answer was complete; allow more of them under [models]"


@dataclass
class WiredLanguageModel:
    """Implements `port.LanguageModel`."""

    name: str
    model: str
    wire: LanguageWire = field(repr=False)
    clock: Clock = field(repr=False)
    meter: Meter = field(repr=False)
    max_output_tokens: int
    timeout_seconds: float
    context_tokens: int = limits.MODEL_CONTEXT_TOKENS
    #: Ends every call, whatever else its caller watches.
    cancelled: Cancel = field(default=never, repr=False)
    #: Index of the first form that the provider did not reject. Threads that race for it only learn it twice.
    _form: int = field(default=0, repr=False)

    def complete(self, request: Request, cancel: Cancel = never) -> Completion:
        asked = Asked(request=request, max_output_tokens=self._output_tokens(request))
        return self._answered(asked, self._bounds(request, cancel))

    def complete_structured(
        self, request: Request, schema: Schema, cancel: Cancel = never
    ) -> StructuredCompletion:
        bounds = self._bounds(request, cancel)
        asked = Asked(request=request, max_output_tokens=self._output_tokens(request), schema=schema)
        first = self._in_some_form(asked, bounds)
        try:
            return _structured(first, schema)
        except NotFitting as misfit:
            faults = misfit.faults
        try:
            repair = replace(asked, request=_repairing(request, first.text, faults))
            second = self._in_some_form(repair, bounds)
        except ProviderError as error:
            error.usage = first.usage + error.usage
            raise
        try:
            mended = _structured(second, schema)
        except NotFitting:
            raise BadAnswer(usage=first.usage + second.usage) from None
        return replace(
            mended,
            usage=first.usage + second.usage,
            repairs=1,
            unknown_fields=first.unknown_fields + second.unknown_fields,
        )

    def _in_some_form(self, asked: Asked, bounds: Bounds) -> Completion:
        """The answer to the first form of asking, from the last known good one on, that is not rejected."""
        forms = self.wire.forms
        for index in range(self._form, len(forms)):
            try:
                answer = self._answered(replace(asked, form=forms[index]), bounds)
            except Rejected:
                if index + 1 == len(forms):
                    raise
            else:
                self._form = index
                return answer
        raise AssertionError("a wire has at least one form")

    def _answered(self, asked: Asked, bounds: Bounds) -> Completion:
        planned = Planned(
            provider=self.name,
            model=self.model,
            input_tokens=asked.input_tokens_max,
            output_tokens_max=asked.max_output_tokens,
            prompt=asked.request.prompt,
        )
        answer, spent = metered(
            lambda: _counted(self.wire.ask(asked, bounds), asked),
            _usage,
            planned=planned,
            meter=self.meter,
            bounds=bounds,
        )
        if not answer.text.strip():
            raise BadAnswer(_USED_UP if answer.stop_reason is StopReason.LENGTH else None, usage=spent)
        return replace(answer, usage=spent)

    def _output_tokens(self, request: Request) -> int:
        return min(request.max_output_tokens or self.max_output_tokens, self.max_output_tokens)

    def _bounds(self, request: Request, cancel: Cancel) -> Bounds:
        seconds = min(request.timeout_seconds or self.timeout_seconds, self.timeout_seconds)
        cancel = either(self.cancelled, cancel)
        return Bounds(clock=self.clock, cancel=cancel, deadline=self.clock.monotonic() + seconds)


def _counted(answer: Completion, asked: Asked) -> Completion:
    """Servers of one's own may not count; then the upper bounds stand for it."""
    if answer.usage != NOTHING:
        return answer
    size = len(answer.text.encode(errors="replace"))
    usage = Usage(input_tokens=asked.input_tokens_max, output_tokens=most_tokens(size))
    return replace(answer, usage=usage)


def _usage(answer: Completion) -> Usage:
    return answer.usage


def _structured(answer: Completion, schema: Schema) -> StructuredCompletion:
    if answer.stop_reason is StopReason.LENGTH:
        raise BadAnswer(_USED_UP, usage=answer.usage)
    return StructuredCompletion(
        value=read_answer(answer.text, schema),
        usage=answer.usage,
        model=answer.model,
        unknown_fields=answer.unknown_fields,
    )


def _repairing(request: Request, answer: str, faults: tuple[str, ...]) -> Request:
    """The conversation so far, the answer that did not fit, and what is wrong with it."""
    shown = answer.encode()[: limits.REPAIR_ANSWER_MAX_BYTES].decode(errors="ignore")
    asked = _REPAIR.render(faults="\n".join(f"- {fault}" for fault in faults))
    return replace(
        request,
        prompt=f"{request.prompt}+{_REPAIR.id}" if request.prompt else _REPAIR.id,
        messages=(
            *request.messages[-(limits.MODEL_MESSAGES_MAX - 2) :],
            Message(role=Role.ASSISTANT, text=shown),
            Message(role=Role.USER, text=asked.user),
        ),
    )
