"""Asks the configured models for something small: whether they are reached, answer in a form that was asked for, make vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from memory_core.clock import Clock, SystemClock
from memory_core.domain.job import Done, Job
from memory_core.errors import CoreError
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.models.errors import Cancelled
from memory_core.models.metered import NoProvider
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import Schema
from memory_core.store.transaction import Reading, Transaction

_PROMPT = load_prompt("model_check", 1)
_WORD = "lighthouse"
_SCHEMA = Schema(
    name="model_check",
    json={
        "type": "object",
        "properties": {"word": {"type": "string", "maxLength": 100}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
_MESSAGE_MAX_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """There is nothing to read."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What one model did."""

    provider: str = ""
    model: str = ""
    ok: bool = False
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    #: Of a language model: times that its answer had to be mended to fit. Of an embedder: how long its vectors are.
    repairs: int = 0
    dimensions: int = 0
    #: Code and sentence of what went wrong; empty.
    error: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """None: not configured. One of the two is."""

    language: Checked | None
    embedding: Checked | None


def prepare(_reading: Reading, _job: Job) -> Nothing:
    return Nothing()


def compute(_given: Nothing, tools: Tools) -> Found:
    """Raises `NoProvider` where there is nothing to check."""
    clock = SystemClock()
    found = Found(
        language=_tried(clock, lambda: _ask(tools)),
        embedding=_tried(clock, lambda: _embed(tools)),
    )
    if found.language is None and found.embedding is None:
        raise NoProvider("no model provider is configured; name one in [models]")
    return found


def apply(found: Found, _job: Job, _tx: Transaction) -> Applied:
    return Done(result=asdict(found))


def _ask(tools: Tools) -> Checked | None:
    model = tools.model
    if model is None:
        return None
    named = Checked(provider=model.name, model=model.model)
    try:
        answer = model.complete_structured(_PROMPT.render(word=_WORD).request(), _SCHEMA)
    except CoreError as error:
        return _failed(named, error)
    said = answer.value["word"].strip().strip('."').lower()
    return replace(
        named,
        ok=said == _WORD,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        repairs=answer.repairs,
        message=""
        if said == _WORD
        else "it answers in the form that was asked for, but not what was asked for",
    )


def _embed(tools: Tools) -> Checked | None:
    embedder = tools.embedder
    if embedder is None:
        return None
    named = Checked(provider=embedder.name, model=embedder.model)
    try:
        answer = embedder.embed([_WORD])
    except CoreError as error:
        return _failed(named, error)
    return replace(
        named, ok=True, input_tokens=answer.usage.input_tokens, dimensions=int(answer.vectors.shape[1])
    )


def _tried(clock: Clock, check: Callable[[], Checked | None]) -> Checked | None:
    begun = clock.monotonic()
    try:
        found = check()
    except CoreError as error:
        return _failed(Checked(), error)
    return None if found is None else replace(found, seconds=round(clock.monotonic() - begun, 3))


def _failed(named: Checked, error: CoreError) -> Checked:
    if isinstance(error, Cancelled):
        raise error
    return replace(named, error=error.code, message=str(error)[:_MESSAGE_MAX_CHARS])


register(
    JobKind(
        name="model_check",
        queue="distillation",
        input=Nothing,
        output=Found,
        prepare=prepare,
        compute=compute,
        apply=apply,
        uses_model=True,
    )
)
