"""Attacks on the wire, against the real server: what a test client cannot send."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from typing import Any

import pytest

from memory_core import limits
from tests.queue.broker import until
from tests.web.served import Served

pytestmark = pytest.mark.stack

#: Connections that are slow, and how long somebody behind them would wait for a thread, if each had one until its time is up.
_SLOW = 200
_TURNS_SECONDS = _SLOW / limits.WEB_THREADS * limits.REQUEST_ARRIVAL_SECONDS / 2


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def ask(served: Served, path: str, port: int | None = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port or served.port, timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {served.house.token}"} | headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if "json" in (answer.getheader("Content-Type") or "") else text
    finally:
        connection.close()


def test_a_body_that_says_it_is_too_long_is_refused_unread(served: Served) -> None:
    before, began = served.rss_kib(), time.monotonic()
    answer = served.raw(
        served.head("POST", "/hook", Content_Length="104857600", Content_Type="application/json"), timeout=60
    )
    assert status_of(answer) == 413
    # The connection was closed: otherwise the answer would have ended with the 15 s in which another request may come.
    assert time.monotonic() - began < 14
    assert served.rss_kib() - before < 5 * 1024


def test_a_chunked_body_without_end_is_refused_at_the_limit(served: Served) -> None:
    before = served.rss_kib()
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    head = served.head("POST", "/hook", Transfer_Encoding="chunked", Content_Type="application/json")
    answer = served.raw(head, *[chunk] * 100)
    # What was sent behind the refusal may reset the connection before the answer is read.
    assert status_of(answer) in (0, 413)
    assert ask(served, "/api/v1/status")[0] == 200
    assert served.rss_kib() - before < limits.REQUEST_BODY_MAX_BYTES * 4 // 1024


@pytest.mark.parametrize(
    "head",
    [
        "POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        "POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
        "GET /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.test\r\n\r\n",
        "GET http://evil.test/api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "GET /api/v1/status HTTP/1.1\r\n\r\n",
        "GET /hook HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
        "GARBAGE\r\n\r\n",
        "GET /" + "a" * 9_000 + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + "".join(f"X-{n}: 1\r\n" for n in range(100)) + "\r\n",
    ],
    ids=lambda head: head[:40],
)
def test_ambiguous_and_oversized_heads_are_refused_and_the_connection_closed(
    served: Served, head: str
) -> None:
    answer = served.raw(head.encode())
    assert 400 <= status_of(answer) < 500
    assert answer.count(b"HTTP/1.1 ") == 1


def test_the_probe_port_answers_its_own_names_only(served: Served) -> None:
    assert ask(served, "/livez", port=served.port + 1)[0] == 200
    assert ask(served, "/livez", port=served.port + 1, Host="evil.test")[0] == 403
    assert ask(served, "/livez", port=served.port + 1, Origin="https://evil.test")[0] == 403
    assert ask(served, "/hook", port=served.port + 1)[0] == 404


def test_readiness_names_the_part_that_is_away(served: Served) -> None:
    status, body = ask(served, "/readyz", port=served.port + 1)
    assert status == 503
    assert "writer has not started" in body["checks"]["writer"]
    assert body["checks"]["broker"] == body["checks"]["database"] == body["checks"]["disk"] == "ok"


def test_a_killed_worker_is_replaced_and_probed_again(served: Served) -> None:
    (worker,) = served.worker_pids()
    os.kill(worker, signal.SIGKILL)
    until(lambda: served.worker_pids() not in ([], [worker]))

    def answers() -> bool:
        try:
            return ask(served, "/livez", port=served.port + 1)[0] == ask(served, "/api/v1/status")[0] == 200
        except OSError:
            return False

    until(answers)


@pytest.mark.parametrize(
    "start",
    [b"", b"GET / HT", b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"],
    ids=["nothing", "half a head", "half a body"],
)
def test_slow_connections_shut_nobody_out_and_end(served: Served, start: bytes) -> None:
    slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(_SLOW)]
    try:
        for connection in slow:
            connection.sendall(start)
        began = time.monotonic()
        for _ in range(20):
            assert ask(served, "/api/v1/status")[0] == 200
        assert time.monotonic() - began < _TURNS_SECONDS
        slow[0].settimeout(limits.REQUEST_ARRIVAL_SECONDS + 60)
        slow[0].sendall(b" ")
        assert status_of(slow[0].recv(1_000)) == 408
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    "start",
    [
        b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n{",
        b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nTOKEN\r\nContent-Length: 1000000\r\n\r\n{",
        b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT",
        b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * (limits.PATIENT_PEEK_BYTES + 1),
    ],
    ids=[
        "unwanted body",
        "unwanted chunks",
        "long body",
        "half a second head",
        "left open",
        "head without end",
    ],
)
def test_no_way_of_being_slow_occupies_the_threads(served: Served, start: bytes) -> None:
    authorised = start.replace(b"TOKEN", b"Authorization: Bearer " + served.house.token.encode())
    slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(_SLOW)]
    try:
        for connection in slow:
            connection.sendall(authorised)
        began = time.monotonic()
        for _ in range(10):
            assert ask(served, "/api/v1/status")[0] == 200
        assert time.monotonic() - began < _TURNS_SECONDS
    finally:
        for connection in slow:
            connection.close()


def test_a_refusal_is_read_although_its_body_is_sent_to_the_end(served: Served) -> None:
    body = b"x" * (limits.REQUEST_BODY_MAX_BYTES + 1)
    head = served.head(
        "POST", "/hook", Content_Length=str(len(body)), Content_Type="application/json", Connection="close"
    )
    assert status_of(served.raw(head + body)) == 413


def test_a_request_in_many_pieces_is_put_together(served: Served) -> None:
    body = json.dumps({"session_id": "s", "prompt": "slow but honest"}).encode()
    whole = served.head("POST", "/hook?agent=claude-code", Content_Length=str(len(body))) + body
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        for _ in range(2):
            for at in range(0, len(whole), 40):
                connection.sendall(whole[at : at + 40])
                time.sleep(0.005)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(10_000)
            assert status_of(answer) == 202


def test_two_requests_in_one_packet_are_both_answered(served: Served) -> None:
    first = served.head("GET", "/api/v1/status")
    last = served.head("GET", "/api/v1/status", Connection="close")
    assert served.raw(first + last).count(b"HTTP/1.1 200") == 2


def test_a_body_larger_than_the_sockets_buffer_is_taken(served: Served) -> None:
    body = json.dumps({"session_id": "s", "prompt": "x" * limits.MIB}).encode()
    head = served.head("POST", "/hook?agent=claude-code", Content_Length=str(len(body)), Connection="close")
    assert status_of(served.raw(head + body)) == 202


def test_open_event_streams_are_refused_at_once(served: Served) -> None:
    answers: list[int] = []

    def open_stream() -> None:
        head = served.head("GET", "/mcp", Accept="text/event-stream", Connection="close")
        answers.append(status_of(served.raw(head, timeout=5)))

    threads = [threading.Thread(target=open_stream) for _ in range(2 * limits.WEB_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) == {405}
    assert ask(served, "/api/v1/status")[0] == 200


def test_a_stopped_broker_is_an_unknown_outcome_and_a_dead_one_none(served: Served) -> None:
    body = json.dumps({"session_id": "s", "prompt": "while the broker stands"}).encode()
    head = served.head("POST", "/hook?agent=claude-code", Content_Length=str(len(body)), Connection="close")
    served.house.broker.stop()
    try:
        answer = served.raw(head + body)
    finally:
        os.kill(served.house.broker.pid, signal.SIGCONT)
    assert status_of(answer) == 504
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["outcome"] == "unknown"
    served.house.broker.kill()
    answer = served.raw(head + body)
    assert status_of(answer) == 503
    assert b"Retry-After" in answer
    served.house.broker.start()
    until(lambda: status_of(served.raw(head + body)) == 202)


def test_metrics_count_without_quoting_anybody(served: Served) -> None:
    status, text = ask(served, "/metrics")
    assert status == 200
    for name in (
        "memoryd_accepted_total",
        "memoryd_refused_total",
        "memoryd_backlog_entries",
        "memoryd_wal_bytes",
    ):
        assert name.encode() in text
    assert b"while the broker stands" not in text


def test_logs_hold_one_record_per_line_and_no_token(served: Served) -> None:
    ask(served, "/hook%0a2026-01-01%20INFO%20login%20ok?token=" + served.house.token)
    log = (served.settings.log_dir / "web.log").read_text()
    assert served.house.token not in log
    assert all(json.loads(line) for line in log.splitlines())


def test_a_new_worker_hears_replies_before_it_is_asked_anything(served: Served) -> None:
    def listeners() -> set[str]:
        clients: Any = served.house.redis.client_list(_type="pubsub")
        return {client["id"] for client in clients}

    before = listeners()
    os.kill(served.worker_pids()[0], signal.SIGKILL)

    until(lambda: listeners() - before)
