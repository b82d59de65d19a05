"""What a worker may send and what not: tokens, texts and names at their bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from memory_core import limits
from tests.jobs.working import kind, registered
from tests.web.house import House
from tests.web.test_pool import Pool, add, appended, row


@pytest.fixture
def house(house: House) -> Iterator[House]:
    with registered(kind()):
        house.start_writer()
        yield house
        house.stop_writer()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lease: lease + "=",
        lambda lease: lease + "\n",
        lambda lease: lease[:20] + "!" + lease[20:],
        lambda lease: "+/" + lease[2:],
        lambda lease: lease[:-1],
        lambda lease: lease + "A",
        lambda lease: lease[:-1] + "B",
        lambda lease: lease[:-1] + "\u00e9",
    ],
    ids=["padded", "line", "junk", "plain alphabet", "short", "long", "loose bits", "not ASCII"],
)
def test_a_lease_token_has_one_spelling(house: House, spoil: Callable[[str], str]) -> None:
    add(house)
    pool = Pool(house)
    pool.lease = spoil(pool.lease)

    answer = pool.claim()

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")


@pytest.mark.parametrize("size", [limits.FIELD_REDACTED_MAX_BYTES, limits.FIELD_REDACTED_MAX_BYTES + 1])
def test_a_text_of_an_output_is_kept_whole_or_refused(house: House, size: int) -> None:
    job, pool = add(house), Pool(house)
    given = pool.claim().get_json()
    text = "word " * ((size - 2) // 5)
    text += "\u00e9" * ((size - len(text)) // 2) + "x" * ((size - len(text)) % 2)
    assert len(text.encode()) == size
    seen = appended(house)

    body = {"job": job, "lease": pool.lease, "input_digest": given["input_digest"]}
    answer = pool.post("finish", body | {"output": {"mode": text}})

    if size > limits.FIELD_REDACTED_MAX_BYTES:
        assert (answer.status_code, answer.get_json()["code"]) == (400, "output")
        assert str(limits.FIELD_REDACTED_MAX_BYTES) in answer.get_json()["error"]
        assert seen == []
        assert row(house, job)["state"] == "running"
    else:
        assert answer.status_code != 400
        assert text.encode() in seen[0].body


def test_a_worker_is_listed_by_the_name_that_its_jobs_have(house: House) -> None:
    job, pool = add(house), Pool(house)
    secret = "ghp_" + "".join("aB3xK9mQ7t"[byte % 10] for byte in os.urandom(36))

    assert pool.claim(worker=f"box {secret}").get_json()["job"]["id"] == job

    (worker,) = house.get("/api/v1/workers").json
    assert secret not in worker["worker"]
    assert worker["worker"] == row(house, job)["worker"]
    assert [found["id"] for found in worker["jobs"]] == [job]


def test_a_key_that_was_used_with_another_body_is_told_to_take_a_new_one(house: House) -> None:
    add(house)
    pool, key = Pool(house), "6f1c2a52-8f0e-4d7b-9a52-0d6f6f3c1b11"
    assert pool.claim(key).status_code == 200

    answer = pool.claim(key, worker="another")

    assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict")
    assert "new id" in answer.get_json()["advice"]
