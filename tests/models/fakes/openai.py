"""OpenAI: POST /chat/completions, streamed; and what servers that speak like it do otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.models.fakes.shape import KEY, Seen, check_headers, check_keys, check_strict
from tests.models.server import Asked, Reply, events, json_reply

_STOPS = {"end": "stop", "length": "length", "stop": "stop"}
_DONE = b"data: [DONE]\n\n"
_CODES = {
    401: "invalid_api_key",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}


class OpenAI:
    model = "gpt-5.4-mini"
    takes_temperature = True
    limit = "max_completion_tokens"

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}/v1"

    def check_headers(self, asked: Asked) -> None:
        check_headers(asked, {"authorization"})
        assert asked.headers["authorization"] == f"Bearer {KEY}"

    def read(self, asked: Asked) -> Seen:
        assert asked.path == "/v1/chat/completions"
        self.check_headers(asked)
        body = asked.body
        check_keys(
            body,
            {"model", "messages", "stream", "stream_options", self.limit},
            {"stop", "temperature", "response_format"},
        )
        assert body["stream"] is True
        assert body["stream_options"] == {"include_usage": True}
        for message in body["messages"]:
            check_keys(message, {"role", "content"})
            assert message["role"] in ("system", "user", "assistant")
        system = [m["content"] for m in body["messages"] if m["role"] == "system"]
        return Seen(
            model=body["model"],
            system="".join(system),
            messages=[(m["role"], m["content"]) for m in body["messages"] if m["role"] != "system"],
            max_output_tokens=body[self.limit],
            stop=body.get("stop", []),
            temperature=body.get("temperature"),
            schema=self.schema(body.get("response_format")),
        )

    def schema(self, given: Any) -> Mapping[str, Any] | None:
        if given is None:
            return None
        check_keys(given, {"type", "json_schema"})
        assert given["type"] == "json_schema"
        check_keys(given["json_schema"], {"name", "strict", "schema"})
        assert given["json_schema"]["strict"] is True
        check_strict(given["json_schema"]["schema"])
        return given["json_schema"]["schema"]

    def answer(self, text: str, *, stop: str = "end", news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        half = len(text) // 2
        deltas = [{"role": "assistant", "content": ""}, {"content": text[:half]}, {"content": text[half:]}]
        usage = {
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "total_tokens": 42,
            "prompt_tokens_details": {"cached_tokens": 8, **new},
        }
        choices: list[list[dict[str, Any]]] = [
            *([{"index": 0, "delta": {**delta, **new}, "finish_reason": None}] for delta in deltas),
            [{"index": 0, "delta": {}, "finish_reason": _STOPS.get(stop, stop)}],
        ]
        parts = [("", self.chunk(choice)) for choice in choices]
        parts.append(("", {**self.chunk([]), "usage": usage}))
        return Reply(headers={"content-type": "text/event-stream"}, chunks=[*events(*parts), _DONE])

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_780_000_000,
            "model": self.model,
            "choices": choices,
        }

    def refusal(self) -> Reply:
        choices = [
            [{"index": 0, "delta": {"refusal": "I cannot"}, "finish_reason": None}],
            [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        ]
        parts = [("", self.chunk(choice)) for choice in choices]
        usage = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
        parts.append(("", {**self.chunk([]), "usage": usage}))
        return Reply(headers={"content-type": "text/event-stream"}, chunks=[*events(*parts), _DONE])

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        code = "insufficient_quota" if status == 402 else _CODES.get(status)
        # The vendor says 429 for both.
        status = 429 if status == 402 else status
        error = {"message": words, "type": "some_error", "param": None, "code": code}
        return json_reply({"error": error}, status=status, headers=dict(headers))

    def too_long(self) -> Reply:
        error = {
            "message": "This model's maximum context length is 400000 tokens.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        return json_reply({"error": error}, status=400)

    def failing_midway(self) -> Reply | None:
        whole = self.answer("Half of")
        error = {"error": {"message": "The server had an error", "type": "server_error", "code": None}}
        return Reply(headers=whole.headers, chunks=[*list(whole.chunks)[:3], *events(("", error))])


class OpenAICompatible(OpenAI):
    """A server at home: no key, names of its own for two things."""

    model = "qwen3:8b"
    limit = "max_tokens"

    def check_headers(self, asked: Asked) -> None:
        check_headers(asked, set())
        assert "authorization" not in asked.headers
