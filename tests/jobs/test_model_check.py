"""What a check of the models finds, for each way in which they can fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
import pytest

from memory_core import job_kind
from memory_core.domain.job import Failure
from memory_core.jobs import model_check
from memory_core.models.errors import Cancelled, Unauthorized
from memory_core.models.metered import BudgetReached, NoProvider
from memory_core.models.port import Embedding, StructuredCompletion, Usage
from workers.pool.computing import ending_of

USED = Usage(input_tokens=30, output_tokens=12)


@dataclass
class Fake:
    """A language model and an embedder in one."""

    says: str = "lighthouse"
    error: Exception | None = None
    name: str = "some"
    model: str = "model-1"

    def complete_structured(self, request: Any, schema: Any) -> StructuredCompletion:
        if self.error:
            raise self.error
        return StructuredCompletion(value={"word": self.says}, usage=USED, model=self.model, repairs=1)

    def embed(self, texts: list[str]) -> Embedding:
        if self.error:
            raise self.error
        return Embedding(vectors=numpy.ones((1, 8), numpy.float32), usage=USED, model=self.model)


class Tools:
    def __init__(self, model: Any = None, embedder: Any = None) -> None:
        self._model, self.embedder = model, embedder

    @property
    def model(self) -> Any:
        if isinstance(self._model, Exception):
            raise self._model
        return self._model


def check(model: Any = None, embedder: Any = None) -> model_check.Found:
    return model_check.compute(model_check.Nothing(), Tools(model, embedder))  # type: ignore[arg-type]


def test_models_that_work_are_told_with_what_they_used():
    found = check(Fake(says="Lighthouse."), Fake())

    assert found.language is not None
    assert found.embedding is not None
    assert (found.language.ok, found.language.repairs, found.language.input_tokens) == (True, 1, 30)
    assert (found.embedding.ok, found.embedding.dimensions) == (True, 8)
    assert job_kind.kinds.get("model_check").read_output(_json(found)) == found


def test_what_is_not_configured_is_not_checked():
    found = check(embedder=Fake())

    assert found.language is None
    assert found.embedding is not None


def test_where_no_provider_is_configured_the_check_fails_for_good():
    with pytest.raises(NoProvider, match="configured") as raised:
        check()

    ending = ending_of(raised.value, 1)
    assert (ending.ending, ending.code, ending.is_permanent) == ("fail", Failure.NO_PROVIDER, True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unauthorized(), "model_unauthorized"),
        (BudgetReached("used up"), "budget"),
    ],
)
def test_what_fails_is_told_with_its_code_and_does_not_keep_the_other_from_being_checked(
    error: Exception, code: str
):
    found = check(Fake(error=error), Fake())

    assert found.language is not None
    assert (found.language.ok, found.language.error, found.language.provider) == (False, code, "some")
    assert found.language.message == str(error)
    assert found.embedding is not None
    assert found.embedding.ok


def test_a_model_that_says_something_else_does_not_pass():
    found = check(Fake(says="tower")).language

    assert found is not None
    assert (found.ok, found.error) == (False, "")
    assert "not what was asked for" in found.message


def test_a_provider_that_cannot_be_used_is_told_in_its_sentence():
    found = check(NoProvider("openai needs an API key")).language

    assert found is not None
    assert (found.error, found.message) == ("no_provider", "openai needs an API key")


def test_a_cancelled_check_ends():
    with pytest.raises(Cancelled):
        check(Fake(error=Cancelled()))


def _json(found: model_check.Found) -> bytes:
    import msgspec

    return msgspec.json.encode(found)
