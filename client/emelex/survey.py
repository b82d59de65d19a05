"""Reading a whole copy once, before anything is sent: what is in it, whether it keeps its own rules, and what memoryd cannot take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from client.emelex import assets, events, identity, jobs, journal, knowledge, values
from client.emelex.identity import Host
from client.emelex.plan import Plan, Problem, SessionPlan
from client.emelex.tables import Row, Tables
from client.emelex.transcript import Transcript
from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain.durable_session import check_model_reference, check_title
from memory_core.errors import Conflict, Corrupt, Invalid

#: Told after each session and entry.
Tick = Callable[[], None]


@dataclass(kw_only=True)
class _Read:
    """What one pass over a session's events found."""

    events: int = 0
    bytes: int = 0
    substance: int = 0
    last_at: int = 0
    #: Of each job that wrote one, the event and how many events it stands for.
    summaries: dict[str, tuple[str, int, int]] = field(default_factory=dict[str, tuple[str, int, int]])
    #: Events and bytes of each turn.
    turns: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


def survey(tables: Tables, host: Host, files: assets.Files, now: int, tick: Tick) -> Plan:
    """Everything that a copy holds. Sessions and entries that cannot be brought in are problems of the plan and not in its lists."""
    plan = Plan(version=tables.version)
    sources = knowledge.sources(tables)
    for row in tables.rows("sessions", "updated_at, id"):
        _session(plan, tables, row, host, sources, now)
        tick()
    knowledge.survey(plan, tables, host, tick)
    for session in plan.sessions:
        for sha256 in session.assets - plan.assets.keys():
            plan.assets[sha256] = files.looked_at(sha256)
    plan.problems += [
        Problem(kind="asset", what=f"asset {asset.sha256}", why=asset.problem)
        for asset in plan.assets.values()
        if asset.problem
    ]
    return plan


def _session(
    plan: Plan, tables: Tables, row: Row, host: Host, sources: dict[str, dict[int, set[str]]], now: int
) -> None:
    what = f"session {row['id']!s:.60}"
    try:
        lease = values.optional_moment(row, "execution_lease_until")
        if lease is not None and lease > now:
            raise Conflict(f"somebody works on it, at most until {rfc3339(lease)}; import again then")
        plan.sessions.append(_planned(tables, row, host, sources))
    except Corrupt as error:
        plan.problems.append(Problem(kind="damaged", what=what, why=str(error)))
    except Invalid as error:
        plan.problems.append(Problem(kind="unsuitable", what=what, why=str(error)))
    except Conflict as error:
        plan.problems.append(Problem(kind="busy", what=what, why=str(error)))


def _planned(tables: Tables, row: Row, host: Host, sources: dict[str, dict[int, set[str]]]) -> SessionPlan:
    session_id, directory = values.id_of(row), identity.directory_of(row, host)
    queued = jobs.rows(tables, session_id)
    drawn = sources.get(session_id, {})
    wanted = {values.number_of(job, "through_sequence", at_least=1) for _, job in queued} | set(drawn)
    transcript = Transcript(session_id, wanted)
    links = events.links(tables, session_id)
    read = _events(tables, session_id, transcript)
    for kind, job in queued:
        jobs.check(kind, job, transcript.digests, transcript.ids)
    for through, digests in drawn.items():
        if digests != {transcript.digests.get(through)}:
            raise Corrupt(f"its events up to {through} are not those that knowledge was drawn from")
    _check_summaries(queued, read)
    under_way = journal.body_of(tables, session_id, directory, read.turns)
    named = {link.sha256 for each in links.values() for link in each} | set(assets.named_in(under_way))
    title = None if row["title"] is None else check_title(values.text_of(row, "title"))
    model = row["model_reference"] or row["model_snapshot"]
    updated = values.moment_of(row, "updated_at")
    made = {job: event for job, (event, _, _) in read.summaries.items()}
    return SessionPlan(
        id=session_id,
        directory=directory,
        is_legacy=identity.is_legacy(directory),
        title=title,
        model_reference=None if model is None else check_model_reference(str(model)),
        started_at=values.moment_of(row, "created_at"),
        updated_at=updated,
        last_event_at=read.last_at or updated,
        events=read.events,
        bytes=read.bytes,
        substance=read.substance,
        jobs=tuple(jobs.body_of(tables, kind, job, made) for kind, job in queued),
        has_snapshot=snapshot_of(tables, session_id) is not None,
        journal=under_way,
        assets=frozenset(named),
    )


def _events(tables: Tables, session_id: str, transcript: Transcript) -> _Read:
    read = _Read()
    turn_bytes = 0
    for row in events.rows(tables, session_id):
        transcript.feed(row)
        body = events.body_of(row)
        size = len(row["payload_json"].encode())
        read.events, read.bytes, turn_bytes = read.events + 1, read.bytes + size, turn_bytes + size
        read.substance += body["kind"] in events.SUBSTANCE
        read.last_at = max(read.last_at, body["created_at"])
        if body["kind"] == "summary":
            job_id, through = events.summary_of(row)
            if job_id in read.summaries:
                raise Corrupt(f"job {job_id} wrote two summaries")
            read.summaries[job_id] = (body["id"], through, row["sequence"])
        if transcript.ends_turn:
            read.turns.append((row["turn_size"], turn_bytes))
            turn_bytes = 0
    transcript.end()
    return read


def _check_summaries(queued: list[tuple[str, Row]], read: _Read) -> None:
    """Each completed compaction has its summary, behind what it stands for, and no other summary is there."""
    done = {row["id"]: row for kind, row in queued if kind == "compaction" and row["state"] == "completed"}
    if set(done) != set(read.summaries):
        raise Corrupt("its summaries are not those of its compactions")
    for job_id, (event_id, through, sequence) in read.summaries.items():
        row = done[job_id]
        if through != row["through_sequence"] or sequence <= through:
            raise Corrupt(f"the summary of job {job_id} stands for other events")
        if row["summary_event_id"] not in (None, event_id):
            raise Corrupt(f"the summary of job {job_id} is another event")


def snapshot_of(tables: Tables, session_id: str) -> dict[str, Any] | None:
    """The snapshot of a session as it is sent. Raises `Corrupt`, `Invalid`."""
    row = _snapshot_of(tables, session_id)
    if row is None:
        return None
    body = {
        "schema_version": values.number_of(row, "schema_version", at_least=1),
        "config": values.json_of(row, "config_json"),
        "authority": values.json_of(row, "authority_json"),
        "created_at": values.moment_of(row, "created_at"),
        "updated_at": values.moment_of(row, "updated_at"),
    }
    for name in ("config", "authority"):
        values.check_fits(f"the {name} of its snapshot", body[name], limits.SNAPSHOT_PART_MAX_BYTES)
    return body


def _snapshot_of(tables: Tables, session_id: str) -> Row | None:
    return next(tables.rows("session_snapshots", "session_id", session_id=session_id), None)
