"""The models that a job gets: no request goes out that was not granted, and each one is settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memory_core.config import Settings
from memory_core.errors import Unavailable
from memory_core.models.errors import Cancelled, Overloaded
from memory_core.models.metered import BudgetReached, Models, NoProvider
from memory_core.models.port import LanguageModel, ask
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import Schema
from tests.models.fakes.openai import OpenAICompatible
from tests.models.server import QuickClock, Server, serving

SCHEMA = Schema(
    name="mood",
    json={
        "type": "object",
        "properties": {"mood": {"type": "string"}},
        "required": ["mood"],
        "additionalProperties": False,
    },
)


@dataclass
class Books:
    """The gate's end: grants so many calls, and notes what it is told."""

    grants: int = 100
    refusal: Mapping[str, Any] = field(default_factory=dict)
    reserved: list[Mapping[str, Any]] = field(default_factory=list)
    settled: list[Mapping[str, Any]] = field(default_factory=list)
    is_away_at_settling: bool = False

    def ask(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if path == "/pool/model/settle":
            if self.is_away_at_settling:
                raise Unavailable
            self.settled.append(body)
            return {"cancel": False}
        assert path == "/pool/model/reserve"
        self.reserved.append(body)
        if len(self.reserved) > self.grants:
            return {"granted": False, "cancel": False, **self.refusal}
        return {"granted": True, "cancel": False}


@pytest.fixture
def vendor() -> Iterator[Server]:
    with serving(OpenAICompatible().read) as server:
        yield server


def models(tmp_path: Path, vendor: Server) -> Models:
    fake = OpenAICompatible()
    (tmp_path / "config.toml").write_text(
        f'[models]\nprovider = "openai_compatible"\nmodel = "{fake.model}"\nbase_url = "{fake.base_url(vendor.port)}"\n'
    )
    return Models(Settings(data_dir=tmp_path), QuickClock())


def model(tmp_path: Path, vendor: Server, books: Books, **more: Any) -> LanguageModel:
    found = models(tmp_path, vendor).language_model(books.ask, more.get("cancelled", lambda: False))
    assert found is not None
    return found


def test_a_call_is_reserved_with_its_prompt_and_settled_with_what_it_used(tmp_path: Path, vendor: Server):
    books = Books()
    vendor.will(OpenAICompatible().answer("fine"))

    prompt = load_prompt("model_check", 1).render(word="x")
    assert model(tmp_path, vendor, books).complete(prompt.request(max_output_tokens=50)).text == "fine"

    (reserved,), (settled,) = books.reserved, books.settled
    assert (reserved["provider"], reserved["prompt"]) == ("openai_compatible", "model_check.v1")
    assert reserved["output_tokens_max"] == 50
    assert reserved["input_tokens"] > 30
    assert settled == {
        "call": reserved["call"],
        "input_tokens": 30,
        "output_tokens": 12,
        "cached_tokens": 8,
        "outcome": "ok",
    }


def test_each_retry_and_the_repair_are_calls_of_their_own(tmp_path: Path, vendor: Server):
    fake, books = OpenAICompatible(), Books()
    vendor.will(fake.failure(503), fake.answer("no json"), fake.answer('{"mood": "fine"}'))

    model(tmp_path, vendor, books).complete_structured(ask("How are you?"), SCHEMA)

    assert [told["outcome"] for told in books.settled] == ["model_overloaded", "ok", "ok"]
    assert len({told["call"] for told in books.reserved}) == 3
    assert [told["prompt"] for told in books.reserved] == ["", "", "repair.v1"]


@pytest.mark.parametrize("grants", [0, 1, 2])
def test_nothing_goes_out_that_was_not_granted(tmp_path: Path, vendor: Server, grants: int):
    fake = OpenAICompatible()
    books = Books(
        grants=grants,
        refusal={"reason": "tokens_per_day", "until": "2026-01-02T00:00:00Z", "message": "used up"},
    )
    vendor.will(*(fake.failure(503), fake.answer("no json"))[:grants])

    with pytest.raises(BudgetReached, match="used up") as refused:
        model(tmp_path, vendor, books).complete_structured(ask("How are you?"), SCHEMA)

    assert (refused.value.reason, refused.value.until) == ("tokens_per_day", "2026-01-02T00:00:00Z")
    assert len(vendor.asked) == len(books.settled) == grants


def test_a_cancelled_job_asks_nothing(tmp_path: Path, vendor: Server):
    with pytest.raises(Cancelled):
        model(tmp_path, vendor, Books(grants=0, refusal={"cancel": True})).complete(ask("x"))
    books = Books()
    with pytest.raises(Cancelled):
        model(tmp_path, vendor, books, cancelled=lambda: True).complete(ask("x"))

    assert books.reserved == []
    assert vendor.asked == []


def test_an_answer_is_kept_when_the_gate_cannot_be_told(tmp_path: Path, vendor: Server):
    vendor.will(OpenAICompatible().answer("fine"))

    assert model(tmp_path, vendor, Books(is_away_at_settling=True)).complete(ask("x")).text == "fine"


def test_an_error_of_the_provider_is_settled_each_time(tmp_path: Path, vendor: Server):
    fake, books = OpenAICompatible(), Books()
    vendor.will(*(fake.failure(503) for _ in range(3)))

    with pytest.raises(Overloaded):
        model(tmp_path, vendor, books).complete(ask("x"))

    assert [told["outcome"] for told in books.settled] == ["model_overloaded"] * 3


def test_one_process_serves_one_job_after_another(tmp_path: Path, vendor: Server):
    some, first, second = models(tmp_path, vendor), Books(), Books()
    vendor.will(*(OpenAICompatible().answer("fine") for _ in range(2)))

    for books in (first, second):
        found = some.language_model(books.ask, lambda: False)
        assert found is not None
        found.complete(ask("x"))

    assert (len(first.settled), len(second.settled)) == (1, 1)


def test_without_a_provider_there_is_no_model_and_a_wrong_one_says_what_is_wrong(tmp_path: Path):
    none = Models(Settings(data_dir=tmp_path), QuickClock())
    assert none.language_model(Books().ask, lambda: False) is None
    assert none.embedder(Books().ask, lambda: False) is None

    (tmp_path / "config.toml").write_text('[models]\nprovider = "openai"\n')
    with pytest.raises(NoProvider, match="needs an API key"):
        Models(Settings(data_dir=tmp_path), QuickClock()).language_model(Books().ask, lambda: False)
