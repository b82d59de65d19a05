"""Models over HTTP: a worker's reservations, a person's pause, what is told of state and usage."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.model_control import keep_budget
from memory_core.domain.budget import Budget, Cap, Price
from memory_core.errors import Invalid
from tests.jobs.working import kind, registered
from tests.web.house import House
from tests.web.test_pool import Pool, add, appended

CONFIGURED = """
[models]
provider = "openai_compatible"
base_url = "http://127.0.0.1:9/v1"
model = "gpt-x"
"""
PRICE = Price(input=2_000_000, output=8_000_000, cached=1_000_000)


@pytest.fixture
def house(house_factory: Callable[..., House], tmp_path: Any) -> Iterator[House]:
    (tmp_path / "config.toml").write_text(CONFIGURED)
    house = house_factory(config_file=str(tmp_path / "config.toml"))
    with registered(kind(uses_model=True)):
        house.start_writer()
        yield house
        house.stop_writer()


@pytest.fixture
def plain(house_factory: Callable[..., House]) -> Iterator[House]:
    """A house without any provider."""
    house = house_factory()
    house.start_writer()
    yield house
    house.stop_writer()


def allow(house: House, budget: Budget) -> None:
    house.engine.originate(lambda tx: keep_budget(tx, budget))


def held(house: House) -> tuple[Pool, dict[str, Any]]:
    """A worker with a claimed job, and what names both."""
    job, pool = add(house), Pool(house)
    pool.claim()
    return pool, {"job": job, "lease": pool.lease}


def call(**more: Any) -> dict[str, Any]:
    return {
        "call": str(uuid.uuid4()),
        "provider": "openai_compatible",
        "model": "gpt-x",
        "input_tokens": 60,
        "output_tokens_max": 40,
        "prompt": "consolidate.v1+repair.v1",
    } | more


def used(call_id: str, **more: Any) -> dict[str, Any]:
    return {
        "call": call_id,
        "input_tokens": 50,
        "output_tokens": 10,
        "cached_tokens": 20,
        "outcome": "ok",
    } | more


def test_a_call_is_reserved_settled_and_told(house: House):
    allow(house, Budget(prices={"openai_compatible:*": PRICE}, currency="EUR"))
    pool, named = held(house)
    asked = call()

    assert pool.post("model/reserve", named | asked).get_json() == {"granted": True, "cancel": False}
    state = house.get("/api/v1/models").get_json()
    assert state["today"]["reserved"] == {"calls": 1, "tokens": 100, "money": 0.00044}
    assert pool.post("model/settle", named | used(asked["call"])).get_json() == {"cancel": False}

    (row,) = house.get("/api/v1/models/usage").get_json()
    assert row == row | {
        "project": None,
        "kind": "test_sum",
        "provider": "openai_compatible",
        "model": "gpt-x",
        "calls": 1,
        "failed": 0,
        "lost": 0,
        "unpriced": 0,
        "input_tokens": 50,
        "output_tokens": 10,
        "cached_tokens": 20,
        "money": 0.00016,
    }
    state = house.get("/api/v1/models").get_json()
    assert (state["state"], state["currency"], state["priced"]) == ("on", "EUR", True)
    assert state["today"]["calls"] == 1
    assert house.rows("SELECT prompt FROM model_calls") == [{"prompt": "consolidate.v1+repair.v1"}]


def test_the_same_reservation_sent_again_with_its_key_or_its_id_reserves_once(house: House):
    pool, named = held(house)
    asked, key = call(), {"Idempotency-Key": str(uuid.uuid4())}

    answers = [pool.post("model/reserve", named | asked, **headers) for headers in (key, key, {})]

    assert [answer.get_json()["granted"] for answer in answers] == [True, True, True]
    assert house.rows("SELECT count(*) AS n FROM model_calls") == [{"n": 1}]


def test_a_used_up_budget_is_told_with_its_end_and_is_no_failure(house: House):
    allow(house, Budget(day=Cap(tokens=150)))
    pool, named = held(house)
    first = call()
    pool.post("model/reserve", named | first)
    pool.post("model/settle", named | used(first["call"]))

    answer = pool.post("model/reserve", named | call()).get_json()

    assert (answer["granted"], answer["reason"]) == (False, "tokens_per_day")
    assert answer["until"].endswith("T00:00:00Z")
    state = house.get("/api/v1/models").get_json()
    assert (state["state"], state["until"]) == ("budget_reached", answer["until"])
    assert state["refused_today"] == [{"kind": "test_sum", "reason": "tokens_per_day", "count": 1}]
    assert house.get("/api/v1/status").get_json()["models"]["state"] == "budget_reached"
    assert pool.post("release", named | {"reason": "budget"}).get_json()["state"] == "pending"
    assert house.get("/api/v1/models").get_json()["jobs_waiting"] == 1
    health = house.post("/api/v1/tools/memory_status", {}).get_json()["health"]
    assert "status" not in health["models"]


def test_an_unpriced_model_under_a_cap_of_money_is_refused_with_what_to_write(house: House):
    allow(house, Budget(day=Cap(money=1)))
    pool, named = held(house)

    answer = pool.post("model/reserve", named | call()).get_json()

    assert (answer["reason"], answer["until"]) == ("unpriced", None)
    assert 'price."openai_compatible:gpt-x"' in answer["message"]
    assert house.get("/api/v1/models").get_json()["priced"] is False


def test_a_cancelled_job_hears_of_it_at_its_next_call(house: House):
    pool, named = held(house)
    house.post(f"/api/v1/jobs/{named['job']}/cancel", {})

    assert pool.post("model/reserve", named | call()).get_json() == {"granted": False, "cancel": True}


def test_another_s_lease_reserves_nothing(house: House):
    _, named = held(house)
    stranger = Pool(house)

    answer = stranger.post("model/reserve", named | call() | {"lease": stranger.lease})

    assert (answer.status_code, answer.get_json()["code"]) == (409, "stale_lease")
    assert house.rows("SELECT * FROM model_calls") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_tokens": -1},
        {"output_tokens_max": limits.MODEL_CALL_TOKENS_MAX + 1},
        {"input_tokens": 1.5},
        {"model": ""},
        {"model": "x" * (limits.MODEL_NAME_MAX_CHARS + 1)},
        {"provider": "a\nb"},
        {"prompt": "Ignore all that"},
        {"call": "7"},
        {"more": 1},
    ],
)
def test_a_reservation_that_makes_no_sense_is_refused(house: House, wrong: dict[str, Any]):
    pool, named = held(house)

    assert pool.post("model/reserve", named | call(**wrong)).status_code == 400


def test_only_a_pool_token_reserves_and_it_may_do_nothing_else(house: House):
    pool, named = held(house)

    assert house.post("/pool/model/reserve", named | call()).status_code == 403
    for method, path in (("GET", ""), ("GET", "/usage"), ("POST", "/pause"), ("POST", "/test")):
        answer = house.client().open(f"/api/v1/models{path}", method=method, headers=pool.headers)
        assert answer.status_code == 403


def test_the_lease_is_in_no_command(house: House):
    pool, named = held(house)
    seen = appended(house)
    asked = call()
    pool.post("model/reserve", named | asked)
    pool.post("model/settle", named | used(asked["call"]))

    assert [envelope.name for envelope in seen] == ["reserve_model_call", "settle_model_call"]
    assert all(pool.lease.encode() not in envelope.body for envelope in seen)


def test_pausing_and_resuming(house: House):
    pool, named = held(house)
    assert house.post("/api/v1/models/pause", {"reason": "holidays"}).get_json() == {
        "paused": True,
        "changed": True,
    }
    state = house.get("/api/v1/models").get_json()
    assert (state["state"], state["message"], state["until"]) == ("paused", "holidays", None)
    assert pool.post("model/reserve", named | call()).get_json()["reason"] == "paused"
    assert house.post("/api/v1/models/resume", b"").get_json()["paused"] is False

    assert house.get("/api/v1/models").get_json()["state"] == "on"
    assert house.client().post("/api/v1/models/pause").status_code == 401
    read = {"Authorization": f"Bearer {house.add_token('read')}"}
    assert house.client().post("/api/v1/models/pause", headers=read).status_code == 403
    assert house.post("/api/v1/models/pause", {"because": "x"}).status_code == 400


def test_a_check_is_a_job_of_its_own_each_time(house: House):
    first, second = (house.post("/api/v1/models/test", b"").get_json()["job"] for _ in range(2))

    assert first != second
    job = house.get(f"/api/v1/jobs/{first}").get_json()
    assert (job["kind"], job["queue"], job["state"]) == ("model_check", "distillation", "pending")


def test_without_a_provider_models_are_off_and_there_is_nothing_to_check(plain: House):
    assert plain.get("/api/v1/models").get_json()["state"] == "off"
    answer = plain.post("/api/v1/models/test", b"")

    assert answer.status_code == 400
    assert "no provider is configured" in answer.get_json()["error"]
    assert plain.rows("SELECT * FROM jobs") == []


def test_usage_is_of_the_days_and_the_project_that_are_asked_for(house: House):
    raw = house.connection.raw
    for day in ("2020-01-01", "9999-12-31"):
        raw.execute(
            "INSERT INTO model_usage VALUES (?, x'', 'k', 'p', 'm', 1, 0, 0, 0, 10, 5, 0, 1500000)", (day,)
        )

    assert [row["day"] for row in house.get("/api/v1/models/usage?days=30").get_json()] == ["9999-12-31"]
    assert house.get("/api/v1/models/usage?days=0").status_code == 400
    assert house.get("/api/v1/models/usage?days=401").status_code == 400
    assert house.get("/api/v1/models/usage?project=nowhere").status_code == 404


def test_metrics_tell_tokens_money_refusals_and_the_pause(house: House):
    allow(house, Budget(day=Cap(tokens=100), prices={"openai_compatible:*": PRICE}))
    pool, named = held(house)
    asked = call()
    pool.post("model/reserve", named | asked)
    pool.post("model/settle", named | used(asked["call"]))
    pool.post("model/reserve", named | call())
    house.post("/api/v1/models/pause", b"")

    page = house.get("/metrics").text

    of = 'kind="test_sum",model="gpt-x",provider="openai_compatible"'
    assert f'memoryd_model_tokens_total{{direction="input",{of}}} 50.0' in page
    assert f'memoryd_model_tokens_total{{direction="cached",{of}}} 20.0' in page
    assert f'memoryd_model_money_total{{currency="USD",{of}}} 0.00016' in page
    assert f"memoryd_model_calls_total{{{of}}} 1.0" in page
    assert 'memoryd_model_refused_total{kind="test_sum",reason="tokens_per_day"} 1.0' in page
    assert "memoryd_models_paused 1.0" in page


def test_every_metric_of_models_is_explained(house: House):
    from tests.docs.test_reference_pages import ROOT

    told = set(re.findall(r"^# TYPE (memoryd_models?_\w+) ", house.get("/metrics").text, re.M))
    explained = (ROOT / "docs" / "operations.md").read_text()

    assert len(told) == 7
    assert [name for name in told if f"`{name}" not in explained] == []


def test_a_wrong_configuration_is_told_at_the_start(house_factory: Callable[..., House], tmp_path: Any):
    (tmp_path / "config.toml").write_text("[models]\nprovder = 'openai'\n")

    with pytest.raises(Invalid, match="provder"):
        house_factory(config_file=str(tmp_path / "config.toml"))


@pytest.mark.parametrize("name", ["provider", "model", "prompt"])
def test_a_name_that_ends_in_a_line_s_end_is_refused(house: House, name: str) -> None:
    pool, held_by = held(house)
    body = held_by | call()

    answer = pool.post("model/reserve", body | {name: f"{body[name]}\n"})

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")


def test_an_outcome_that_ends_in_a_line_s_end_is_refused(house: House) -> None:
    pool, held_by = held(house)
    asked = call()
    assert pool.post("model/reserve", held_by | asked).get_json()["granted"] is True

    answer = pool.post("model/settle", held_by | used(asked["call"], outcome="ok\n"))

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")


def test_a_call_s_id_with_another_model_is_a_conflict(house: House) -> None:
    pool, held_by = held(house)
    asked = call()
    assert pool.post("model/reserve", held_by | asked).status_code == 200

    again = pool.post("model/reserve", held_by | asked)
    other = pool.post("model/reserve", held_by | asked | {"model": "gpt-y"})

    assert (again.status_code, again.get_json()["granted"]) == (200, True)
    assert (other.status_code, other.get_json()["code"]) == (409, "conflict")


def test_a_key_s_file_that_is_open_to_others_is_told_by_the_state(
    house_factory: Callable[..., House], tmp_path: Any
) -> None:
    key = tmp_path / "key"
    key.write_text(os.urandom(12).hex())
    key.chmod(0o644)
    (tmp_path / "config.toml").write_text(f'{CONFIGURED}api_key_file = "{key}"\n')
    house = house_factory(config_file=str(tmp_path / "config.toml"))

    (warning,) = house.get("/api/v1/models").get_json()["warnings"]
    assert f"chmod 600 {key}" in warning
    key.chmod(0o600)
    assert "warnings" not in house.get("/api/v1/models").get_json()


def test_a_budget_that_is_configured_and_not_in_force_is_told(
    house_factory: Callable[..., House], tmp_path: Any
):
    file = tmp_path / "config.toml"
    file.write_text(f"{CONFIGURED}[budget]\ntokens_per_day = 10\n")
    house = house_factory(config_file=str(file))

    def warnings() -> list[str]:
        return house.get("/api/v1/models").get_json().get("warnings", [])

    assert warnings() == []
    allow(house, Budget(day=Cap(tokens=10)))
    assert warnings() == []

    file.write_text(f"{CONFIGURED}[budget]\ntokens_per_day = 20\n")
    (warning,) = warnings()
    assert "otherwise than the budget in force" in warning
    assert house.get("/api/v1/status").get_json()["models"]["warnings"] == [warning]
    file.write_text(f"{CONFIGURED}[budget]\ntokens_per_day = many\n")
    (warning,) = warnings()
    assert "the budget in force is that of before" in warning
    file.write_text(f"{CONFIGURED}[budget]\ntokens_per_day = 20\n")
    allow(house, Budget(day=Cap(tokens=20)))
    assert warnings() == []
