"""Anthropic's Messages API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_core.models import answers, errors
from memory_core.models.answers import Heard
from memory_core.models.bounds import Bounds
from memory_core.models.errors import ProviderError
from memory_core.models.port import Completion, Message, Role, StopReason, Usage
from memory_core.models.schema import Schema
from memory_core.models.wire import Access, Asked, Vendor, language_vendors

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import MessageDeltaUsage, MessageParam, OutputConfigParam, RawMessageStreamEvent
    from anthropic.types import Usage as MessageUsage

_URL = "https://api.anthropic.com"
_HEADERS = frozenset(("x-api-key", "anthropic-version"))

_OF_TYPE: dict[str | None, type[ProviderError]] = {
    "authentication_error": errors.Unauthorized,
    "permission_error": errors.Unauthorized,
    "billing_error": errors.OutOfCredit,
    "not_found_error": errors.NoSuchModel,
    "rate_limit_error": errors.RateLimited,
    "timeout_error": errors.TimedOut,
    "api_error": errors.Overloaded,
    "overloaded_error": errors.Overloaded,
}
_STOPS: dict[str, StopReason] = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
}


@dataclass(frozen=True)
class AnthropicWire:
    access: Access
    forms: tuple[str, ...] = ("json_schema",)

    def ask(self, asked: Asked, bounds: Bounds) -> Completion:
        """`temperature` is not sent: the API's present models take none."""
        import anthropic

        from memory_core.models import transport

        answers.quiet()
        heard = Heard()
        request = asked.request
        with (
            heard.spending(),
            answers.translated(anthropic.APIError, lambda error: _error(error, bounds)),
            transport.client(bounds, _HEADERS) as http,
        ):
            client = anthropic.Anthropic(
                api_key=self.access.api_key,
                # Wins over a header of the environment.
                default_headers={"x-api-key": self.access.api_key},
                base_url=self.access.base_url or _URL,
                max_retries=0,
                open_telemetry=False,
                http_client=http,
            )
            events = client.messages.create(
                stream=True,
                model=self.access.model,
                max_tokens=asked.max_output_tokens,
                system=request.system or anthropic.omit,
                messages=[_message(message) for message in request.messages],
                stop_sequences=list(request.stop) or anthropic.omit,
                output_config=_output(asked.schema) if asked.schema else anthropic.omit,
            )
            for event in events:
                heard.unknown |= answers.unknown_fields(event)
                _take(event, heard)
            return heard.completion(self.access.model)


def _message(message: Message) -> MessageParam:
    if message.role is Role.USER:
        return {"role": "user", "content": message.text}
    return {"role": "assistant", "content": message.text}


def _output(schema: Schema) -> OutputConfigParam:
    return {"format": {"type": "json_schema", "schema": schema.shown}}


def _take(event: RawMessageStreamEvent, heard: Heard) -> None:
    """Take one event in. New kinds of events may come: they are counted and passed over."""
    match event.type:
        case "message_start":
            heard.model = answers.text(event.message.model)
            heard.usage = _usage(event.message.usage, heard.usage)
        case "content_block_start":
            if event.content_block.type == "text":
                heard.parts.append(answers.text(event.content_block.text))
        case "content_block_delta":
            if event.delta.type == "text_delta":
                heard.parts.append(answers.text(event.delta.text))
        case "message_delta":
            heard.usage = _usage(event.usage, heard.usage)
            reason = event.delta.stop_reason
            heard.is_refused = reason == "refusal"
            # A reason that is not known yet: what is there is the answer.
            heard.stop = _STOPS.get(reason, StopReason.END) if reason else None
        case "content_block_stop" | "message_stop":
            pass
        case _:
            heard.unknown.add(f"event.{event.type}")


def _usage(said: MessageUsage | MessageDeltaUsage, before: Usage) -> Usage:
    """The counts are running totals; a later event repeats those that it knows."""
    if said.input_tokens is None:
        return replace(before, output_tokens=answers.count(said.output_tokens))
    cached = answers.count(said.cache_read_input_tokens)
    written = answers.count(said.cache_creation_input_tokens)
    return Usage(
        input_tokens=answers.count(said.input_tokens) + cached + written,
        output_tokens=answers.count(said.output_tokens),
        cached_tokens=cached,
    )


def _error(error: anthropic.APIError, bounds: Bounds) -> ProviderError | None:
    import anthropic

    if not isinstance(error, anthropic.APIStatusError):
        return None
    # Within a stream an error comes with status 200: its type says what it is.
    kind = _OF_TYPE.get(error.type)
    if kind is None:
        return answers.of_status(error.status_code, error.response.headers, error.api_message, bounds)
    pause = answers.retry_after_seconds(error.response.headers, bounds)
    return kind(retry_after_seconds=pause)


language_vendors.add("anthropic")(
    Vendor(
        title="Anthropic",
        default_model="claude-haiku-4-5",
        extra="anthropic",
        module="anthropic",
        connect=AnthropicWire,
    )
)
