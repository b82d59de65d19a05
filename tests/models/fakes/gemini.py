"""Google's Gemini API: POST /v1beta/models/<model>:streamGenerateContent and :batchEmbedContents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.models.fakes.shape import KEY, Seen, check_headers, check_keys, check_strict
from tests.models.server import Asked, Reply, events, json_reply

_STOPS = {"end": "STOP", "length": "MAX_TOKENS", "stop": "STOP"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class Gemini:
    model = "gemini-2.5-flash"
    takes_temperature = True

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"

    def read(self, asked: Asked) -> Seen:
        assert asked.path == f"/v1beta/models/{self.model}:streamGenerateContent?alt=sse"
        check_headers(asked, {"x-goog-api-key"})
        assert asked.headers["x-goog-api-key"] == KEY
        body = asked.body
        check_keys(body, {"contents", "generationConfig"}, {"systemInstruction"})
        config = body["generationConfig"]
        check_keys(
            config,
            {"maxOutputTokens"},
            {"temperature", "stopSequences", "responseMimeType", "responseJsonSchema"},
        )
        for content in body["contents"]:
            check_keys(content, {"role", "parts"})
            assert content["role"] in ("user", "model")
            assert [set(part) for part in content["parts"]] == [{"text"}]
        if "responseJsonSchema" in config:
            assert config["responseMimeType"] == "application/json"
            check_strict(config["responseJsonSchema"])
        else:
            assert "responseMimeType" not in config
        roles = {"user": "user", "model": "assistant"}
        return Seen(
            model=self.model,
            system="".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", [])),
            messages=[(roles[c["role"]], c["parts"][0]["text"]) for c in body["contents"]],
            max_output_tokens=config["maxOutputTokens"],
            stop=config.get("stopSequences", []),
            temperature=config.get("temperature"),
            schema=config.get("responseJsonSchema"),
        )

    def answer(self, text: str, *, stop: str = "end", news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        half = len(text) // 2
        thought = {"text": "Let me think.", "thought": True}
        pieces = [[thought], [{"text": text[:half], **new}], [{"text": text[half:]}]]
        parts = [
            ("", self.part({"content": {"role": "model", "parts": piece}, "index": 0})) for piece in pieces
        ]
        last = {
            "content": {"role": "model", "parts": [{"text": ""}]},
            "finishReason": _STOPS.get(stop, stop),
            "index": 0,
        }
        parts.append(("", {**self.part(last), **new}))
        return Reply(headers={"content-type": "text/event-stream"}, chunks=events(*parts))

    def part(self, candidate: dict[str, Any] | None) -> dict[str, Any]:
        usage = {
            "promptTokenCount": 30,
            "cachedContentTokenCount": 8,
            "candidatesTokenCount": 9,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 42,
        }
        return {
            "candidates": [candidate] if candidate else [],
            "usageMetadata": usage,
            "modelVersion": self.model,
            "responseId": "r1",
        }

    def refusal(self) -> Reply:
        return self.answer("I would", stop="SAFETY")

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        error = {"code": status, "message": words, "status": _STATUSES.get(status, "UNKNOWN")}
        return json_reply({"error": error}, status=status, headers=dict(headers))

    def too_long(self) -> Reply:
        return self.failure(
            400,
            words="The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        )

    def failing_midway(self) -> Reply | None:
        whole = self.answer("Half of")
        error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
        return Reply(headers=whole.headers, chunks=[*list(whole.chunks)[:2], *events(("", error))])
