"""Requests against a small real server: sent again with the same key until there is an answer, and errors by class."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from client.durable import UncertainToolInvocations
from client.durable.directory import identity_of
from client.durable.port import Event
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from client.settings import ClientSettings
from memory_core import errors, limits
from memory_core.clock import FakeClock

#: Closes the connection without a word.
SILENCE = (0, {}, {})
GOOD = (200, {"ok": True}, {})


@dataclass
class Server:
    """Gives one scripted answer after the other: status, JSON or bytes, headers. The last one stays."""

    url: str = ""
    answers: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def keys(self) -> list[str]:
        return [headers.get("Idempotency-Key", "") for _, _, headers, _ in self.requests]


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.requests.append((self.command, self.path, dict(self.headers), body))
            status, answer, headers = found.answers.pop(0) if len(found.answers) > 1 else found.answers[0]
            if not status:
                self.close_connection = True
                return
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _any

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        found.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        running.shutdown()
        thread.join()


def settings(url: str) -> ClientSettings:
    return ClientSettings(
        url=url, token="t0ken", token_file="", redaction_key=b"0" * 32, state_dir="", config_file=""
    )


def transport(server: Server, clock: FakeClock | None = None) -> Transport:
    return Transport(settings(server.url), clock=clock or FakeClock(), patience_seconds=30)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((429, {"error": "too much"}, {"Retry-After": "2"}), id="429"),
        pytest.param((503, {"error": "away"}, {}), id="503"),
        pytest.param((504, {"error": "?", "outcome": "unknown"}, {}), id="504"),
        pytest.param((202, {"status": "pending"}, {}), id="202 pending"),
        pytest.param(SILENCE, id="no answer"),
        pytest.param((200, b'{"ok"', {"Content-Length": "99"}), id="half an answer"),
    ],
)
def test_a_write_is_sent_again_with_the_same_key_and_the_same_body(server: Server, first: Any) -> None:
    server.answers = [first, first, GOOD]

    assert transport(server).write("POST", "/x", {"a": 1}) == {"ok": True}

    assert len(server.requests) == 3
    assert len(set(server.keys())) == 1
    assert {body for *_, body in server.requests} == {b'{"a":1}'}


def test_each_write_has_a_key_of_its_own_and_a_question_has_none(server: Server) -> None:
    server.answers = [GOOD]
    asks = transport(server)
    asks.write("POST", "/x")
    asks.write("POST", "/x")
    asks.read("/x", after=3, none=None)

    first, second, third = server.keys()
    assert first
    assert second not in ("", first)
    assert third == ""
    assert server.requests[-1][1] == "/api/v1/x?after=3"


def test_it_waits_as_long_as_the_server_asks(server: Server) -> None:
    clock = FakeClock()
    server.answers = [(429, {"error": "too much"}, {"Retry-After": "7"}), GOOD]
    before = clock.monotonic()

    transport(server, clock).write("POST", "/x")

    assert clock.monotonic() - before == 7


def test_it_gives_up_after_a_while_and_says_whether_it_may_have_been_kept(server: Server) -> None:
    server.answers = [(503, {"error": "the broker is away"}, {})]
    with pytest.raises(errors.Unavailable, match="the broker is away"):
        transport(server).write("POST", "/x")

    server.answers = [(504, {"error": "nobody knows"}, {}), (503, {"error": "away"}, {})]
    with pytest.raises(errors.OutcomeUnknown):
        transport(server).write("POST", "/x")

    server.answers = [SILENCE]
    with pytest.raises(errors.OutcomeUnknown):
        transport(server).write("POST", "/x")
    with pytest.raises(errors.Unavailable):
        transport(server).read("/x")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (409, "session_busy", errors.SessionBusy),
        (409, "stale_lease", errors.StaleSessionLease),
        (409, "replay_required", errors.ReplayRequired),
        (409, "stale_replay", errors.StaleReplay),
        (409, "workspace_mismatch", errors.WorkspaceMismatch),
        (409, "snapshot_mismatch", errors.SnapshotMismatch),
        (409, "uncertain_calls", UncertainToolInvocations),
        (409, "corrupt", errors.Corrupt),
        (409, "conflict", errors.Conflict),
        (413, "replay_too_large", errors.ReplayTooLarge),
        (404, "not_found", errors.NotFound),
        (403, "forbidden", errors.Forbidden),
        (400, "invalid", errors.Invalid),
        (418, "teapot", errors.Invalid),
        (500, "internal", errors.Unavailable),
    ],
)
def test_what_the_server_refuses_is_raised_by_class(
    server: Server, status: int, code: str, kind: type
) -> None:
    server.answers = [(status, {"error": "no", "code": code, "actual": 3}, {})]

    with pytest.raises(kind) as raised:
        transport(server).write("POST", "/x")

    assert type(raised.value) is kind
    assert len(server.requests) == 1
    if status < 500:
        assert raised.value.detail["actual"] == 3


def test_calls_that_are_uncertain_are_named(server: Server) -> None:
    calls = [{"call_id": "c1", "tool_name": "shell"}]
    server.answers = [(409, {"error": "no", "code": "uncertain_calls", "calls": calls}, {})]

    with pytest.raises(UncertainToolInvocations) as raised:
        transport(server).write("POST", "/x")

    assert [(call.call_id, call.tool_name) for call in raised.value.calls] == [("c1", "shell")]


def test_a_token_that_is_not_accepted_is_said_with_where_it_came_from(server: Server) -> None:
    server.answers = [(401, {"error": "no"}, {})]
    with pytest.raises(errors.Forbidden, match="MEMORYD_TOKEN") as raised:
        transport(server).write("POST", "/x")
    assert "t0ken" not in str(raised.value)


def test_what_is_not_memoryd_is_told_so(server: Server) -> None:
    server.answers = [(404, b"<html>", {})]
    with pytest.raises(errors.Unavailable, match="not memoryd"):
        transport(server).write("POST", "/x")
    server.answers = [(200, b"<html>", {})]
    with pytest.raises(errors.Unavailable, match="memoryd"):
        transport(server).write("POST", "/x")
    with pytest.raises(errors.Invalid, match="http://"):
        Transport(settings("ftp://example.test"))


def test_a_body_that_no_gate_takes_is_not_sent(server: Server) -> None:
    server.answers = [GOOD]
    with pytest.raises(errors.Invalid, match="bytes"):
        transport(server).write("POST", "/x", {"a": "x" * limits.REQUEST_BODY_MAX_BYTES})
    assert server.requests == []


# --- a replay ------------------------------------------------------------------------------------

HEAD = {"head": {"session": {"id": "s"}, "snapshot": None}}
EVENT = {"event": {"sequence": 1, "kind": "user_message", "payload": {"role": "user", "content": "hi"}}}
END = {"end": {"last_sequence": 1, "digest": "00"}}


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.fixture
def session(server: Server, tmp_path: Path) -> HttpSession:
    return HttpSession(transport(server), "s", identity_of(tmp_path, {"MEMORYD_HOST_ID": "h"}))


def test_a_replay_is_read_line_by_line(server: Server, session: HttpSession) -> None:
    server.answers = [(200, lines(HEAD, EVENT, END), {})]

    events: list[Event] = []
    replay = session.replay(events.append)

    assert [event.sequence for event in events] == [1]
    assert (replay.last_sequence, replay.digest, replay.snapshot) == (1, "00", None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(lines(HEAD, EVENT), errors.Unavailable, id="no end"),
        pytest.param(lines(HEAD, EVENT, END)[:-4], errors.Unavailable, id="cut in a line"),
        pytest.param(lines(EVENT, END), errors.Unavailable, id="no head"),
        pytest.param(lines(HEAD, END, EVENT), errors.Corrupt, id="more after the end"),
        pytest.param(lines(HEAD, 7), errors.Corrupt, id="no object"),
        pytest.param(b"{]\n", errors.Unavailable, id="no JSON"),
        pytest.param(lines(HEAD, {"error": {"error": "x", "code": "corrupt"}}), errors.Corrupt, id="corrupt"),
        pytest.param(
            lines(HEAD, {"error": {"error": "x", "code": "stale_lease"}}),
            errors.StaleSessionLease,
            id="broke off",
        ),
    ],
)
def test_a_replay_that_is_not_whole_is_none(
    server: Server, session: HttpSession, body: bytes, kind: type
) -> None:
    server.answers = [(200, body, {})]
    with pytest.raises(kind):
        session.replay()


def test_a_refused_replay_is_raised_by_class(server: Server, session: HttpSession) -> None:
    server.answers = [(413, {"error": "compact more", "code": "replay_too_large"}, {})]
    with pytest.raises(errors.ReplayTooLarge, match="compact more"):
        session.replay()


def test_the_lease_goes_into_a_header_and_nowhere_else(server: Server, session: HttpSession) -> None:
    server.answers = [(200, {"lease": "l3ase", "last_sequence": 0}, {}), GOOD]
    session.claim()
    session.renew()
    session.release()
    session.release()

    assert [headers.get("Memoryd-Lease") for _, _, headers, _ in server.requests] == [None, "l3ase", "l3ase"]
    assert not any(b"l3ase" in body for *_, body in server.requests)
    assert "l3ase" not in repr(session) + repr(vars(session)["_directory"])


def test_each_write_looks_at_the_directory_first(server: Server, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    session = HttpSession(transport(server), "s", identity_of(place, {"MEMORYD_HOST_ID": "h"}))
    server.answers = [(200, {"lease": "l", "last_sequence": 0}, {})]
    session.claim()
    place.rename(tmp_path / "away")
    place.mkdir()
    writes: list[Callable[[], Any]] = [
        session.claim,
        session.renew,
        session.replay,
        lambda: session.set_title("t"),
        lambda: session.recover(accept_unknown_effects=False),
        session.close,
    ]

    for write in writes:
        with pytest.raises(errors.WorkspaceMismatch):
            write()

    assert len(server.requests) == 1
    session.release()
    assert len(server.requests) == 2


def test_a_server_that_refuses_the_connection_was_sent_nothing() -> None:
    asks = Transport(settings("http://127.0.0.1:9"), clock=FakeClock(), patience_seconds=30)

    with pytest.raises(errors.Unavailable, match="no answer from http"):
        asks.write("POST", "/x")


def test_a_token_file_that_is_not_there_is_named(server: Server, tmp_path: Path) -> None:
    server.answers = [(401, {"error": "no"}, {})]
    found = ClientSettings(
        url=server.url,
        token="",
        token_file=str(tmp_path / "none"),
        redaction_key=b"0" * 32,
        state_dir="",
        config_file="",
    )

    with pytest.raises(errors.Forbidden, match=r"there is none in .*/none"):
        Transport(found).read("/x")


def test_a_url_or_a_token_that_cannot_be_used_is_said_at_once(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\ntwo\n")
    broken = ClientSettings(
        url=server.url,
        token="",
        token_file=str(file),
        redaction_key=b"0" * 32,
        state_dir="",
        config_file="",
    )
    with pytest.raises(errors.Forbidden, match=r"what is in .*/token is no token"):
        Transport(broken).read("/x")
    with pytest.raises(errors.Invalid, match="URL cannot be used"):
        Transport(settings("http://127.0.0.1:99999")).write("POST", "/x")
    assert server.requests == []
