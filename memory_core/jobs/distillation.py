"""Draws knowledge from a durable session that has ended: by the model where there is one that may be asked, else by rules.

What it draws is a list of candidates; each keeps from which events it came. What becomes of one beside what is known already is
decided in `memory_core.domain.knowledge`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from memory_core import limits
from memory_core.commands.distillation import KIND
from memory_core.commands.knowledge_candidates import Distilled, apply_candidates
from memory_core.domain import distillation_rules
from memory_core.domain.command import Refusal
from memory_core.domain.distillation import TOMBSTONE, UPSERT, Candidate, Upsert, read_candidates, unpinned
from memory_core.domain.job import Done, Job, Later
from memory_core.domain.knowledge import Provenance
from memory_core.domain.transcript_window import window
from memory_core.errors import Invalid, NotFound
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.models import transcript as model_transcript
from memory_core.models.errors import BadAnswer
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import Schema
from memory_core.recall.transcript import Part, Source, read_part
from memory_core.store import compactions, durable_sessions, session_events, session_jobs
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
class Found:
    """Candidates as JSON, in the form that `read_candidates` takes; `prompt` and `model` say what made them."""

    candidates: tuple[dict[str, Any], ...]
    made_by: Literal["model", "rules"]
    prompt: str = ""
    model: str = ""


def prepare(reading: Reading, job: Job) -> Source:
    """All that was said, summaries left as what they are: events among others. Raises `Corrupt` where that was changed."""
    row = compactions.distillation(reading, job.id)
    if row is None:
        raise NotFound("nothing says what this job is to be made of")
    return read_part(
        reading,
        Part(session_id=row["session_id"], through=row["through_sequence"], digest=row["sha256"]),
    )


def compute(source: Source, tools: Tools) -> Found:
    """Of a long session the model is shown the part that tells most. Raises `BadAnswer` for candidates that cannot be."""
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
    try:
        candidates = unpinned(read_candidates({"candidates": output.candidates}))
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
    applied = apply_candidates(tx, source, [each for each in candidates if _is_clean(each)])
    compactions.complete_distillation(tx, job.id, made_by=output.made_by)
    counts = Counter(each.action for each in applied)
    return Done(
        result={
            "made_by": output.made_by,
            "through_sequence": row["through_sequence"],
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
        input=Source,
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
