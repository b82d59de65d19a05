"""Sums up the beginning of a durable session: by the model where there is one that takes it, else by rules.

The summary becomes an event of the session; whoever claims the session after that reads it in place of what it stands for. Whoever
works on the session comes first: while it is held no such job is given away, and none takes effect.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from memory_core import limits
from memory_core.commands import durable_leftovers
from memory_core.commands.compaction import KIND, earlier_compaction
from memory_core.commands.durable_turns import append_turn
from memory_core.domain import compaction_rules
from memory_core.domain.capture import cut_bytes
from memory_core.domain.command import Refusal
from memory_core.domain.excerpt import Excerpt, TranscriptReader
from memory_core.domain.job import Again, Done, Job, Later
from memory_core.domain.session_event import NewEvent, SessionEvent, TranscriptKind
from memory_core.errors import Corrupt, NotFound
from memory_core.ids import id_text
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.models import transcript as model_transcript
from memory_core.models.errors import BadAnswer
from memory_core.models.prompt import load_prompt
from memory_core.models.schema import Schema
from memory_core.recall.transcript import Part, Source, read_part
from memory_core.store import compactions, durable_sessions, session_events, session_jobs
from memory_core.store.statement import Row
from memory_core.store.transaction import Reading, Transaction

_PROMPT = load_prompt("compaction", 1)
_SCHEMA = Schema(
    name="compaction",
    json={
        "type": "object",
        "properties": {"summary": {"type": "string"}},
        "required": ["summary"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """`prompt` and `model` say what made it; empty where it was made by rule."""

    text: str
    made_by: Literal["model", "rules"]
    prompt: str = ""
    model: str = ""


def prepare(reading: Reading, job: Job) -> Source:
    """What was said up to the boundary; an earlier summary stands for its part. Raises `Corrupt` where that was changed."""
    row = _row(reading, job)
    part = Part(session_id=row["session_id"], through=row["through_sequence"], digest=row["sha256"])
    done = session_jobs.completed_compaction(reading, row["session_id"])
    if done is None or done["through_sequence"] >= row["through_sequence"]:
        return read_part(reading, part)
    before = session_events.at(reading, row["session_id"], done["through_sequence"])
    if before is None or before.digest != done["sha256"]:
        raise Corrupt("what an earlier compaction stands for was changed")
    tail = Part(
        session_id=part.session_id,
        through=part.through,
        digest=part.digest,
        after=before.sequence,
        digest_before=before.digest,
    )
    return read_part(reading, tail, first=_summary(reading, done))


def compute(source: Source, tools: Tools) -> Summary:
    model = None if source.left_out else tools.model
    answer = model_transcript.ask(model, _PROMPT, source.excerpts, _SCHEMA)
    if answer is None:
        room = compaction_rules.room_bytes(source.size_bytes)
        return Summary(text=compaction_rules.summarise(source.excerpts, room), made_by="rules")
    text = answer.value["summary"].strip()
    if not text:
        raise BadAnswer("the model's summary is empty", usage=answer.usage)
    return Summary(
        text=cut_bytes(text, limits.SUMMARY_BY_MODEL_MAX_BYTES),
        made_by="model",
        prompt=_PROMPT.id,
        model=answer.model,
    )


def apply(output: Summary, job: Job, tx: Transaction) -> Applied:
    row = compactions.one(tx, job.id)
    session = None if row is None else durable_sessions.one(tx, row["session_id"])
    if row is None or session is None:
        return Refusal(code="not_found", message="the session was deleted")
    if not output.text.strip() or len(output.text.encode()) > limits.SUMMARY_BY_MODEL_MAX_BYTES:
        return Refusal(code="invalid", message="a summary has a text, and not too long a one")
    if session.is_held(tx.now):
        return Later()
    event = session_events.at(tx, session.id, row["through_sequence"])
    if event is None or event.digest != row["sha256"]:
        return Refusal(code="conflict", message="the session is not what it was when this was asked for")
    earlier = earlier_compaction(tx, session.id)
    if earlier is not None and row["through_sequence"] < earlier.summary_sequence:
        return Refusal(code="invalid", message="a later compaction has taken this one's place")
    if durable_leftovers.is_much(tx, session):
        # Somebody stopped in the middle of a long turn: its rows go first, a slice with each try.
        durable_leftovers.drop_slice(tx, session)
        return Again(cursor={})
    payload = _payload(job, row, output)
    written = append_turn(
        tx, session, [NewEvent(kind=TranscriptKind.SUMMARY, payload_json=payload)], by_holder=False
    )
    summary = session_events.at(tx, session.id, written.last_sequence)
    if summary is None:
        raise Corrupt("the summary that was just written is not there")
    compactions.complete(tx, job.id, summary_event_id=summary.id, made_by=output.made_by)
    return Done(
        result={
            "made_by": output.made_by,
            "through_sequence": row["through_sequence"],
            "summary_sequence": summary.sequence,
            "summary_bytes": len(output.text.encode()),
        }
    )


def _payload(job: Job, row: Row, output: Summary) -> str:
    """The summary event, which says of what it was made: a replay compares that with the job."""
    made: dict[str, Any] = {"text": output.text, "made_by": output.made_by}
    if output.made_by == "model":
        made |= {"prompt": output.prompt, "model": output.model}
    source = {
        "event_count": row["event_count"],
        "first_event_id": id_text(row["first_event_id"]),
        "last_event_id": id_text(row["last_event_id"]),
        "sha256": row["sha256"].hex(),
    }
    about = {"job_id": id_text(job.id), "through_sequence": row["through_sequence"], "source": source}
    return json.dumps({"compaction": about, "summary": made}, ensure_ascii=False, separators=(",", ":"))


def _summary(reading: Reading, done: Row) -> tuple[Excerpt, ...]:
    event: SessionEvent | None = session_events.by_id(reading, done["summary_event_id"])
    if event is None or event.session_id != done["session_id"]:
        raise Corrupt("the summary of an earlier compaction is missing")
    return tuple(TranscriptReader().read(event.sequence, event.kind.value, event.payload_json))


def _row(reading: Reading, job: Job) -> Row:
    row = compactions.one(reading, job.id)
    if row is None:
        raise NotFound("nothing says what this job is to sum up")
    return row


register(
    JobKind(
        name=KIND,
        queue="compaction",
        input=Source,
        output=Summary,
        prepare=prepare,
        compute=compute,
        apply=apply,
        per="session",
        asked_with="memoryd sessions compact SESSION_ID",
        busy_until=lambda reading, job: session_jobs.held_until(reading, job.subject),
        uses_model=True,
    )
)
