"""Entries of knowledge: what there is of them, and as they are sent, in parts that one request takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from client.emelex import identity, values
from client.emelex.identity import Host
from client.emelex.plan import EntryPlan, Plan, Problem
from client.emelex.tables import Row, Tables
from memory_core import limits
from memory_core.domain.directory import Directory
from memory_core.domain.knowledge import checked_confidence, checked_content, checked_key
from memory_core.errors import Corrupt, Invalid


def sources(tables: Tables) -> dict[str, dict[int, set[str]]]:
    """Of each session that something was drawn from, the digests (as they are told) by the last event."""
    found: dict[str, dict[int, set[str]]] = {}
    for table, order in (("knowledge_versions", "knowledge_id, version"), ("knowledge_tombstones", "id")):
        for row in tables.rows(table, order):
            if row["provenance_session_id"] is not None and isinstance(row["source_last_sequence"], int):
                of_session = found.setdefault(row["provenance_session_id"], {})
                of_session.setdefault(row["source_last_sequence"], set()).add(row["source_sha256"])
    return found


def survey(plan: Plan, tables: Tables, host: Host, tick: Callable[[], None]) -> None:
    """Adds the entries to the plan, the oldest first, and what is wrong with others."""
    rows: list[Row] = []
    directories: dict[str, Directory] = {}
    for row in tables.rows("knowledge", "updated_at, id"):
        with _noted(plan, row):
            directories[values.id_of(row)] = identity.directory_of(row, host)
            rows.append(row)
    moved = {} if tables.version >= 4 else identity.told_apart(rows, directories)
    for row in rows:
        with _noted(plan, row):
            own = directories[row["id"]]
            plan.entries.append(_planned(tables, row, moved.get(row["id"], own), collided=row["id"] in moved))
        tick()


class _noted:
    """What is wrong with a row becomes a problem of the plan."""

    def __init__(self, plan: Plan, row: Row) -> None:
        self._plan, self._what = plan, f"knowledge {row['id']!s:.60}"

    def __enter__(self) -> None:
        return

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Corrupt | Invalid):
            return False
        kind = "damaged" if isinstance(error, Corrupt) else "unsuitable"
        self._plan.problems.append(Problem(kind=kind, what=self._what, why=str(error)))
        return True


def _planned(tables: Tables, row: Row, directory: Directory, *, collided: bool) -> EntryPlan:
    entry_id, active = values.id_of(row), values.number_of(row, "active_version", at_least=1)
    gone = values.optional_moment(row, "tombstoned_at")
    numbers: list[int] = []
    cut = 0
    for version in tables.rows("knowledge_versions", "version", knowledge_id=entry_id):
        body = _version(version)
        numbers.append(body["version"])
        cut += body["content"] != version["content"]
    tombstones = [_tombstone(each) for each in _tombstones(tables, entry_id)]
    if active not in numbers:
        raise Corrupt(f"version {active} holds and is not there")
    return EntryPlan(
        id=entry_id,
        directory=directory,
        key=checked_key(values.text_of(row, "key")),
        is_legacy=identity.is_legacy(directory),
        collided=collided,
        pinned=values.flag_of(row, "pinned") and gone is None,
        tombstoned_at=gone,
        created_at=values.moment_of(row, "created_at"),
        updated_at=values.moment_of(row, "updated_at"),
        active_version=active,
        versions=len(numbers),
        tombstones=len(tombstones),
        cut=cut,
    )


def parts(tables: Tables, entry: EntryPlan) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Versions and tombstones of an entry as they are sent, in parts that a request takes; the first has the version that holds and
    the newest one, so that no later one takes a number that is still to come."""
    versions = [
        _version(row) for row in tables.rows("knowledge_versions", "version DESC", knowledge_id=entry.id)
    ]
    versions.sort(key=lambda version: version["version"] != entry.active_version)
    versions = [versions[0], *sorted(versions[1:], key=lambda version: -version["version"])]
    tombstones = [_tombstone(row) for row in _tombstones(tables, entry.id)]
    part: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    size = 0
    for which, item in [*((0, version) for version in versions), *((1, each) for each in tombstones)]:
        more = len(item.get("content", "").encode())
        is_full = len(part[0]) + len(part[1]) >= limits.IMPORT_PARTS_PER_COMMAND
        # The holding and the newest version go together, however long they are.
        if is_full or (size + more > limits.TURN_SLICE_MAX_BYTES and len(part[0]) >= 2):
            yield part
            part, size = ([], []), 0
        part[which].append(item)
        size += more
    yield part


def _version(row: Row) -> dict[str, Any]:
    content = values.cut_to(values.text_of(row, "content"), limits.KNOWLEDGE_CONTENT_MAX_BYTES)
    return {
        "version": values.number_of(row, "version", at_least=1),
        "content": checked_content(content),
        "confidence": 1.0 if row["confidence"] is None else checked_confidence(float(row["confidence"])),
        "created_at": values.moment_of(row, "created_at"),
        "session_id": values.optional_id(row, "source_session_id"),
        **_drawn(row),
    }


def _tombstones(tables: Tables, entry_id: str) -> Iterator[Row]:
    return tables.rows("knowledge_tombstones", "created_at, id", knowledge_id=entry_id)


def _tombstone(row: Row) -> dict[str, Any]:
    origin = values.text_of(row, "origin")
    if origin not in ("manual", "distillation"):
        raise Corrupt(f"a tombstone is of the unknown origin {origin!r:.40}")
    return {
        "id": values.id_of(row),
        "confidence": checked_confidence(float(row["confidence"])),
        "origin": origin,
        "created_at": values.moment_of(row, "created_at"),
        **_drawn(row),
    }


def _drawn(row: Row) -> dict[str, Any]:
    source = None
    if row["provenance_session_id"] is not None:
        source = {
            "session_id": values.id_of(row, "provenance_session_id"),
            "first_sequence": values.number_of(row, "source_first_sequence", at_least=1),
            "last_sequence": values.number_of(row, "source_last_sequence", at_least=1),
            "sha256": values.digest_of(row, "source_sha256"),
        }
    job = values.optional_id(row, "distillation_job_id")
    index = None if job is None else values.number_of(row, "candidate_index")
    return {"source": source, "job_id": job, "candidate_index": index}
