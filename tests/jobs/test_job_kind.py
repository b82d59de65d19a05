"""Kinds of jobs: how they are known, what they read, and when the configuration has them run."""

from __future__ import annotations

from pathlib import Path

import pytest

import memory_core.jobs as jobs_package
from memory_core import bootstrap, job_kind
from memory_core.config import Settings
from memory_core.domain.schedule import Every
from memory_core.errors import Invalid, NotFound
from memory_core.job_kind import digest_of, schedules
from tests.factories import database
from tests.jobs.working import Sum, kind, registered


@pytest.fixture(autouse=True)
def _loaded() -> None:
    bootstrap.load_jobs()


def configured(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "config.toml").write_text(text)
    return Settings(data_dir=tmp_path)


def test_every_file_registers_one_kind_of_its_own_name():
    files = {path.stem for path in Path(jobs_package.__path__[0]).glob("[!_]*.py")}

    # Kinds that only tests have may be registered by now, too.
    of_files = {
        name for name, kind in job_kind.kinds if kind.apply.__module__.startswith("memory_core.jobs.")
    }

    assert {(name, job_kind.kinds.get(name).apply.__module__) for name in files} == {
        (name, f"memory_core.jobs.{name}") for name in of_files
    }


def test_every_kind_has_its_own_schedule_unless_told_otherwise(tmp_path: Path):
    found = schedules(Settings(data_dir=tmp_path), {})

    assert found["idle_sessions"] == Every(text="every 15m", seconds=900)


def test_a_schedule_comes_from_the_file_and_over_it_from_the_environment(tmp_path: Path):
    settings = configured(tmp_path, '[schedules]\nidle_sessions = "every 1h"\n')

    assert schedules(settings, {})["idle_sessions"] == Every(text="every 1h", seconds=3_600)
    told = {"MEMORYD_SCHEDULES__IDLE_SESSIONS": "off"}
    assert schedules(settings, told)["idle_sessions"] is None


def test_a_kind_without_a_schedule_of_its_own_can_be_given_one(tmp_path: Path):
    with registered(kind()):
        assert "test_sum" not in schedules(Settings(data_dir=tmp_path), {})
        settings = configured(tmp_path, '[schedules]\ntest_sum = "every 5m"\n')

        assert schedules(settings, {})["test_sum"] is not None


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ('idle_session = "every 1h"', "idle_session", "idle_sessions"),
        ('compaction = "every 1h"', "compaction", "memoryd sessions compact"),
        ('idle_sessions = "hourly"', "idle_sessions", "every 15m"),
        ("idle_sessions = 15", "idle_sessions", "quotes"),
        ('idle_sessions = "cron 99 * * * *"', "idle_sessions", "cron"),
        ('timezone = "Mars"', "timezone", "UTC"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, text: str, key: str, what: str):
    settings = configured(tmp_path, f"[schedules]\n{text}\n")

    with pytest.raises(Invalid) as refused:
        schedules(settings, {})

    assert f"[schedules] {key}:" in str(refused.value)
    assert what in str(refused.value)


def test_a_kind_of_an_unknown_queue_cannot_be():
    with pytest.raises(ValueError, match="nonsense"):
        kind(queue="nonsense")


def test_what_a_kind_reads_is_of_its_type():
    one = kind()

    assert one.read_input(b'{"numbers":[1]}') == Sum(numbers=(1,))
    assert one.read_output({"numbers": [1]}) == Sum(numbers=(1,))
    for wrong in (b"{", b'{"numbers":"x"}', b"[]"):
        with pytest.raises(Invalid, match="test_sum"):
            one.read_output(wrong)


def test_a_job_of_no_kind_or_with_an_endless_subject_is_refused(tmp_path: Path):
    store = database(tmp_path)
    with registered(kind()), store.transaction() as tx:
        with pytest.raises(NotFound):
            job_kind.enqueue(tx, "nonsense", source_digest=digest_of("a"))
        with pytest.raises(Invalid):
            job_kind.enqueue(tx, "test_sum", source_digest=digest_of("a"), subject="x" * 513)
    store.close()


def test_parts_of_a_digest_do_not_run_into_one_another():
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert len(digest_of(b"a", "b")) == 32
