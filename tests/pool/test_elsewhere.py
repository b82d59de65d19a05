"""`memoryd worker` as a stranger: another user, another network, a user of the broker that may only ring."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from memory_core import bootstrap
from memory_core.config import install_id
from memory_core.domain.token import mint
from tests.mutants import job_kinds
from tests.pool import apart
from tests.pool.conftest import LOADER, ROOT
from tests.pool.whole_stack import QUICK, Stack
from tests.ports import free_ports
from tests.stack.conftest import make_tree, wait_until
from web.parts import build
from workers import broker

pytestmark = pytest.mark.stack

STRANGER = 54_321


def rules_of_the_docs(install: str, queues: tuple[str, ...]) -> list[str]:
    """The rules for a broker's user as `docs/operations.md` gives them, for some queues."""
    page = (ROOT / "docs" / "operations.md").read_text()
    block = re.search(r"```\n(user WORKER .+?)\n```", page, re.S)
    assert block is not None
    words: list[str] = []
    for word in block[1].replace("INSTALL", install).split():
        words += [word.replace("QUEUE", queue) for queue in queues] if "QUEUE" in word else [word]
    return words


class Outside:
    """A stack over a broker on a port, with a user on it for workers and a token of their own."""

    def __init__(self, stack: Stack, port: int, password: str) -> None:
        self.stack = stack
        self.install = install_id(stack.settings)
        self.port = port
        self.password = password
        self.admin = redis.Redis(port=port, decode_responses=True)

    def let_in(self, queues: tuple[str, ...]) -> None:
        rules = rules_of_the_docs(self.install, queues)
        assert rules[:2] == ["user", "WORKER"]
        shown = [word.replace("PASSWORD", self.password) for word in rules[2:]]
        self.admin.execute_command("ACL", "SETUSER", "worker", "reset", *shown)
        self.admin.execute_command("ACL", "LOG", "RESET")

    @property
    def broker_url(self) -> str:
        return f"redis://worker:{self.password}@127.0.0.1:{self.port}/0"


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    home = tmp_path_factory.mktemp("outside")
    (port,) = free_ports(1)
    bootstrap.load_commands()
    job_kinds.register()
    process = subprocess.Popen(
        [
            *(str(broker.binary()), "--dir", str(home), "--port", str(port), "--bind", "127.0.0.1"),
            *("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: broker.answers(broker.Endpoint(port=port)))
        with make_tree(home) as start:
            tree = start(
                "workers.supervisor",
                environ={
                    "PYTHONPATH": f"{LOADER}:{ROOT}",
                    "MEMORYD_TEST_MUTANT": "job_kinds,quick_jobs",
                    "MEMORYD_BROKER_URL": f"redis://127.0.0.1:{port}/0",
                    "POOL_QUICK": QUICK,
                },
                broker_url=f"redis://127.0.0.1:{port}/0",
            )
            tree.wait_ready()
            # Its own worker does nothing meanwhile: who does the jobs is the stranger.
            os.kill(tree.pids["pool"], signal.SIGSTOP)
            parts = build(tree.settings)
            yield Outside(Stack(tree=tree, parts=parts, home=home), port, secrets.token_urlsafe(16))
            with suppress(ProcessLookupError):
                os.kill(tree.pids["pool"], signal.SIGCONT)
            parts.line.close()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory that every user may enter; pytest's own are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="elsewhere-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def worker_words(
    outside: Outside, home: Path, url: str, broker_url: str, queues: str
) -> tuple[list[str], dict[str, str]]:
    """The command line of `memoryd worker` and its whole environment."""
    token = home / "pool.token"
    if not token.exists():
        token.write_text(new_token(outside) + "\n")
    words = [
        *(sys.executable, "-m", "client", "worker", "--json", "--queues", queues, "--url", url),
        *("--token-file", str(token), "--state-dir", str(home / "state"), "--name", "stranger"),
    ]
    environ = {
        "PATH": os.environ["PATH"],
        "MEMORYD_MODELS__EMBED_PROVIDER": "none",
        "PYTHONPATH": f"{LOADER}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "MEMORYD_BROKER_URL": broker_url,
        "MEMORYD_TEST_MUTANT": "job_kinds,quick_pool,quick_jobs",
        "POOL_QUICK": QUICK,
    }
    return words, environ


def new_token(outside: Outside) -> str:
    from memory_core.commands.tokens import CreateToken
    from web.auth import Caller
    from web.identity import CommandId

    token = mint()
    outside.stack.parts.gate.submit(
        CreateToken(
            public_id=token.public_id,
            digest=token.digest,
            scope="pool",
            name=token.public_id,
            principal="pool",
        ),
        CommandId(value=os.urandom(16), is_foreign=False),
        Caller(principal="owner", scope="admin"),
        seconds=10.0,
    )
    return token.text


def ended(process: subprocess.Popen[str]) -> str:
    process.terminate()
    try:
        return process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def said_ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return json.loads(line)


def test_a_worker_of_one_queue_needs_no_more_on_the_broker_than_the_docs_say(
    outside: Outside, tmp_path: Path
):
    outside.let_in(("lint",))
    words, environ = worker_words(outside, tmp_path, outside.stack.settings.url, outside.broker_url, "lint")
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert said_ready(process)["processes"] == ["pool"]
        subjects = outside.stack.enqueue(count=5)
        outside.stack.wait_completed(subjects)
        assert {outside.stack.column(subject, "worker") for subject in subjects} == {"stranger"}
    finally:
        said = ended(process)

    assert process.returncode == 0, said
    assert "jobs of lint that read it are left" in said
    assert outside.admin.execute_command("ACL", "LOG") == []
    as_worker = redis.Redis.from_url(outside.broker_url)
    for words in (
        ("XRANGE", f"m:{outside.install}:commands", "-", "+"),
        ("XADD", f"m:{outside.install}:commands", "*", "a", "b"),
        ("SUBSCRIBE", f"m:{outside.install}:replies"),
        ("LLEN", f"m.{outside.install}.forget"),
        ("BRPOP", f"m.{outside.install}.writer", "1"),
        ("GET", f"m:{outside.install}:owner"),
        ("KEYS", "*"),
        ("CONFIG", "GET", "*"),
        ("FLUSHALL",),
    ):
        with pytest.raises(redis.exceptions.NoPermissionError):
            as_worker.execute_command(*words)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="only root may become somebody else"
)
def test_a_worker_of_another_user_in_another_network_works_and_can_read_nothing_else(
    outside: Outside, scratch: Path
):
    """It reaches two ports: the gate's and the broker's."""
    home = scratch / "home"
    home.mkdir()
    settings = outside.stack.settings
    outside.let_in(("lint", "forget"))
    passages = []
    for name, port in (("gate", settings.port), ("broker", outside.port)):
        path = scratch / f"{name}.sock"
        apart.to_port(str(path), port)
        path.chmod(0o600)
        passages.append(f"{port}={path}")
    words, environ = worker_words(outside, home, settings.url, outside.broker_url, "lint,forget")
    for path in (home, home / "pool.token"):
        os.chown(path, STRANGER, STRANGER)
    (home / "pool.token").chmod(0o600)
    data, notes = settings.data_dir, home / "notes"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    command = ["unshare", "--net", "--mount", sys.executable, str(ROOT / "tests/pool/apart.py")]
    process = subprocess.Popen(
        [*command, ",".join(passages), str(STRANGER), *words],
        env=environ,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said_ready(process)
        where = f"{data};{outside.stack.settings.effective_probe_port}"
        (probed,) = outside.stack.enqueue("look around", where, str(notes))
        (data_job,) = outside.stack.enqueue(kind="probe_data")
        more = [*outside.stack.enqueue(count=3), *outside.stack.enqueue(kind="probe_forget")]
        outside.stack.wait_completed([probed, *more])
        assert {outside.stack.column(subject, "worker") for subject in more} == {"stranger"}
        assert outside.stack.column(data_job, "state") == "pending"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)

    found = notes.read_text()
    assert f"uid {STRANGER}" in found
    assert "data PermissionError" in found
    assert "probe port ConnectionRefusedError" in found
    assert "interfaces ['lo']" in found
    assert outside.admin.execute_command("ACL", "LOG") == []
    # What needs the data is done by the server's own worker.
    os.kill(outside.stack.pool, signal.SIGCONT)
    outside.stack.wait_completed([data_job])
    os.kill(outside.stack.pool, signal.SIGSTOP)


def test_a_wrong_token_ends_the_worker_with_a_reason(outside: Outside, tmp_path: Path):
    (tmp_path / "pool.token").write_text(mint().text + "\n")
    words, environ = worker_words(outside, tmp_path, outside.stack.settings.url, outside.broker_url, "lint")

    run = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)

    assert run.returncode == 78
    assert (
        f"{outside.stack.settings.url} does not accept the token in {tmp_path / 'pool.token'}" in run.stderr
    )
    assert "memoryd tokens create --scope pool" in run.stderr
    assert "signal 15" not in run.stderr


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--queues", "lunch"], 2, "there is no queue 'lunch'"),
        (["--slots", "99"], 2, "99"),
        (["--url", ""], 2, "--url"),
        (["--token-file", "/nowhere/token"], 78, "/nowhere/token"),
        (["--broker", "gopher://127.0.0.1:1"], 78, "--broker"),
        (["--broker", "127.0.0.1:6379"], 78, "redis://"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, more: list[str], code: int, said: str):
    words = [
        "--url",
        "http://127.0.0.1:1",
        "--broker",
        "redis://127.0.0.1:1",
        "--token-file",
        __file__,
        *more,
    ]
    run = subprocess.run(
        [sys.executable, "-m", "client", "worker", "--state-dir", str(tmp_path / "s"), *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == code, run.stderr
    assert said in run.stderr


def test_a_provider_that_nobody_knows_ends_the_worker_before_it_starts(tmp_path: Path):
    words = ["--url", "http://127.0.0.1:1", "--broker", "redis://127.0.0.1:1", "--token-file", __file__]
    run = subprocess.run(
        [sys.executable, "-m", "client", "worker", "--state-dir", str(tmp_path / "s"), *words],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "MEMORYD_MODELS__PROVIDER": "nobody",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 78, run.stderr
    assert "[models] provider = 'nobody'" in run.stderr
