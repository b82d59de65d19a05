"""A vendor's server, and a model that is set up to talk to it."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from memory_core.models import vendors
from memory_core.models.bounds import Bounds
from memory_core.models.port import LanguageModel, Planned, Usage, never
from memory_core.models.settings import ModelSettings, choose
from memory_core.models.wire import embedding_vendors, language_vendors
from memory_core.registry import discover
from tests.models.fakes.anthropic import Anthropic
from tests.models.fakes.gemini import Gemini
from tests.models.fakes.openai import OpenAI, OpenAICompatible
from tests.models.fakes.shape import KEY, FakeLanguageModel, Seen
from tests.models.server import QuickClock, Server, serving

LANGUAGE_MODELS: dict[str, FakeLanguageModel] = {
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "openai": OpenAI(),
    "openai_compatible": OpenAICompatible(),
}


_ELSEWHERE = "http://127.0.0.1:9"
#: Variables that the vendors' clients would heed.
HOSTILE = {
    "HTTP_PROXY": _ELSEWHERE,
    "HTTPS_PROXY": _ELSEWHERE,
    "ALL_PROXY": _ELSEWHERE,
    "ANTHROPIC_API_KEY": "other",
    "ANTHROPIC_AUTH_TOKEN": "other",
    "ANTHROPIC_BASE_URL": _ELSEWHERE,
    "ANTHROPIC_CUSTOM_HEADERS": "X-Api-Key: other\nAuthorization: other\nX-Extra: 1",
    "OPENAI_API_KEY": "other",
    "OPENAI_ADMIN_KEY": "other",
    "OPENAI_BASE_URL": _ELSEWHERE,
    "OPENAI_ORG_ID": "other",
    "OPENAI_PROJECT_ID": "other",
    "OPENAI_CUSTOM_HEADERS": "Authorization: other\nX-Extra: 1",
    "GOOGLE_API_KEY": "other",
    "GEMINI_API_KEY": "other",
    "GOOGLE_GEMINI_BASE_URL": _ELSEWHERE,
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_USE_ENTERPRISE": "true",
    "GOOGLE_CLOUD_PROJECT": "other",
    "GOOGLE_CLOUD_LOCATION": "other",
    "GOOGLE_GENAI_API_VERSION": "v9",
    "GOOGLE_GENAI_HTTP_CLIENT": "httpx",
    "VOYAGE_API_KEY": "other",
    "VOYAGE_API_KEY_PATH": "/nowhere",
    "VOYAGE_LOG": "debug",
}


@pytest.fixture(scope="session", autouse=True)
def clients_are_loaded() -> None:
    """Importing them takes seconds on a busy machine; tests of time-outs do not mean those."""
    discover(vendors)
    for module in [
        vendor.module
        for registry in (language_vendors, embedding_vendors)
        for _, vendor in registry
        if not vendor.is_local  # only its own process loads what runs it
    ]:
        importlib.import_module(module)
    importlib.import_module("memory_core.models.transport").client(
        Bounds(clock=QuickClock(), cancel=never, deadline=0.0), frozenset()
    ).close()


@dataclass
class Counting:
    """A meter that keeps what it is told."""

    planned: list[Planned] = field(default_factory=list)
    settled: list[tuple[Usage, str]] = field(default_factory=list)

    def reserve(self, planned: Planned) -> object:
        self.planned.append(planned)
        return len(self.planned)

    def settle(self, reserved: object, usage: Usage, outcome: str) -> None:
        assert reserved == len(self.planned)
        self.settled.append((usage, outcome))


@dataclass
class Bench:
    """One provider under test."""

    provider: str
    fake: FakeLanguageModel
    server: Server
    clock: QuickClock
    meter: Counting

    def model(self, **settings: Any) -> LanguageModel:
        given: Mapping[str, Any] = {
            "provider": self.provider,
            "model": self.fake.model,
            "base_url": self.fake.base_url(self.server.port),
            "api_key": "" if self.provider == "openai_compatible" else KEY,
            **settings,
        }
        found = choose(ModelSettings(**given), self.clock, self.meter)
        assert found is not None
        return found

    @property
    def seen(self) -> list[Seen]:
        return [self.fake.read(asked) for asked in self.server.asked]


@pytest.fixture(params=sorted(LANGUAGE_MODELS))
def bench(request: pytest.FixtureRequest) -> Generator[Bench]:
    fake = LANGUAGE_MODELS[request.param]
    with serving(fake.read) as server:
        yield Bench(provider=request.param, fake=fake, server=server, clock=QuickClock(), meter=Counting())
