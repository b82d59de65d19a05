"""The port to what judges the best hits of a search once more, and the language model as one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from memory_core import limits
from memory_core.models.errors import BadAnswer
from memory_core.models.port import LanguageModel
from memory_core.models.prompt import Stored, load_prompt
from memory_core.models.schema import Schema

_PROMPT = load_prompt("reranking", 1)
_SCHEMA = Schema(
    name="scores",
    json={
        "type": "object",
        "properties": {
            "scores": {
                "type": "array",
                "maxItems": limits.RERANK_CANDIDATES_MAX,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer"},
                        "score": {"type": "number", "minimum": 0, "maximum": 1},
                    },
                    "required": ["id", "score"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["scores"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """What is judged of a hit; redacted, as all that is kept."""

    title: str = field(repr=False)
    text: str = field(repr=False)


class Reranker(Protocol):
    """Safe to share between threads."""

    def scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """How well each passage answers, 0 to 1, by its place; at most `RERANK_CANDIDATES_MAX` of them.

        Takes `RERANK_SECONDS` at most. Raises a `CoreError`: then the order stays.
        """
        ...


class ModelReranker:
    """Asks a language model, once for all passages. Implements `Reranker`."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        lines = [
            json.dumps(
                {
                    "id": number,
                    "title": cut(passage.title, limits.RERANK_TITLE_MAX_BYTES),
                    "text": cut(passage.text, limits.RERANK_TEXT_MAX_BYTES),
                },
                ensure_ascii=False,
            )
            for number, passage in enumerate(passages)
        ]
        rendered = _PROMPT.render(
            question=Stored(
                text=json.dumps(cut(question, limits.RERANK_QUERY_MAX_BYTES), ensure_ascii=False),
                source="the question",
            ),
            candidates=Stored(text="\n".join(lines), source="what a search found"),
        )
        request = rendered.request(
            max_output_tokens=min(limits.RERANK_ANSWER_TOKENS, self._model.max_output_tokens)
        )
        answer = self._model.complete_structured(
            replace(request, timeout_seconds=limits.RERANK_SECONDS), _SCHEMA
        )
        return _by_place([(each["id"], each["score"]) for each in answer.value["scores"]], len(passages))


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text, no character of it halved."""
    return text.encode(errors="replace")[:most_bytes].decode(errors="ignore")


def _by_place(told: Sequence[tuple[int, float]], count: int) -> list[float]:
    """Raises `BadAnswer` unless each number is scored exactly once. The range was checked, which NaN passes."""
    scores = {int(number): float(score) for number, score in told}
    if len(told) != count or set(scores) != set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise BadAnswer("the model did not score every passage exactly once")
    return [scores[number] for number in range(count)]
