"""The vendors' embedding interfaces, each as its documentation describes it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.models.fakes.gemini import Gemini
from tests.models.fakes.openai import OpenAI
from tests.models.fakes.shape import KEY, check_headers, check_keys
from tests.models.server import Asked, Reply, json_reply

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class SeenTexts:
    """A request as its vendor understands it."""

    model: str
    texts: list[str]
    #: `document` or `query`, where the vendor wants to know.
    kind: str | None
    dimensions: int | None


class FakeEmbedder(Protocol):
    model: str
    #: What it calls a request that says nothing of dimensions.
    default_dimensions: int | None
    knows_kinds: bool

    def base_url(self, port: int) -> str: ...

    def read(self, asked: Asked) -> SeenTexts: ...

    def answer(self, rows: Rows, *, news: bool = False) -> Reply:
        """Vectors of the texts, in their order; 10 tokens in."""
        ...

    def failure(self, status: int, headers: Mapping[str, str] = ..., *, words: str = ...) -> Reply: ...


class OpenAIEmbeddings:
    model = "text-embedding-3-small"
    default_dimensions: int | None = None
    knows_kinds = False
    takes_dimensions = True

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}/v1"

    def check_headers(self, asked: Asked) -> None:
        check_headers(asked, {"authorization"})
        assert asked.headers["authorization"] == f"Bearer {KEY}"

    def read(self, asked: Asked) -> SeenTexts:
        assert asked.path == "/v1/embeddings"
        self.check_headers(asked)
        body = asked.body
        check_keys(
            body, {"model", "input", "encoding_format"}, {"dimensions"} if self.takes_dimensions else set()
        )
        assert body["encoding_format"] == "float"
        assert all(isinstance(text, str) and text for text in body["input"])
        assert len(body["input"]) <= 2048
        return SeenTexts(
            model=body["model"], texts=body["input"], kind=None, dimensions=body.get("dimensions")
        )

    def answer(self, rows: Rows, *, news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        # In any order: each item says which text it is of.
        items = [
            {"object": "embedding", "index": index, "embedding": list(row), **new}
            for index, row in reversed(list(enumerate(rows)))
        ]
        usage = {"prompt_tokens": 10, "total_tokens": 10}
        return json_reply({"object": "list", "data": items, "model": self.model, "usage": usage, **new})

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        return OpenAI().failure(status, headers, words=words)


class CompatibleEmbeddings(OpenAIEmbeddings):
    model = "nomic-embed-text"
    takes_dimensions = False

    def check_headers(self, asked: Asked) -> None:
        check_headers(asked, set())


class GeminiEmbeddings:
    model = "gemini-embedding-001"
    default_dimensions: int | None = 768
    knows_kinds = True

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"

    def read(self, asked: Asked) -> SeenTexts:
        assert asked.path == f"/v1beta/models/{self.model}:batchEmbedContents"
        check_headers(asked, {"x-goog-api-key"})
        assert asked.headers["x-goog-api-key"] == KEY
        check_keys(asked.body, {"requests"})
        requests = asked.body["requests"]
        assert 1 <= len(requests) <= 100
        for request in requests:
            check_keys(request, {"model", "content", "taskType", "outputDimensionality"})
            assert request["model"] == f"models/{self.model}"
            check_keys(request["content"], {"parts"}, {"role"})
            assert [set(part) for part in request["content"]["parts"]] == [{"text"}]
        (task,) = {request["taskType"] for request in requests}
        (dimensions,) = {request["outputDimensionality"] for request in requests}
        return SeenTexts(
            model=self.model,
            texts=[request["content"]["parts"][0]["text"] for request in requests],
            kind={"RETRIEVAL_DOCUMENT": "document", "RETRIEVAL_QUERY": "query"}[task],
            dimensions=dimensions,
        )

    def answer(self, rows: Rows, *, news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        usage = {"usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}}
        return json_reply({"embeddings": [{"values": list(row), **new} for row in rows], **usage, **new})

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        return Gemini().failure(status, headers, words=words)


class VoyageEmbeddings:
    model = "voyage-3"
    default_dimensions: int | None = None
    knows_kinds = True

    def base_url(self, port: int) -> str:
        return f"http://127.0.0.1:{port}/v1"

    def read(self, asked: Asked) -> SeenTexts:
        assert asked.path == "/v1/embeddings"
        check_headers(asked, {"authorization"})
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        body = asked.body
        check_keys(
            body, {"model", "input", "input_type", "truncation", "encoding_format"}, {"output_dimension"}
        )
        assert body["encoding_format"] == "base64"
        assert len(body["input"]) <= 1_000
        return SeenTexts(
            model=body["model"],
            texts=body["input"],
            kind=body["input_type"],
            dimensions=body.get("output_dimension"),
        )

    def answer(self, rows: Rows, *, news: bool = False) -> Reply:
        new: dict[str, Any] = {"mood": "fine"} if news else {}
        items = [
            {
                "object": "embedding",
                "embedding": base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode(),
                "index": index,
                **new,
            }
            for index, row in enumerate(rows)
        ]
        return json_reply(
            {"object": "list", "data": items, "model": self.model, "usage": {"total_tokens": 10}, **new}
        )

    def failure(self, status: int, headers: Mapping[str, str] = {}, *, words: str = "no") -> Reply:
        return json_reply({"detail": words}, status=status, headers=dict(headers))


EMBEDDERS: dict[str, FakeEmbedder] = {
    "gemini": GeminiEmbeddings(),
    "openai": OpenAIEmbeddings(),
    "openai_compatible": CompatibleEmbeddings(),
    "voyage": VoyageEmbeddings(),
}
