"""Draws knowledge from a durable session that has ended: by the model where there is one that may be asked, else by rules.

What it draws is a list of candidates; each keeps from which events it came. What becomes of one beside what is known already is
decided in `memory_core.domain.knowledge`. More candidates than one command may enter are kept first and then entered slice by slice:
no slice asks a model again, and each may be the last that a process does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from memory_core import limits
from memory_core.commands.distillation import KIND
from memory_core.commands.knowledge_candidates import Distilled, apply_candidates
from memory_core.domain import distillation_rules
from memory_core.domain.command import Refusal
from memory_core.domain.distillation import (
    TOMBSTONE,
    UPSERT,
    Candidate,
    Upsert,
    is_one_slice,
    read_candidates,
    unpinned,
)
from memory_core.domain.job import Again, Done, Job, Later
from memory_core.domain.knowledge import Provenance
from memory_core.domain.transcript_window import window
from memory_core.errors import Invalid, NotFound
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.models import transcript as model_transcript
from memory_core.models.errors import BadAnswer
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import Schema
from memory_core.recall.transcript import Part, Source, read_part
from memory_core.store import (
    compactions,
    distillation_candidates,
    durable_sessions,
    session_events,
    session_jobs,
)
from memory_core.store.transaction import Reading, Transaction

_PROMPT = load_prompt("distillation", 1)
_CONFIDENCE = {"type": "number", "minimum": 0, "maximum": 1}
_SCHEMA = Schema(
    name="distillation",
    json={
        "type": "object",
        "properties": {
            "candidates": {
                "type": "array",
                "maxItems": limits.DISTILLATION_CANDIDATES_MAX,
                "items": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {
                                "action": {"type": "string", "enum": [UPSERT]},
                                "key": {"type": "string", "minLength": 1},
                                "content": {"type": "string", "minLength": 1},
                                "confidence": _CONFIDENCE,
                            },
                            "required": ["action", "key", "content", "confidence"],
                            "additionalProperties": False,
                        },
                        {
                            "type": "object",
                            "properties": {
                                "action": {"type": "string", "enum": [TOMBSTONE]},
                                "key": {"type": "string", "minLength": 1},
                                "confidence": _CONFIDENCE,
                            },
                            "required": ["action", "key", "confidence"],
                            "additionalProperties": False,
                        },
                    ]
                },
            }
        },
        "required": ["candidates"],
        "additionalProperties": False,
    },
)
#: What a redacted secret leaves behind: a fact about it is none.
_REDACTED = "[REDACTED"


@dataclass(frozen=True, kw_only=True)
class Given:
    """What is to be distilled; None where that is done, and what it came to waits to be entered (`made_by` says who did it)."""

    source: Source | None
    made_by: Literal["model", "rules"] = "rules"


@dataclass(frozen=True, kw_only=True)
class Found:
    """Candidates as JSON, in the form that `read_candidates` takes; `prompt` and `model` say what made them. None where
    they are kept already."""

    candidates: tuple[dict[str, Any], ...]
    made_by: Literal["model", "rules"]
    prompt: str = ""
    model: str = ""


def prepare(reading: Reading, job: Job) -> Given:
    """All that was said, summaries left as what they are: events among others. Raises `Corrupt` where that was changed."""
    row = compactions.distillation(reading, job.id)
    if row is None:
        raise NotFound("nothing says what this job is to be made of")
    if job.cursor is not None:
        return Given(source=None, made_by=job.cursor["made_by"])
    part = Part(session_id=row["session_id"], through=row["through_sequence"], digest=row["sha256"])
    return Given(source=read_part(reading, part))


def compute(given: Given, tools: Tools) -> Found:
    """Of a long session the model is shown the part that tells most. Raises `BadAnswer` for candidates that cannot be."""
    source = given.source
    if source is None:
        return Found(candidates=(), made_by=given.made_by)
    model = tools.model
    shown = source.excerpts if model is None else window(source.excerpts, model_transcript.room_bytes(model))
    answer = model_transcript.ask(model, _PROMPT, shown, _SCHEMA, most=str(limits.DISTILLATION_ASKED_FOR))
    if answer is None:
        return Found(candidates=_written(distillation_rules.distil(source.excerpts)), made_by="rules")
    try:
        candidates = unpinned(read_candidates(answer.value))
    except Invalid:
        raise BadAnswer(usage=answer.usage) from None
    return Found(candidates=_written(candidates), made_by="model", prompt=_PROMPT.id, model=answer.model)


def apply(output: Found, job: Job, tx: Transaction) -> Applied:
    row = compactions.distillation(tx, job.id)
    session = None if row is None else durable_sessions.one(tx, row["session_id"])
    if row is None or session is None:
        return Refusal(code="not_found", message="the session was deleted")
    candidates: list[Candidate] = []
    if job.cursor is None:
        try:
            candidates = [
                each
                for each in unpinned(read_candidates({"candidates": output.candidates}))
                if _is_clean(each)
            ]
        except Invalid as error:
            return Refusal.of(error)
    if session.is_held(tx.now):
        return Later()
    event = session_events.at(tx, session.id, row["through_sequence"])
    if event is None or event.digest != row["sha256"]:
        return Refusal(code="conflict", message="the session is not what it was when this was asked for")
    source = Distilled(
        job_id=job.id,
        provenance=Provenance(
            session_id=session.id,
            first_sequence=1,
            last_sequence=row["through_sequence"],
            sha256=row["sha256"],
        ),
        project_id=session.project_id,
        directory=None if session.directory is None else session.directory.id,
    )
    if job.cursor is not None:
        return _entered(tx, source, _kept_slice(tx, job.id, job.cursor))
    if is_one_slice(candidates):
        return _entered(tx, source, _Slice(candidates=candidates, made_by=output.made_by))
    distillation_candidates.keep(tx, job.id, _written(candidates))
    return Again(cursor={"made_by": output.made_by, "entered": 0, "counts": {}})


@dataclass(frozen=True, kw_only=True)
class _Slice:
    """Candidates that one command enters, the first of which is number `first` of its job; what those before them came to."""

    candidates: Sequence[Candidate]
    made_by: Literal["model", "rules"]
    first: int = 0
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


def _kept_slice(tx: Transaction, job_id: bytes, cursor: Mapping[str, Any]) -> _Slice:
    kept = distillation_candidates.first_ones(
        tx, job_id, limit=limits.CANDIDATES_PER_SLICE, max_bytes=limits.CANDIDATES_PER_SLICE_BYTES
    )
    return _Slice(
        candidates=read_candidates({"candidates": kept}),
        made_by=cursor["made_by"],
        first=cursor["entered"],
        counts=cursor["counts"],
    )


def _entered(tx: Transaction, source: Distilled, of: _Slice) -> Applied:
    """Enter a slice; the job ends with the last one."""
    applied = apply_candidates(tx, source, of.candidates, first_index=of.first)
    counts = Counter(of.counts) + Counter(each.action for each in applied)
    entered = of.first + len(of.candidates)
    distillation_candidates.forget(tx, source.job_id, before=entered)
    if distillation_candidates.are_left(tx, source.job_id):
        return Again(cursor={"made_by": of.made_by, "entered": entered, "counts": dict(counts)})
    compactions.complete_distillation(tx, source.job_id, made_by=of.made_by)
    return Done(
        result={
            "made_by": of.made_by,
            "through_sequence": source.provenance.last_sequence,
            "upserted": counts["upserted"],
            "tombstoned": counts["tombstoned"],
            "skipped": counts["skipped"],
        }
    )


def _is_clean(candidate: Candidate) -> bool:
    text = candidate.content if isinstance(candidate, Upsert) else ""
    return _REDACTED not in candidate.key and _REDACTED not in text


def _written(candidates: Sequence[Candidate]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"action": UPSERT if isinstance(each, Upsert) else TOMBSTONE, **asdict(each)} for each in candidates
    )


register(
    JobKind(
        name=KIND,
        queue="distillation",
        input=Given,
        output=Found,
        prepare=prepare,
        compute=compute,
        apply=apply,
        per="session",
        asked_with="memoryd sessions distill SESSION_ID",
        busy_until=lambda reading, job: session_jobs.held_until(reading, job.subject),
        uses_model=True,
    )
)
