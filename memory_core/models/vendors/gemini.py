"""Google's Gemini API (not Vertex): generateContent, streamed, and batchEmbedContents."""

from __future__ import annotations

import re
import typing
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from memory_core.models import answers, errors
from memory_core.models.answers import Heard
from memory_core.models.bounds import Bounds
from memory_core.models.errors import ProviderError
from memory_core.models.port import Completion, Kind, Role, StopReason, Usage
from memory_core.models.wire import (
    Access,
    Asked,
    EmbedWire,
    LanguageWire,
    RawVectors,
    Vendor,
    embedding_vendors,
    language_vendors,
)

if TYPE_CHECKING:
    from google import genai
    from google.genai import types
    from google.genai.errors import APIError

_URL = "https://generativelanguage.googleapis.com"
_VERSION = "v1beta"
_HEADERS = frozenset(("x-goog-api-key",))
#: The model's own 3,072 cost four times the room for little more recall; its first numbers are made to stand alone.
_DIMENSIONS = 768

_STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.LENGTH,
}
_REFUSALS = frozenset(
    (
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "ESCALATION",
    )
)
_TASKS: dict[Kind, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}
#: Newer embedding models take no task; they are told in the text.
_TOLD: dict[Kind, str] = {"document": "title: none | text: ", "query": "task: search result | query: "}
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d+)?)s")


@dataclass(frozen=True)
class GeminiWire:
    access: Access
    forms: tuple[str, ...] = ("json_schema",)

    def ask(self, asked: Asked, bounds: Bounds) -> Completion:
        from google.genai import types

        heard = Heard()
        request = asked.request
        copy = bytearray()
        config = types.GenerateContentConfig(
            system_instruction=request.system or None,
            max_output_tokens=asked.max_output_tokens,
            temperature=request.temperature,
            stop_sequences=list(request.stop) or None,
            response_mime_type="application/json" if asked.schema else None,
            response_json_schema=asked.schema.shown if asked.schema else None,
            # Either would send requests that nobody counts.
            automatic_continuation=False,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        contents: list[Any] = [
            types.Content(
                role="user" if message.role is Role.USER else "model", parts=[types.Part(text=message.text)]
            )
            for message in request.messages
        ]
        with heard.spending(), _client(self.access, bounds, copy) as client:
            parts = client.models.generate_content_stream(
                model=self.access.model, contents=contents, config=config
            )
            for part in parts:
                _take(part, heard)
            heard.unknown = {
                name for event in _events(copy) for name in _unknown(event, types.GenerateContentResponse)
            }
        return heard.completion(self.access.model)


def _take(part: types.GenerateContentResponse, heard: Heard) -> None:
    heard.model = answers.text(part.model_version) or heard.model
    if part.usage_metadata:
        heard.usage = _usage(part.usage_metadata)
    if part.prompt_feedback and part.prompt_feedback.block_reason:
        heard.is_refused = True
    for candidate in (part.candidates or [])[:1]:
        for piece in (candidate.content.parts if candidate.content else None) or []:
            if not piece.thought:
                heard.parts.append(answers.text(piece.text))
        if reason := candidate.finish_reason:
            heard.is_refused = heard.is_refused or reason.value in _REFUSALS
            # A reason that is not known yet: what is there is the answer.
            heard.stop = _STOPS.get(reason.value, StopReason.END)


def _usage(said: types.GenerateContentResponseUsageMetadata) -> Usage:
    """Running totals; hidden thoughts are counted apart from the answer, and paid like it."""
    return Usage(
        input_tokens=answers.count(said.prompt_token_count),
        output_tokens=answers.count(said.candidates_token_count) + answers.count(said.thoughts_token_count),
        cached_tokens=answers.count(said.cached_content_token_count),
    )


@dataclass(frozen=True)
class GeminiEmbedWire:
    access: Access

    def embed(self, texts: list[str], kind: Kind, bounds: Bounds) -> RawVectors:
        from google.genai import types

        takes_task = "embedding-001" in self.access.model
        told = "" if takes_task else _TOLD[kind]
        copy = bytearray()
        contents: list[Any] = [types.Content(parts=[types.Part(text=told + text)]) for text in texts]
        with _client(self.access, bounds, copy) as client:
            answer = client.models.embed_content(
                model=self.access.model,
                contents=contents,
                config=types.EmbedContentConfig(
                    task_type=_TASKS[kind] if takes_task else None,
                    output_dimensionality=self.access.dimensions or _DIMENSIONS,
                ),
            )
            rows = [item.values or [] for item in answer.embeddings or []]
            said = answer.usage_metadata
            return RawVectors(
                vectors=answers.matrix(rows),
                usage=Usage(input_tokens=answers.count(said.prompt_token_count) if said else 0),
                model=self.access.model,
                unknown_fields=len(set(_unknown(msgspec.json.decode(copy), types.EmbedContentResponse))),
            )


@contextmanager
def _client(access: Access, bounds: Bounds, copy: bytearray) -> Generator[genai.Client]:
    import httpx2
    from google import genai
    from google.genai import errors as vendor
    from google.genai import types

    from memory_core.models import transport

    answers.quiet()
    with (
        answers.translated(vendor.APIError, lambda error: _error(error, bounds)),
        transport.client(bounds, _HEADERS, copy) as http,
    ):
        yield genai.Client(
            vertexai=False,
            api_key=access.api_key,
            http_options=types.HttpOptions(
                base_url=access.base_url or _URL,
                api_version=_VERSION,
                httpx_client=http,
                # Never used; without one the client makes its own, out of the environment.
                httpx_async_client=httpx2.AsyncClient(
                    transport=httpx2.MockTransport(lambda _: httpx2.Response(500)), trust_env=False
                ),
            ),
        )


def _error(error: APIError, bounds: Bounds) -> ProviderError | None:
    details = _details(cast("Any", error).details)
    headers: Mapping[str, str] = getattr(cast("Any", error).response, "headers", {})
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        return errors.Unauthorized()
    found = answers.of_status(error.code, headers, error.message, bounds)
    if found.retry_after_seconds is None:
        found.retry_after_seconds = next(filter(None, map(_delay, details)), None)
    return found


def _details(body: Any) -> list[Mapping[str, Any]]:
    """The typed details of an error, as far as it has any (google.rpc.Status)."""
    listed = _object(_object(body).get("error")).get("details")
    return [_object(item) for item in cast("list[Any]", listed)] if isinstance(listed, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _delay(detail: Mapping[str, Any]) -> float | None:
    """What google.rpc.RetryInfo asks for, `34s` or `1.5s`."""
    matched = _SECONDS.fullmatch(str(detail.get("retryDelay", "")))
    return float(matched.group(1)) if matched else None


def _events(copy: bytearray) -> Iterator[Any]:
    for line in copy.splitlines():
        if line.startswith(b"data: "):
            yield msgspec.json.decode(line[len(b"data: ") :])


def _unknown(value: Any, kind: Any) -> Iterator[str]:
    """Names of the fields that the client drops without a word, because its type has no place for them."""
    from pydantic import BaseModel

    kind = (
        next((part for part in typing.get_args(kind) if part is not type(None)), kind)
        if _is_optional(kind)
        else kind
    )
    if isinstance(value, list) and typing.get_origin(kind) is list:
        for item in cast("list[Any]", value):
            yield from _unknown(item, typing.get_args(kind)[0])
    if not (isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel)):
        return
    kind.model_rebuild(raise_errors=False)
    places = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    for name, inner in _object(value).items():
        if name in places:
            yield from _unknown(inner, places[name])
        else:
            yield f"{kind.__name__}.{name}"


def _is_optional(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def _language(access: Access) -> LanguageWire:
    return GeminiWire(access)


def _embedding(access: Access) -> EmbedWire:
    return GeminiEmbedWire(access)


language_vendors.add("gemini")(
    Vendor(
        title="Gemini",
        default_model="gemini-2.5-flash",
        extra="gemini",
        module="google.genai",
        connect=_language,
    )
)
embedding_vendors.add("gemini")(
    Vendor(
        title="Gemini",
        default_model="gemini-embedding-001",
        extra="gemini",
        module="google.genai",
        connect=_embedding,
    )
)
