"""What OpenAI and the servers that speak its interface have in common: its client, its errors, chat and embeddings."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_core.models import answers, errors
from memory_core.models.answers import Heard
from memory_core.models.bounds import Bounds
from memory_core.models.errors import ProviderError
from memory_core.models.port import Completion, Kind, Message, Role, StopReason, Usage
from memory_core.models.prompt import load_prompt
from memory_core.models.wire import Access, Asked, RawVectors

if TYPE_CHECKING:
    import openai
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
    from openai.types.shared_params import ResponseFormatJSONObject, ResponseFormatJSONSchema

_OF_CODE: dict[str | None, type[ProviderError]] = {
    "context_length_exceeded": errors.TooLong,
    "string_above_max_length": errors.TooLong,
    "exceed_context_size_error": errors.TooLong,
    "insufficient_quota": errors.OutOfCredit,
    "billing_hard_limit_reached": errors.OutOfCredit,
    "content_filter": errors.Refused,
    "content_policy_violation": errors.Refused,
    "model_not_found": errors.NoSuchModel,
    "invalid_api_key": errors.Unauthorized,
    "rate_limit_exceeded": errors.RateLimited,
}
_STOPS = {"stop": StopReason.END, "length": StopReason.LENGTH}
#: What some local models think aloud before they answer.
_THINKING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ChatWire:
    """Chat Completions. `is_openai`: the vendor itself, not one of the servers that speak like it."""

    access: Access
    is_openai: bool

    @property
    def forms(self) -> tuple[str, ...]:
        # Not every server knows schemas, some know no JSON mode either; then the prompt says it and we check.
        return ("json_schema",) if self.is_openai else ("json_schema", "json_object", "text")

    def ask(self, asked: Asked, bounds: Bounds) -> Completion:
        import openai

        heard = Heard()
        request = asked.request
        limit = asked.max_output_tokens
        with heard.spending(), client(self.access, bounds) as connected:
            chunks = connected.chat.completions.create(
                stream=True,
                stream_options={"include_usage": True},
                model=self.access.model,
                messages=_messages(asked),
                max_completion_tokens=limit if self.is_openai else openai.omit,
                max_tokens=openai.omit if self.is_openai else limit,
                temperature=openai.omit if request.temperature is None else request.temperature,
                stop=list(request.stop) or openai.omit,
                response_format=_response_format(asked) or openai.omit,
            )
            for chunk in chunks:
                _take(chunk, heard)
        if not self.is_openai:
            heard.parts = [_THINKING.sub("", "".join(heard.parts), count=1)]
        return heard.completion(self.access.model)


def _messages(asked: Asked) -> list[ChatCompletionMessageParam]:
    *earlier, last = asked.request.messages
    text = last.text
    if asked.schema and asked.form != "json_schema":
        told = load_prompt("json_answer", 1).render(
            name=asked.schema.name, schema=answers.compact(asked.schema.json)
        )
        text = f"{text}\n\n{told.user}"
    said = [_message(message) for message in (*earlier, replace(last, text=text))]
    return [{"role": "system", "content": asked.request.system}, *said] if asked.request.system else said


def _message(message: Message) -> ChatCompletionMessageParam:
    if message.role is Role.USER:
        return {"role": "user", "content": message.text}
    return {"role": "assistant", "content": message.text}


def _response_format(asked: Asked) -> ResponseFormatJSONObject | ResponseFormatJSONSchema | None:
    if asked.schema is None or asked.form == "text":
        return None
    if asked.form == "json_object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {"name": asked.schema.name, "strict": True, "schema": asked.schema.shown},
    }


def _take(chunk: ChatCompletionChunk, heard: Heard) -> None:
    heard.unknown |= answers.unknown_fields(chunk)
    heard.model = answers.text(chunk.model) or heard.model
    if chunk.usage:
        heard.usage = _usage(chunk.usage)
    for choice in chunk.choices[:1]:
        heard.parts.append(answers.text(choice.delta.content))
        if choice.delta.refusal or choice.finish_reason == "content_filter":
            heard.is_refused = True
        if choice.finish_reason:
            # A reason that is not known yet: what is there is the answer.
            heard.stop = _STOPS.get(choice.finish_reason, StopReason.END)


def _usage(said: CompletionUsage) -> Usage:
    details = said.prompt_tokens_details
    return Usage(
        input_tokens=answers.count(said.prompt_tokens),
        output_tokens=answers.count(said.completion_tokens),
        cached_tokens=answers.count(details.cached_tokens) if details else 0,
    )


@dataclass(frozen=True, kw_only=True)
class EmbeddingsWire:
    """Embeddings. `is_openai` as above."""

    access: Access
    is_openai: bool

    def embed(self, texts: list[str], kind: Kind, bounds: Bounds) -> RawVectors:  # noqa: ARG002
        """The interface has one kind of vector."""
        import openai

        asks_dimensions = self.is_openai and self.access.dimensions
        with client(self.access, bounds) as connected:
            answer = connected.embeddings.create(
                model=self.access.model,
                input=texts,
                dimensions=self.access.dimensions if asks_dimensions else openai.omit,
                # Not every server can pack them.
                encoding_format="float",
            )
            places = [item.index for item in answer.data]
            if sorted(places) != list(range(len(texts))):
                raise errors.Malformed
            rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
            used = answers.count(answer.usage.prompt_tokens) if answer.usage else 0  # pyright: ignore[reportUnnecessaryComparison]
            return RawVectors(
                vectors=answers.matrix(rows),
                usage=Usage(input_tokens=used),
                model=answers.text(answer.model) or self.access.model,
                unknown_fields=len(answers.unknown_fields(answer)),
            )


@contextmanager
def client(access: Access, bounds: Bounds) -> Generator[openai.OpenAI]:
    """The vendor's client for one call; errors inside come out as `ProviderError`.

    Without a key no `Authorization` goes out: a key of the environment is for OpenAI, not for this server.
    """
    import openai

    from memory_core.models import transport

    answers.quiet()
    headers = frozenset(("authorization",)) if access.api_key else frozenset[str]()
    key = access.api_key or "none"
    with (
        answers.translated(openai.APIError, lambda error: _error(error, bounds)),
        transport.client(bounds, headers) as http,
    ):
        yield openai.OpenAI(
            api_key=key,
            default_headers={"Authorization": f"Bearer {key}"},
            base_url=access.base_url or "https://api.openai.com/v1",
            max_retries=0,
            http_client=http,
        )


def _error(error: openai.APIError, bounds: Bounds) -> ProviderError | None:
    import openai

    if isinstance(error, openai.APIStatusError):
        pause = answers.retry_after_seconds(error.response.headers, bounds)
        if kind := _OF_CODE.get(error.code) or _OF_CODE.get(error.type):
            return kind(retry_after_seconds=pause)
        return answers.of_status(error.status_code, error.response.headers, error.message, bounds)
    if isinstance(error, openai.APIResponseValidationError | openai.APIConnectionError):
        return None
    # Within a stream an error comes without a status.
    return (_OF_CODE.get(error.code) or _OF_CODE.get(error.type) or errors.Overloaded)()
