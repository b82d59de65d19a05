"""A session's server over HTTP: fulfils `client.durable.port.SessionPort`. Each write looks at the directory first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any
from urllib.parse import quote

from client.durable.assets import Assets
from client.durable.directory import verify
from client.durable.errors import BY_CODE
from client.durable.port import Event, OpenTurn, Replay, Written, passed_over
from client.durable.transport import Transport
from memory_core import errors, limits
from memory_core.domain import agent_message, audit_event
from memory_core.domain.agent_message import AssetReference, Message, ToolCall
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, AuditEvent, ToolOutput
from memory_core.domain.directory import Directory
from memory_core.domain.tool_journal import Origin

_BASE = "/durable-sessions"


class HttpSession:
    """One session, and the lease of it that this program holds (which is shown to nobody)."""

    def __init__(self, transport: Transport, session_id: str, directory: Directory) -> None:
        self._transport = transport
        self._directory = directory
        self._lease = ""
        self.session_id = session_id
        self._assets = Assets(transport, lambda: self.session_id)

    # --- the session ---

    def create(
        self,
        *,
        title: str | None,
        model_reference: str,
        workspace: str | None,
        project: str | None,
        agent: str = "durable",
    ) -> None:
        """Make the session; nobody holds it yet."""
        verify(self._directory)
        given = {"title": title, "workspace": workspace, "project": project}
        body = {
            "directory": self._place(),
            "agent": agent,
            "model_reference": model_reference,
            **{name: value for name, value in given.items() if value is not None},
        }
        self.session_id = str(self._transport.write("POST", _BASE, body)["id"])

    def delete(self) -> None:
        self.release()
        self._transport.write("DELETE", self._path())

    # --- the lease ---

    def claim(self) -> None:
        verify(self._directory)
        answer = self._transport.write("POST", self._path("claim"), {"directory": self._place()})
        self._lease = str(answer["lease"])

    def renew(self) -> None:
        self._write("POST", "renew")

    @property
    def has_lease(self) -> bool:
        return bool(self._lease)

    def release(self, *, is_patient: bool = True) -> None:
        """Does nothing where no lease is held. Never looks at the directory: what is gone must not keep a lease. Not `is_patient`: one try,
        so that a server that does not answer holds nobody up; the lease ends by itself."""
        if self._lease:
            lease, self._lease = self._lease, ""
            within = None if is_patient else limits.DURABLE_LET_GO_SECONDS
            body = {"directory": self._place()}
            self._transport.write("POST", self._path("release"), body, lease=lease, within_seconds=within)

    # --- the transcript ---

    def replay(self, take: Callable[[Event], None] = passed_over) -> Replay:
        verify(self._directory)
        found = _Reading(take)
        place = self._directory
        for line in self._transport.lines(
            self._path("replay"),
            lease=self._lease,
            max_bytes=limits.DURABLE_REPLAY_ANSWER_MAX_BYTES,
            host=place.host,
            device=place.device,
            inode=place.inode,
        ):
            found.take(line)
        return found.whole()

    def confirm_replay(self, replay: Replay) -> None:
        self._write("POST", "replayed", last_sequence=replay.last_sequence, digest=replay.digest)

    def events_after(self, sequence: int, last: int) -> Iterator[Event]:
        while sequence < last:
            answer = self._transport.read(self._path("events"), after=sequence, limit=limits.EVENTS_PAGE_MAX)
            page = [_event(item) for item in answer]
            if not page:
                raise errors.Corrupt(f"the transcript ends before event {last}")
            yield from (event for event in page if event.sequence <= last)
            sequence = page[-1].sequence

    def store_snapshot(self, snapshot: Mapping[str, Any]) -> None:
        self._write("PUT", "snapshot", **snapshot)

    def set_title(self, title: str) -> None:
        self._write("POST", "title", title=title)

    # --- the turn under way ---

    def journal(self) -> OpenTurn | None:
        answer = self._transport.read(self._path("journal"), lease=self._lease)
        turn, batch = answer.get("turn"), answer.get("batch")
        if turn is None:
            return None
        return OpenTurn(
            turn_id=str(turn["turn_id"]),
            input=agent_message.read_message(turn["input"]),
            calls={str(call["id"]): str(call["name"]) for call in (batch or {}).get("calls", ())},
        )

    def begin_turn(self, turn_id: str, message: Message) -> bool:
        answer = self._write("POST", "active-turn", turn_id=turn_id, input=agent_message.payload(message))
        return bool(answer.get("redacted"))

    def open_batch(self, turn_id: str, message: Message, audit: Sequence[AuditEvent]) -> bool:
        answer = self._write(
            "POST",
            "tool-batch",
            turn_id=turn_id,
            message=agent_message.payload(message),
            audit=[audit_event.payload(event) for event in audit],
        )
        return bool(answer.get("redacted"))

    def audit_call(self, event: ApprovalRequested | ApprovalResolved) -> None:
        self._write("POST", self._call(event.call_id, "audit"), event=audit_event.payload(event))

    def start_call(self, call: ToolCall) -> None:
        self._write("POST", self._call(call.id, "start"), call=agent_message.call_payload(call))

    def complete_call(
        self, call_id: str, output: ToolOutput, origin: Origin, denied: ApprovalResolved | None = None
    ) -> bool:
        more = {} if denied is None else {"denied": audit_event.payload(denied)}
        answer = self._write(
            "POST",
            self._call(call_id, "complete"),
            output={"content": output.content, "is_error": output.is_error},
            origin=origin.value,
            **more,
        )
        return bool(answer.get("redacted"))

    def checkpoint_round(self, turn_id: str, *, expected: int) -> Written:
        return self._written(turn_id=turn_id, terminal=False, expected_last_sequence=expected)

    def end_turn(
        self, turn_id: str, message: Message, audit: Sequence[AuditEvent], *, expected: int
    ) -> Written:
        return self._written(
            turn_id=turn_id,
            terminal=True,
            expected_last_sequence=expected,
            message=agent_message.payload(message),
            audit=[audit_event.payload(event) for event in audit],
        )

    def fail_turn(self, turn_id: str, error: str, audit: Sequence[AuditEvent], *, expected: int) -> Written:
        return self._written(
            turn_id=turn_id,
            terminal=True,
            expected_last_sequence=expected,
            failed=error,
            audit=[audit_event.payload(event) for event in audit],
        )

    # --- beside it ---

    def take_in_asset(self, source: bytes | str | PathLike[str], kind: str) -> AssetReference:
        return self._assets.take_in(source, kind)

    def read_asset(self, reference: AssetReference) -> bytes:
        return self._assets.read(reference)

    def compact(self, context_window: int, current_tokens: int | None) -> Mapping[str, Any]:
        body: dict[str, Any] = {"context_window": context_window}
        if current_tokens is not None:
            body["current_tokens"] = current_tokens
        return self._transport.write("POST", self._path("compactions"), body)

    # --- ends ---

    def recover(self, *, accept_unknown_effects: bool) -> Mapping[str, Any]:
        return self._write("POST", "recover", accept_unknown_effects=accept_unknown_effects)

    def close(self) -> str | None:
        answer = self._write("POST", "close")
        self._lease = ""
        return answer.get("job")

    # --- inside ---

    def _write(self, method: str, path: str, **body: Any) -> Any:
        verify(self._directory)
        return self._transport.write(
            method, self._path(path), {"directory": self._place(), **body}, lease=self._lease
        )

    def _written(self, **body: Any) -> Written:
        answer = self._write("POST", "checkpoint", **body)
        return Written(
            first_sequence=int(answer["first_sequence"]),
            last_sequence=int(answer["last_sequence"]),
            is_redacted=bool(answer.get("redacted")),
        )

    def _path(self, path: str = "") -> str:
        base = f"{_BASE}/{quote(self.session_id, safe='')}"
        return f"{base}/{path}" if path else base

    def _call(self, call_id: str, step: str) -> str:
        return f"tool-batch/calls/{quote(call_id, safe='')}/{step}"

    def _place(self) -> dict[str, str]:
        return asdict(self._directory)


class _Reading:
    """A replay, line by line: a head, events (which are passed on and not kept), an end. One without an end was cut."""

    def __init__(self, take: Callable[[Event], None]) -> None:
        self._take = take
        self._head: Mapping[str, Any] | None = None
        self._end: Mapping[str, Any] | None = None

    def take(self, line: Any) -> None:
        if not isinstance(line, dict) or self._end is not None:
            raise errors.Corrupt("the replay holds what is no replay")
        if "error" in line:
            told = line["error"]
            raise BY_CODE.get(told.get("code", ""), errors.Corrupt)(
                str(told.get("error", "the replay broke off"))
            )
        if "head" in line:
            self._head = line["head"]
        elif "event" in line:
            self._take(_event(line["event"]))
        else:
            self._end = line["end"]

    def whole(self) -> Replay:
        if self._head is None or self._end is None:
            raise errors.Unavailable("the replay was cut; ask again")
        return Replay(
            session=self._head["session"],
            snapshot=self._head.get("snapshot"),
            last_sequence=int(self._end["last_sequence"]),
            digest=str(self._end["digest"]),
        )


def _event(value: Mapping[str, Any]) -> Event:
    return Event(
        sequence=int(value["sequence"]),
        kind=str(value["kind"]),
        payload=value["payload"],
        assets=tuple(value.get("assets", ())),
    )
