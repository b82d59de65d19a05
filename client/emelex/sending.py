"""Sending what a plan holds: each piece is one bounded request that may be sent again, so an import that died goes on where it was."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from client.durable.transport import Transport
from client.emelex import events, knowledge
from client.emelex.assets import Files, Kept, renamed
from client.emelex.plan import EntryPlan, Plan, SessionPlan
from client.emelex.survey import snapshot_of
from client.emelex.tables import Tables
from memory_core import limits
from memory_core.domain import capped_json
from memory_core.errors import Conflict, Corrupt, Invalid, NotFound

API: Final = "/imports/emelex"
_CHECK_MAX_BYTES: Final = 2**20
Tick = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Into which project (None: that of each directory), and whether what was deleted here comes back."""

    workspace: str | None = None
    project: str | None = None
    again: bool = False

    def body(self) -> dict[str, Any]:
        return {"workspace": self.workspace, "project": self.project, "again": self.again}


@dataclass(kw_only=True)
class Done:
    """What came of it: how many of each, and what was left as it is, with the reason."""

    counts: Counter[str] = field(default_factory=Counter[str])
    left: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    collided: list[str] = field(default_factory=list[str])


class Sender:
    def __init__(
        self, transport: Transport, tables: Tables, files: Files, plan: Plan, wishes: Wishes
    ) -> None:
        self._transport = transport
        self._tables = tables
        self._files = files
        self._plan = plan
        self._wishes = wishes
        self._kept: dict[str, Kept] = {}
        self._notes = {asset.sha256: asset.problem for asset in plan.assets.values() if asset.problem}
        self.done = Done()

    # --- what is there already ---

    def known(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Of each session and entry of the plan, what memoryd has of it: `{"sessions": {id: {state…}}, "knowledge": {…}}`."""
        found: dict[str, dict[str, dict[str, Any]]] = {"sessions": {}, "knowledge": {}}
        sessions = [session.id for session in self._plan.sessions]
        for some in _batches(sessions):
            found["sessions"] |= self._write("POST", "/known", {"sessions": some})["sessions"]
        for some in _batches(self._plan.entries):
            asked = [{"id": e.id, "directory": asdict(e.directory), "key": e.key} for e in some]
            found["knowledge"] |= self._write("POST", "/known", {"knowledge": asked})["knowledge"]
        return found

    # --- sessions ---

    def session(self, session: SessionPlan) -> None:
        """Bring one session in. What memoryd refuses of it is left and named; a server that cannot be reached raises."""
        with _left(self.done, session.what):
            state = self._begin(session, restart=False)
            if state["state"] == "coming":
                self.done.counts["events"] += self._whole(session, state)
                self.done.counts["sessions"] += 1
            elif state["state"] == "deleted":
                raise Conflict("it was deleted here since; --again brings it back")
            else:
                self.done.counts["sessions_there"] += 1
                self.done.counts["jobs"] += self._jobs(session)

    def _begin(self, session: SessionPlan, *, restart: bool) -> dict[str, Any]:
        body = {
            "session_id": session.id,
            "directory": asdict(session.directory),
            "last_sequence": session.events,
            "started_at": session.started_at,
            "updated_at": session.updated_at,
            "title": session.title,
            "model_reference": session.model_reference,
            "restart": restart,
            **self._wishes.body(),
        }
        return self._write("POST", "/sessions", body)

    def _whole(self, session: SessionPlan, state: Mapping[str, Any]) -> int:
        """As `_rest_of`; of a session that is refused nothing stays."""
        try:
            return self._rest_of(session, state)
        except (Invalid, Conflict, Corrupt, OSError):
            with suppress(Invalid, Conflict, NotFound):
                self._write("DELETE", f"/sessions/{session.id}", {})
            raise

    def _rest_of(self, session: SessionPlan, state: Mapping[str, Any]) -> int:
        """How many events were sent."""
        path = f"/sessions/{session.id}"
        staged = int(state["staged"])
        if staged and not self._is_own(session, staged, state["last_event"]):
            # A turn that somebody else staged, who held the session between two imports.
            staged = int(self._begin(session, restart=True)["staged"])
        kinds = self._asset_kinds(session)
        for sha256 in sorted(session.assets - self._kept.keys() - self._notes.keys()):
            self._kept[sha256] = self._files.send(
                self._transport, self._plan.assets[sha256], kinds.get(sha256, "other")
            )
            self.done.counts["assets"] += 1
        before = staged
        for some in self._slices(session.id, before):
            self._write("POST", f"{path}/events", {"after": staged, "events": some})
            staged += len(some)
        snapshot = snapshot_of(self._tables, session.id)
        if snapshot is not None:
            self._write("PUT", f"{path}/snapshot", snapshot)
        if session.journal is not None:
            self._write("PUT", f"{path}/journal", renamed(session.journal, self._kept, self._notes))
        self.done.counts["jobs"] += self._jobs(session)
        end = {"last_sequence": session.events, "substance": session.substance}
        self._write("POST", f"{path}/publish", {**end, "last_event_at": session.last_event_at})
        return staged - before

    def _is_own(self, session: SessionPlan, staged: int, last_event: str | None) -> bool:
        for row in events.rows(self._tables, session.id):
            if row["sequence"] == staged:
                return row["id"] == last_event
        return False

    def _asset_kinds(self, session: SessionPlan) -> dict[str, str]:
        found = events.links(self._tables, session.id) if session.assets else {}
        return {link.sha256: link.kind for links in found.values() for link in links}

    def _slices(self, session_id: str, after: int) -> Iterator[list[dict[str, Any]]]:
        """The events behind number `after`, as much at once as a request takes."""
        links = events.links(self._tables, session_id)
        part: list[dict[str, Any]] = []
        size = 0
        for row in events.rows(self._tables, session_id):
            if row["sequence"] <= after:
                continue
            event = events.body_of(row)
            event["payload"] = renamed(event["payload"], self._kept, self._notes)
            event["assets"] = [
                {
                    "sha256": self._kept[link.sha256].sha256,
                    "bytes": self._kept[link.sha256].bytes,
                    "kind": link.kind,
                }
                for link in links.get(event["id"], ())
                if link.sha256 in self._kept
            ]
            more = capped_json.measure(
                event["payload"], max_bytes=limits.EVENT_PAYLOAD_MAX_BYTES, what="a payload"
            )
            is_full = len(part) >= limits.TURN_SLICE_EVENTS_MAX or size + more > limits.TURN_SLICE_MAX_BYTES
            if part and is_full:
                yield part
                part, size = [], 0
            part.append(event)
            size += more
        if part:
            yield part

    def _jobs(self, session: SessionPlan) -> int:
        taken = 0
        for start in range(0, len(session.jobs), limits.IMPORT_JOBS_PER_COMMAND):
            some = session.jobs[start : start + limits.IMPORT_JOBS_PER_COMMAND]
            taken += self._write("POST", f"/sessions/{session.id}/jobs", {"jobs": list(some)})["taken"]
        return taken

    # --- knowledge ---

    def entry(self, entry: EntryPlan) -> None:
        """Bring one entry in; as `session`."""
        with _left(self.done, entry.what):
            parts = list(knowledge.parts(self._tables, entry))
            state = self._entry(entry, parts[0], is_whole=len(parts) == 1)
            if state["state"] == "deleted":
                raise Conflict("it was deleted here since; --again brings it back")
            if state["state"] == "there":
                self.done.counts["knowledge_there"] += 1
                return
            if state["collided"]:
                self.done.collided.append(entry.id)
            if state["state"] == "coming":
                # From the first part on: what is there of it is passed over.
                for number, (versions, tombstones) in enumerate(parts, 1):
                    body = {"count": entry.versions, "is_last": number == len(parts)}
                    body |= {"versions": versions, "tombstones": tombstones}
                    self._write("POST", f"/knowledge/{entry.id}/versions", body)
            self.done.counts["knowledge"] += 1
            self.done.counts["versions"] += entry.versions

    def _entry(
        self, entry: EntryPlan, part: tuple[list[dict[str, Any]], list[dict[str, Any]]], *, is_whole: bool
    ) -> dict[str, Any]:
        body = {
            "id": entry.id,
            "directory": asdict(entry.directory),
            "key": entry.key,
            "is_legacy": entry.is_legacy,
            "pinned": entry.pinned,
            "tombstoned_at": entry.tombstoned_at,
            "created_at": entry.created_at,
            "active_version": entry.active_version,
            "count": entry.versions,
            "is_whole": is_whole,
            "versions": part[0],
            "tombstones": part[1],
            **self._wishes.body(),
        }
        return self._write("POST", "/knowledge", body)

    # --- the end ---

    def check(self, tell: Callable[[str], None]) -> int:
        """Have memoryd look whether its database is whole, table by table; how much of it is not. Raises `Unavailable`."""
        for said in self._transport.lines(f"{API}/check", max_bytes=_CHECK_MAX_BYTES):
            if "error" in said:
                raise Conflict(str(said["error"].get("error", "the check was cut")))
            if "end" in said:
                return int(said["end"]["wrong"])
            if "table" in said:
                tell(str(said["table"]))
        raise Corrupt("the check of memoryd's database was cut")

    def _write(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        return self._transport.write_text(method, API + path, data)


class _left:
    """What memoryd refuses of one session or entry stays where it is, named; the others go on."""

    def __init__(self, done: Done, what: str) -> None:
        self._done, self._what = done, what

    def __enter__(self) -> None:
        return

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, OSError):
            why = f"a file of it cannot be read ({error.strerror})"
        elif isinstance(error, Invalid | Conflict | Corrupt):
            why = str(error)
        else:
            return False
        self._done.left.append({"what": self._what, "why": why})
        return True


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), limits.IMPORT_KNOWN_MAX):
        yield list(items[start : start + limits.IMPORT_KNOWN_MAX])
