"""Several supervisors share one data directory, each with some rows of the table, as in containers."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from memory_core import config
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.errors import Invalid, NotAlone, Unavailable
from tests.stack.conftest import BrokerStart, RunningTree, TreeStart
from workers import broker, data_dir, exit_codes
from workers.supervisor import run
from workers.supervisor.lock import TreeLock
from workers.supervisor.table import some_of, table

pytestmark = pytest.mark.stack

_TINY = "tests.stack.tiny_tree"


def _processes(tree: RunningTree) -> object:
    return tree.wait_ready()["processes"]


def test_rows_may_be_shared_out_and_each_supervisor_ends_its_own(start_tree: TreeStart) -> None:
    owner = start_tree(_TINY, "--only", "broker,writer")
    assert _processes(owner) == ["broker", "writer"]
    guest = start_tree(_TINY, "--only", "web", "--only", "beat")
    assert _processes(guest) == ["web", "beat"]

    guest.process.send_signal(signal.SIGTERM)

    assert guest.process.wait(60) == exit_codes.OK
    assert set(owner.pids_of("broker", "writer")) == {"broker", "writer"}
    assert owner.process.poll() is None
    log = guest.settings.log_dir / "supervisor-web-beat.log"
    ended = [
        r["child"] for r in map(json.loads, log.read_text().splitlines()) if r["action"] == "child_ended"
    ]
    assert ended == ["web", "beat"]


def test_a_row_that_runs_already_is_not_run_twice_and_the_first_one_goes_on(start_tree: TreeStart) -> None:
    first = start_tree(_TINY, "--only", "broker,writer")
    first.wait_ready()
    before = first.pids_of("broker", "writer")

    for rows in (("--only", "writer"), ()):
        second = start_tree(_TINY, *rows)
        _, complaint = second.process.communicate(timeout=60)
        assert second.process.returncode == exit_codes.NOT_ALONE
        assert f"process {first.process.pid}," in complaint

    assert first.pids_of("broker", "writer") == before


def test_who_holds_a_row_in_another_container_is_named_with_its_host(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    data_dir.prepare(settings)
    lock = settings.run_dir / "supervisor-writer.lock"
    held = _holding(
        lock, {"pid": 1, "host": "3f2a9c", "command": "python -m workers.supervisor --only writer"}
    )
    try:
        with pytest.raises(NotAlone, match=r"its writer\): process 1 on host 3f2a9c, started as: python"):
            TreeLock(settings.run_dir, ["beat", "writer"])
        # What it had taken before is free again.
        TreeLock(settings.run_dir, ["beat"]).release()
    finally:
        held.close()


def _holding(lock: Path, record: dict[str, object]) -> IO[str]:
    file = lock.open("w")
    file.write(json.dumps(record))
    file.flush()
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def test_a_guest_of_a_directory_that_has_no_owner_yet_makes_nothing(start_tree: TreeStart) -> None:
    guest = start_tree(_TINY, "--only", "web", environ={"MEMORYD_BROKER_URL": "redis://127.0.0.1:1/0"})
    _, complaint = guest.process.communicate(timeout=60)

    assert guest.process.returncode == exit_codes.UNAVAILABLE
    assert "start that one first" in complaint
    assert not guest.settings.data_dir.exists()


def test_a_row_that_is_not_in_the_table_is_refused_with_those_that_are(start_tree: TreeStart) -> None:
    tree = start_tree("workers.supervisor", "--only", "wrietr")
    _, complaint = tree.process.communicate(timeout=60)

    assert tree.process.returncode == exit_codes.REFUSED
    assert "'wrietr'" in complaint
    assert "writer, web, pool, beat" in complaint


def test_what_runs_elsewhere_is_not_waited_for(settings: Settings, start_broker: BrokerStart) -> None:
    start_broker(settings)
    endpoint = broker.read_endpoint(settings)
    rows = some_of(table(settings, endpoint, SystemClock()), ("writer", "beat"))

    assert {row.name: row.depends_on for row in rows} == {"writer": (), "beat": ("writer",)}


def test_a_directory_for_own_files_holds_no_token_and_no_key(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "state")
    data_dir.prepare_scratch(settings)
    data_dir.prepare_scratch(settings)

    assert {entry.name for entry in settings.data_dir.iterdir()} == {".memoryd", "run", "logs", "tmp"}
    with pytest.raises(Unavailable, match="start that one first"):
        data_dir.require(settings)


def test_a_guest_looks_whose_directory_it_is(settings: Settings, tmp_path: Path) -> None:
    data_dir.require(settings)

    settings.incoming.rmdir()
    settings.incoming.symlink_to(tmp_path)

    with pytest.raises(Invalid, match="must be a directory"):
        data_dir.require(settings)


def test_what_others_need_to_know_lies_apart_where_a_group_may_read_no_worker_s_token(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", handout_dir=str(tmp_path / "handout"))
    data_dir.prepare(settings)

    def modes() -> dict[str, int]:
        return {
            str(path.relative_to(settings.handout)): path.stat().st_mode & 0o777
            for path in settings.handout.rglob("*")
        }

    first = modes()
    assert first == {
        "common": 0o750,
        "metrics": 0o750,
        "metrics/metrics.token": 0o640,
        "flower": 0o750,
        "flower/flower.auth": 0o640,
        "pool": 0o700,
        "pool/pool.token": 0o600,
    }
    assert settings.install_file == settings.handout / "common" / "install"
    # What an earlier version made, or somebody changed, is put right at the next start.
    settings.flower_auth_file.chmod(0o600)
    settings.local_pool_token_file.chmod(0o644)
    settings.metrics_token_file.parent.chmod(0o777)
    data_dir.prepare(settings)
    assert modes() == first


def test_who_has_no_home_is_told_how_to_reach_the_server_all_the_same(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless(_: object) -> Path:
        raise Invalid("this user has no home directory")

    monkeypatch.setattr(config, "default_data_dir", homeless)

    assert f"MEMORYD_TOKEN_FILE={settings.token_file}" in run._reach(settings)


@pytest.mark.parametrize(
    ("table_name", "line", "key", "rows"),
    [
        ("models", 'provider = "oracle"', "[models] provider", ()),
        ("models", 'api_key = "x"', "[models] api_key", ("--only", "web")),
        ("schedules", 'idle_sessions = "now and then"', "[schedules] idle_sessions", ()),
        ("budget", "tokens_per_dya = 5", "[budget] has no key tokens_per_dya", ("--only", "beat")),
        ("budget", "kind.juggling = {}", "kind.juggling", ()),
        ("memory", "no_such_key = 5", "[memory]", ()),
        ("retention", "no_such_key = 5", "[retention] has no key no_such_key", ()),
    ],
)
def test_a_setting_of_any_table_that_is_refused_starts_nothing(
    table_name: str, line: str, key: str, rows: tuple[str, ...], start_tree: TreeStart, tmp_path: Path
) -> None:
    file = tmp_path / "elsewhere.toml"
    file.write_text(f"[{table_name}]\n{line}\n")
    tree = start_tree("workers.supervisor", *rows, environ={"MEMORYD_CONFIG_FILE": str(file)}, first=True)
    _, complaint = tree.process.communicate(timeout=60)

    assert tree.process.returncode == exit_codes.REFUSED
    assert key in complaint
    assert complaint.startswith("memoryd: ")
    assert complaint.count("\n") == 1
    assert not tree.settings.data_dir.exists()


def test_a_variable_of_a_table_that_is_refused_starts_nothing(start_tree: TreeStart) -> None:
    tree = start_tree("client", "up", environ={"MEMORYD_MODELS__PROVIDR": "openai"}, first=True)
    _, complaint = tree.process.communicate(timeout=60)

    assert tree.process.returncode == exit_codes.REFUSED
    assert complaint.startswith("memoryd: [models] has no key providr")
    assert not tree.settings.data_dir.exists()


def test_a_gate_that_refuses_its_settings_says_so_in_a_line_and_ends_for_good(settings: Settings) -> None:
    environ = {**os.environ, **settings.environment(), "MEMORYD_BUDGET__CURRENCY": "much too long"}
    environ["MEMORYD_MODELS__PROVIDER"] = "oracle"
    argv = ["-m", "gunicorn", "--config", "python:web.gunicorn_conf", "web.app:create_app()"]
    gate = subprocess.run(
        [sys.executable, *argv], env=environ, capture_output=True, text=True, check=False, timeout=60
    )

    assert gate.returncode == exit_codes.REFUSED
    assert gate.stderr.startswith("memoryd: [models] provider")
    assert gate.stderr.count("\n") == 1
