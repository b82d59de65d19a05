"""Voyage AI: embeddings."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from memory_core.models import answers, errors
from memory_core.models.bounds import Bounds
from memory_core.models.port import Kind, Usage
from memory_core.models.wire import Access, EmbedWire, RawVectors, Vendor, embedding_vendors

if TYPE_CHECKING:
    import httpx2
    import requests
    from requests.adapters import BaseAdapter

_HEADERS = frozenset(("authorization",))
#: Fields of an answer that its interface names.
_ANSWER = frozenset(("object", "data", "model", "usage"))
_ITEM = frozenset(("object", "embedding", "index"))
_USAGE = frozenset(("total_tokens",))

#: The call of this thread: the vendor's client keeps one session per thread, and takes no transport per call.
_call: ContextVar[tuple[httpx2.Client, Bounds]] = ContextVar("voyage_call")


@dataclass(frozen=True)
class VoyageWire:
    access: Access

    def embed(self, texts: list[str], kind: Kind, bounds: Bounds) -> RawVectors:
        with _client(bounds) as create:
            options = {"output_dimension": self.access.dimensions} if self.access.dimensions else {}
            # Not by the client's `embed`, which would load a model of some names onto this machine.
            answer: Any = create(
                api_key=self.access.api_key,
                base_url=self.access.base_url or None,
                model=self.access.model,
                input=texts,
                input_type=kind,
                truncation=True,
                **options,
            )
            items = sorted(answer["data"], key=lambda item: item["index"])
            if [item["index"] for item in items] != list(range(len(texts))):
                raise errors.Malformed
            return RawVectors(
                vectors=answers.matrix([item["embedding"] for item in items]),
                usage=Usage(input_tokens=answers.count(answer["usage"]["total_tokens"])),
                model=answers.text(answer.get("model")) or self.access.model,
                unknown_fields=len(set(_unknown(answer))),
            )


def _unknown(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from set(answer) - _ANSWER
    yield from (f"usage.{name}" for name in set(answer["usage"]) - _USAGE)
    for item in answer["data"]:
        yield from (f"data.{name}" for name in set(item) - _ITEM)


@contextmanager
def _client(bounds: Bounds) -> Generator[Any]:
    """The vendor's request for embeddings, over our transport."""
    import voyageai
    from voyageai import error as vendor
    from voyageai import util
    from voyageai.api_resources import Embedding

    from memory_core.models import transport

    answers.quiet()
    voyageai.requestssession = _session
    # A variable of the environment would make it print each request.
    util.VOYAGE_LOG = None
    with (
        answers.translated(vendor.VoyageError, lambda _: None),
        transport.client(bounds, _HEADERS) as http,
    ):
        token = _call.set((http, bounds))
        try:
            yield cast("Any", Embedding).create
        finally:
            _call.reset(token)


@cache
def _adapter() -> BaseAdapter:
    import requests
    from requests.adapters import BaseAdapter

    class Adapter(BaseAdapter):
        """Hands a request to the transport of the call, and what is no success to the caller as an error of ours."""

        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            http, bounds = _call.get()
            answer = http.request(
                str(request.method),
                str(request.url),
                content=cast("bytes", request.body),
                headers=cast("Mapping[str, str]", request.headers),
            )
            if answer.status_code != 200:
                raise answers.of_status(answer.status_code, answer.headers, _detail(answer.content), bounds)
            response = requests.Response()
            response.status_code = answer.status_code
            response.headers.update(answer.headers)
            response.raw = io.BytesIO(answer.content)
            response.request = request
            return response

        def close(self) -> None:
            pass

    return Adapter()


def _session() -> requests.Session:
    import requests

    session = requests.Session()
    session.trust_env = False
    session.mount("https://", _adapter())
    session.mount("http://", _adapter())
    return session


def _detail(body: bytes) -> str:
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return ""
    return str(cast("Mapping[str, Any]", found).get("detail", "")) if isinstance(found, dict) else ""


def _embedding(access: Access) -> EmbedWire:
    return VoyageWire(access)


embedding_vendors.add("voyage")(
    Vendor(title="Voyage AI", default_model="voyage-3", extra="voyage", module="voyageai", connect=_embedding)
)
