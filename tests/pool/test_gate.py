"""The client of `/pool/*`: answers that are cut, late, packed, swollen or wrong, and what is sent again."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator

import pytest

from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.errors import Conflict, Forbidden, Invalid, StaleLease, Unavailable
from tests.pool.small_gate import (
    Fault,
    SmallGate,
    closing,
    cut_after,
    cut_before,
    cut_in_the_answer,
    packed,
    raw,
    says,
)
from workers.pool.gate import PoolGate

CLAIM = {"queues": ["lint"], "lease": "a lease", "worker": "w", "on_data_host": False}


@pytest.fixture
def client(gate: SmallGate) -> Iterator[PoolGate]:
    made = PoolGate(gate.url, lambda: "a token", SystemClock())
    yield made
    made.close()


def at_once(_: float) -> bool:
    return True


def test_requests_share_one_connection_and_carry_the_token(gate: SmallGate, client: PoolGate):
    for _ in range(5):
        client.ask("/pool/claim", CLAIM, key="")

    assert gate.connections == 1
    assert set(gate.tokens) == {"Bearer a token"}


def test_two_requests_at_once_use_two_connections(gate: SmallGate, client: PoolGate):
    both = threading.Barrier(2)

    def together(_: object) -> bool:
        both.wait(60)
        return False

    gate.fail_next("claim", together, together)
    threads = [
        threading.Thread(target=client.ask, args=("/pool/claim", CLAIM), kwargs={"key": ""}) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert gate.connections == 2


def test_a_kept_connection_that_the_gate_closed_is_replaced_without_a_word(gate: SmallGate, client: PoolGate):
    gate.fail_next("claim", closing)
    client.ask("/pool/claim", CLAIM, key="1")

    assert client.ask("/pool/claim", CLAIM, key="2") == {"job": None, "more": False}
    assert gate.connections == 2


def test_a_connection_that_lay_too_long_is_not_used_any_more(gate: SmallGate, client: PoolGate, monkeypatch):
    client.ask("/pool/claim", CLAIM, key="1")
    monkeypatch.setattr(limits, "POOL_CONNECTION_IDLE_SECONDS", -1.0)

    client.ask("/pool/claim", CLAIM, key="2")

    assert gate.connections == 2


@pytest.mark.parametrize("fault", [cut_before, cut_after, cut_in_the_answer])
def test_a_cut_answer_is_asked_for_again_with_the_same_key_and_takes_effect_once(
    gate: SmallGate, client: PoolGate, fault: Fault
):
    job = gate.add("probe", {})
    gate.fail_next("claim", fault, fault)

    answer = client.insist("/pool/claim", CLAIM, seconds=20, pause=at_once)

    assert answer["job"]["id"] == job.id
    assert job.claims == 1
    assert len({key for _, _, key in gate.asked}) == 1


@pytest.mark.parametrize(
    "fault",
    [
        says(202),
        says(408),
        says(429, Retry_After="3"),
        says(500),
        says(503, Retry_After="3"),
        says(504),
        raw(b"<html>"),
        raw(b"[1, 2]"),
        raw(b"\x1f\x8b not gzip", Content_Encoding="gzip"),
        raw(gzip.compress(b"{}")[:-4], Content_Encoding="gzip"),
    ],
)
def test_what_is_no_answer_now_is_unavailable_and_asked_for_again(
    gate: SmallGate, client: PoolGate, fault: Fault
):
    gate.fail_next("claim", fault)
    with pytest.raises(Unavailable):
        client.ask("/pool/claim", CLAIM, key="1")

    gate.fail_next("claim", fault)
    assert client.insist("/pool/claim", CLAIM, seconds=20, pause=at_once) == {"job": None, "more": False}


def test_the_gate_says_how_long_to_wait(gate: SmallGate, client: PoolGate):
    waits: list[float] = []
    gate.fail_next("claim", says(429, Retry_After="7"), says(503))

    client.insist("/pool/claim", CLAIM, seconds=60, pause=lambda seconds: waits.append(seconds) or True)

    assert waits == [7.0, limits.POOL_RESEND_PAUSES_SECONDS[1]]


def test_nobody_is_asked_any_more_when_the_worker_ends_or_the_time_is_over(gate: SmallGate, client: PoolGate):
    gate.fail_next("claim", *[says(503)] * 3)

    with pytest.raises(Unavailable):
        client.insist("/pool/claim", CLAIM, seconds=60, pause=lambda _: False)
    with pytest.raises(Unavailable):
        client.insist("/pool/claim", CLAIM, seconds=0, pause=at_once)

    assert len(gate.faults["claim"]) == 1


def test_a_gate_that_is_not_there_is_unavailable():
    with pytest.raises(Unavailable):
        PoolGate("http://127.0.0.1:1", lambda: "", SystemClock()).ask("/pool/claim", CLAIM, key="")


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_accepted_is_not_tried_again(gate: SmallGate, client: PoolGate, status: int):
    gate.fail_next("claim", says(status))

    with pytest.raises(Forbidden, match="as told"):
        client.insist("/pool/claim", CLAIM, seconds=60, pause=at_once)


@pytest.mark.parametrize(
    ("status", "error"), [(302, Invalid), (400, Invalid), (404, Invalid), (409, Conflict), (413, Invalid)]
)
def test_a_request_that_is_wrong_is_not_tried_again(
    gate: SmallGate, client: PoolGate, status: int, error: type[Exception]
):
    gate.fail_next("claim", says(status))

    with pytest.raises(error):
        client.insist("/pool/claim", CLAIM, seconds=60, pause=at_once)


def test_a_stale_lease_has_its_own_name(gate: SmallGate, client: PoolGate):
    gate.fail_next("renew", says(409, "stale_lease"))

    with pytest.raises(StaleLease):
        client.ask("/pool/renew", {"job": "x", "lease": "y"}, key="")


def test_a_packed_answer_is_unpacked_and_a_swelling_one_is_not_read_on(
    gate: SmallGate, client: PoolGate, monkeypatch
):
    gate.add("probe", {"text": "x" * 100_000})
    gate.fail_next("claim", packed)
    assert client.ask("/pool/claim", CLAIM, key="")["input"]["text"] == "x" * 100_000

    monkeypatch.setattr(limits, "POOL_ANSWER_MAX_BYTES", 64 * 1024)
    for fault in (
        raw(gzip.compress(b'{"a": "' + b"x" * 10_000_000), Content_Encoding="gzip"),
        raw(b"x" * 100_000),
    ):
        gate.fail_next("claim", fault)
        with pytest.raises(Unavailable, match="ValueError"):
            client.ask("/pool/claim", CLAIM, key="")


def test_an_answer_that_drips_is_given_up(gate: SmallGate, client: PoolGate, monkeypatch):
    monkeypatch.setattr(limits, "POOL_ANSWER_SECONDS", 0.2)
    go = threading.Event()

    def drip(handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(1000):
            handler.wfile.write(b" ")
            if go.wait(0.02):
                break
        handler.close_connection = True
        return True

    gate.fail_next("claim", drip)
    with pytest.raises(Unavailable, match="TimeoutError"):
        client.ask("/pool/claim", CLAIM, key="")
    go.set()


@pytest.mark.parametrize("url", ["", "ftp://x", "127.0.0.1:49374", "http://"])
def test_what_is_no_url_is_refused_at_once(url: str):
    with pytest.raises(Invalid, match="http"):
        PoolGate(url, lambda: "", SystemClock())
