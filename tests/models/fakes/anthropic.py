"""Anthropic: POST /v1/messages, streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.models.fakes.shape import KEY, Seen, check_headers, check_keys, check_strict
from tests.models.server import Asked, Reply, events, json_reply

_STOPS = {"end": "end_turn", "length": "max_tokens", "stop": "stop_sequence"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class Anthropic:
    model = "claude-haiku-4-5"
    takes_temperature = False

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"

    def read(self, asked: Asked) -> Seen:
        assert asked.path == "/v1/messages"
        check_headers(asked, {"x-api-key", "anthropic-version"})
        assert asked.headers["x-api-key"] == KEY
        assert asked.headers["anthropic-version"] == "2026-10-21"
        body = asked.body
        check_keys(
            body,
            {"model", "max_tokens", "messages", "stream"},
            {"system", "stop_sequences", "output_config"},
        )
        assert body["stream"] is True
        for message in body["messages"]:
            check_keys(message, {"role", "content"})
            assert message["role"] in ("user", "assistant")
            assert isinstance(message["content"], str)
            assert message["content"].strip()
        assert body["messages"][0]["role"] == body["messages"][-1]["role"] == "user"
        schema = None
        if "output_config" in body:
            check_keys(body["output_config"], {"format"})
            check_keys(body["output_config"]["format"], {"type", "schema"})
            assert body["output_config"]["format"]["type"] == "json_schema"
            schema = body["output_config"]["format"]["schema"]
            check_strict(schema)
        return Seen(
            model=body["model"],
            system=body.get("system", ""),
            messages=[(m["role"], m["content"]) for m in body["messages"]],
            max_output_tokens=body["max_tokens"],
            stop=body.get("stop_sequences", []),
            temperature=None,
            schema=schema,
        )

    def answer(self, text: str, *, stop: str = "end", news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        start = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 20,
                "cache_creation_input_tokens": 2,
                "cache_read_input_tokens": 8,
                "output_tokens": 1,
                **new,
            },
        }
        half = len(text) // 2
        unknown = [("constellation", {"type": "constellation", "stars": 3})] if news else []
        parts: list[tuple[str, Any]] = [
            ("message_start", {"type": "message_start", "message": start}),
            (
                "content_block_start",
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            ),
            ("ping", {"type": "ping"}),
            *(
                (
                    "content_block_delta",
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "text_delta", "text": part},
                    },
                )
                for part in (text[:half], text[half:])
            ),
            *unknown,
            ("content_block_stop", {"type": "content_block_stop", "index": 0}),
            (
                "message_delta",
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": _STOPS.get(stop, stop), "stop_sequence": None},
                    "usage": {"output_tokens": 12},
                },
            ),
            ("message_stop", {"type": "message_stop"}),
        ]
        return Reply(headers={"content-type": "text/event-stream"}, chunks=events(*parts))

    def refusal(self) -> Reply:
        return self.answer("I would", stop="refusal")

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        error = {"type": _TYPES.get(status, "api_error"), "message": words}
        return json_reply({"type": "error", "error": error}, status=status, headers=dict(headers))

    def too_long(self) -> Reply:
        return self.failure(400, words="prompt is too long: 210000 tokens > 200000 maximum")

    def failing_midway(self) -> Reply | None:
        whole = self.answer("Half of")
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        return Reply(headers=whole.headers, chunks=[*list(whole.chunks)[:4], *events(("error", error))])
