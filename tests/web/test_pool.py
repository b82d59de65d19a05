"""The routes of pool workers: over HTTP, through the real gate and the real engine."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import logging
import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.command import Envelope
from memory_core.domain.job import Failure
from memory_core.ids import id_bytes
from memory_core.job_kind import digest_of, enqueue
from tests.jobs.working import Sum, kind, registered
from tests.web.house import House


def broken(_reading: Any, _job: Any) -> Sum:
    raise ValueError("no such thing")


@pytest.fixture
def house(house: House) -> Iterator[House]:
    some = (
        kind(),
        kind("test_broken", prepare=broken),
        kind("test_large", prepare=lambda _reading, _job: Sum(mode="x" * 5_000)),
        kind("test_huge", prepare=lambda _r, _j: Sum(mode=os.urandom(5_000_000).hex())),
    )
    with registered(*some):
        house.start_writer()
        yield house
        house.stop_writer()


class Pool:
    """A worker that knows nothing but the address and a token of scope `pool`."""

    def __init__(self, house: House, queues: tuple[str, ...] = ("lint",)) -> None:
        self.house = house
        self.queues = queues
        self.headers = {"Authorization": f"Bearer {house.add_token('pool')}"}
        self.lease = new_lease()

    def post(self, route: str, body: dict[str, Any], **headers: str) -> Any:
        return self.house.client().post(f"/pool/{route}", json=body, headers=self.headers | headers)

    def claim(self, key: str | None = None, **more: Any) -> Any:
        body = {"queues": self.queues, "lease": self.lease, "worker": "w1"} | more
        return self.post("claim", body, **({"Idempotency-Key": key} if key else {}))


def new_lease() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def add(house: House, name: str = "test_sum", source: str = "a", **more: Any) -> str:
    job_id, _ = house.engine.originate(lambda tx: enqueue(tx, name, source_digest=digest_of(source), **more))
    return str(uuid.UUID(bytes=job_id))


def appended(house: House) -> list[Envelope]:
    """What the gate appends from now on."""
    seen: list[Envelope] = []
    append = house.parts.gate.append

    def noting(envelopes: Any) -> Any:
        seen.extend(envelopes)
        return append(envelopes)

    house.parts.gate.append = noting  # type: ignore[method-assign]
    return seen


def row(house: House, job: str) -> dict[str, Any]:
    return house.rows("SELECT * FROM jobs WHERE id = ?", id_bytes(job))[0]


def test_a_job_goes_from_claim_to_finish(house: House):
    job, pool = add(house), Pool(house)

    given = pool.claim().get_json()
    assert given["job"] == {
        "id": job,
        "kind": "test_sum",
        "queue": "lint",
        "project": None,
        "attempt": 1,
        "cursor": None,
        "run_seconds": limits.JOB_RUN_SECONDS,
        "is_inline": False,
    }
    assert given["input"] == {"numbers": [1, 2], "mode": "done"}
    assert given["more"] is False
    assert given["lease_seconds"] == limits.JOB_LEASE_SECONDS
    held = {"job": job, "lease": pool.lease}
    assert pool.post("renew", held).get_json() == {"lease_seconds": limits.JOB_LEASE_SECONDS, "cancel": False}
    done = pool.post("finish", held | {"input_digest": given["input_digest"], "output": given["input"]})
    assert (done.status_code, done.get_json()) == (200, {"state": "completed", "more": False})
    assert json.loads(row(house, job)["result"])["sum"] == 3
    assert row(house, job)["input_digest"].hex() == given["input_digest"]


def test_an_empty_queue_gives_nothing_and_costs_no_command(house: House):
    seen = appended(house)

    assert Pool(house).claim(str(uuid.uuid4())).get_json() == {"job": None, "more": False}
    assert seen == []


def test_a_paused_queue_costs_no_command_either(house: House):
    add(house)
    house.post("/api/v1/queues/lint/pause", {})
    seen = appended(house)

    assert Pool(house).claim().get_json() == {"job": None, "more": False}
    assert seen == []


def test_the_same_claim_sent_twice_gives_the_same_job_also_when_no_other_is_due(house: House):
    job, pool, key = add(house), Pool(house), str(uuid.uuid4())

    assert [pool.claim(key).get_json()["job"]["id"] for _ in range(2)] == [job] * 2


def test_the_same_claim_sent_twice_gives_the_same_job(house: House):
    add(house, source="a")
    add(house, source="b")
    pool, key = Pool(house), str(uuid.uuid4())

    first, second = pool.claim(key).get_json(), pool.claim(key).get_json()

    assert first == second
    assert first["more"] is True
    assert len(house.rows("SELECT 1 FROM jobs WHERE state = 'running'")) == 1


def test_a_claim_that_is_sent_again_after_its_job_has_ended_is_stale(house: House):
    add(house)
    pool, key = Pool(house), str(uuid.uuid4())
    given = pool.claim(key).get_json()
    pool.post("release", {"job": given["job"]["id"], "lease": pool.lease, "reason": "stopping"})

    answer = pool.claim(key)

    assert (answer.status_code, answer.get_json()["code"]) == (409, "stale_lease")


def test_finishing_twice_with_one_key_is_finishing_once(house: House):
    job, pool = add(house), Pool(house)
    given = pool.claim().get_json()
    body = {
        "job": job,
        "lease": pool.lease,
        "input_digest": given["input_digest"],
        "output": given["input"],
    }
    key = {"Idempotency-Key": str(uuid.uuid4())}

    assert [pool.post("finish", body, **key).get_json()["state"] for _ in range(2)] == ["completed"] * 2
    assert pool.post("finish", body).status_code == 409


def test_another_lease_is_refused_and_told_to_stop(house: House):
    job, pool = add(house), Pool(house)
    pool.claim()

    answer = pool.post("fail", {"job": job, "lease": new_lease(), "error": "crashed"})

    assert answer.status_code == 409
    assert answer.get_json()["code"] == "stale_lease"
    assert "Stop" in answer.get_json()["advice"]
    assert row(house, job)["state"] == "running"


def test_a_failure_says_when_it_is_tried_again(house: House):
    job, pool = add(house), Pool(house)
    pool.claim()

    answer = pool.post("fail", {"job": job, "lease": pool.lease, "error": "crashed"}).get_json()

    assert answer["state"] == "pending"
    assert answer["retry_after"].endswith("Z")


def test_an_input_that_cannot_be_prepared_is_a_counted_failure(house: House, caplog):
    job, pool = add(house, "test_broken"), Pool(house)

    assert pool.claim().get_json() == {"job": None, "more": True}
    found = row(house, job)
    assert (found["failures"], found["last_error"]) == (1, Failure.INPUT.sentence)


def test_an_input_that_is_too_large_is_a_failure_too(house: House):
    job, pool = add(house, "test_huge"), Pool(house)

    assert pool.claim().get_json()["job"] is None
    assert row(house, job)["last_error"] == Failure.INPUT.sentence


def test_a_long_answer_is_compressed_for_who_takes_it(house: House):
    add(house, "test_large")
    pool, key = Pool(house), str(uuid.uuid4())

    plain = pool.claim(key)
    packed = pool.post(
        "claim",
        {"queues": ["lint"], "lease": pool.lease, "worker": "w1"},
        **{"Idempotency-Key": key, "Accept-Encoding": "gzip"},
    )

    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.data) < len(plain.data) / 10
    assert json.loads(gzip.decompress(packed.data)) == plain.get_json()
    text = json.dumps(plain.get_json()["input"], separators=(",", ":")).encode()
    assert hashlib.sha256(text).hexdigest() == plain.get_json()["input_digest"]


def test_an_output_is_redacted_like_everything_that_comes_in(house: House):
    job, pool = add(house), Pool(house)
    given = pool.claim().get_json()
    secret = "ghp_" + "".join("aB3xK9mQ7t"[byte % 10] for byte in os.urandom(36))
    seen = appended(house)

    pool.post(
        "finish",
        {
            "job": job,
            "lease": pool.lease,
            "input_digest": given["input_digest"],
            "output": {"mode": f"token {secret}"},
        },
    )

    assert seen
    assert not any(secret.encode() in envelope.body for envelope in seen)


def test_an_output_that_cannot_take_effect_is_told_and_the_job_ends_by_its_tries(house: House, monkeypatch):
    monkeypatch.setattr(limits, "CAREFUL_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    job, pool = add(house), Pool(house)
    given = pool.claim().get_json()
    held = {"job": job, "lease": pool.lease}

    answer = pool.post("finish", held | {"input_digest": given["input_digest"], "output": {"mode": "raise"}})
    ended = pool.post("fail", held | {"error": "refused", "permanent": True})

    assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict")
    assert ended.get_json()["state"] == "failed"
    assert row(house, job)["last_error"] == Failure.REFUSED.sentence
    assert [letter["name"] for letter in house.rows("SELECT name FROM dead_letters")] == ["finish_job"]


def test_the_lease_token_leaves_no_trace(house: House, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    job, pool = add(house), Pool(house)
    seen = appended(house)
    given = pool.claim().get_json()
    pool.post("renew", {"job": job, "lease": pool.lease})
    pool.post("fail", {"job": job, "lease": pool.lease, "error": "nonsense"})
    listed = house.get("/api/v1/jobs").get_json()
    shown = house.get(f"/api/v1/jobs/{job}").get_json()

    token = base64.urlsafe_b64decode(pool.lease + "=")
    digest = hashlib.sha256(token).digest()
    told = json.dumps([given, listed, shown]) + caplog.text + capsys.readouterr().out
    hashes = (digest.hex(), base64.b64encode(digest).decode(), repr(digest))
    assert not any(text in told for text in (pool.lease, token.hex(), repr(token), *hashes))
    assert len(seen) == 2
    assert not any(text.encode() in envelope.body for text in (pool.lease, token.hex()) for envelope in seen)
    assert house.rows("SELECT claim_hash FROM jobs") == [{"claim_hash": digest}]


@pytest.mark.parametrize(
    ("route", "body", "what"),
    [
        ("claim", {"queues": ["nonsense"], "lease": "LEASE", "worker": "w"}, "queues"),
        ("claim", {"queues": [], "lease": "LEASE", "worker": "w"}, "queues"),
        ("claim", {"queues": ["lint"], "lease": "short", "worker": "w"}, "lease"),
        ("claim", {"queues": ["lint"], "lease": "LEASE", "worker": ""}, "worker"),
        ("claim", {"queues": ["lint"], "lease": "LEASE", "worker": "w\n"}, "worker"),
        ("claim", {"queues": ["lint"], "lease": "LEASE", "worker": "a\u202eb"}, "worker"),
        ("claim", {"queues": ["lint"], "lease": "LEASE", "worker": "w", "more": 1}, "more"),
        ("renew", {"job": "nonsense", "lease": "LEASE"}, "id"),
        ("fail", {"job": "JOB", "lease": "LEASE", "error": "because"}, "error"),
        ("release", {"job": "JOB", "lease": "LEASE", "reason": "because"}, "reason"),
        ("finish", {"job": "JOB", "lease": "LEASE", "input_digest": "00", "output": {}}, "input_digest"),
        (
            "finish",
            {"job": "JOB", "lease": "LEASE", "input_digest": "00" * 32, "output": {"numbers": 1}},
            "output",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_says_why(house: House, route: str, body: dict[str, Any], what: str):
    job, pool = add(house), Pool(house)
    body = {
        name: {"LEASE": pool.lease, "JOB": job}.get(value, value) if isinstance(value, str) else value
        for name, value in body.items()
    }

    answer = pool.post(route, body)

    assert answer.status_code == 400
    assert what in answer.get_json()["error"]
    assert pool.lease not in answer.get_data(as_text=True)
    assert row(house, job)["state"] == "pending"


def test_a_body_that_is_too_long_is_refused(house: House):
    pool = Pool(house)

    answer = pool.claim(worker="w" * limits.POOL_BODY_MAX_BYTES)

    assert answer.status_code == 413
    assert str(limits.POOL_BODY_MAX_BYTES) in answer.get_json()["error"]


@pytest.mark.parametrize("scope", ["admin", "write", "read", "capture"])
def test_only_a_pool_token_may_work(house: House, scope: str):
    pool = Pool(house)
    pool.headers = {"Authorization": f"Bearer {house.add_token(scope)}"}

    assert pool.claim().status_code == 403


def test_a_pool_token_may_do_nothing_else(house: House):
    pool = Pool(house)

    for path in ("/api/v1/jobs", "/api/v1/status", "/metrics"):
        assert house.client().get(path, headers=pool.headers).status_code == 403


def test_a_claim_that_nobody_answers_in_time_is_pending_and_can_be_sent_again(house: House, monkeypatch):
    job, pool, key = add(house), Pool(house), str(uuid.uuid4())
    house.stop_writer()
    monkeypatch.setattr(limits, "REPLY_WAIT_SECONDS", 0.05)

    assert pool.claim(key).status_code == 202
    house.start_writer()
    monkeypatch.undo()

    assert pool.claim(key).get_json()["job"]["id"] == job


def test_a_claim_may_be_of_one_kind_and_an_unknown_one_is_named(house: House) -> None:
    add(house, "test_large")
    job = add(house)
    assert Pool(house).claim(kind="test_sum").json["job"]["id"] == job

    refused = Pool(house).claim(kind="nothing")
    assert (refused.status_code, "test_sum" in refused.json["error"]) == (400, True)
