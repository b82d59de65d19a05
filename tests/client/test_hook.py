"""The shim as a client starts it: `python -I -S`, an empty environment, a path full of traps; always exit code 0."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.launcher import script
from client.spool import Entry, Spool
from memory_core import limits
from memory_core.domain.recalled import fence
from tests.client.gate_server import Gate, query_of, says
from tests.payloads import HERE, malformed, names, sample, stripe_key

ROOT = Path(__file__).parents[2]
#: What each client is told when there is nothing to say; some take anything but JSON for a fault.
QUIET = {"claude-code": b"", "codex": b"", "gemini-cli": b"{}\n", "cursor": b"{}\n"}


class Machine:
    """One developer's home with a launcher in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / ".local/state/memoryd"
        self.spool = Spool(str(self.state / "spool"))
        # The code too lies where a careless script would split the path.
        code = home / "it's & code; here"
        code.mkdir()
        for package in ("client", "memory_core"):
            (code / package).symlink_to(ROOT / package)
        self.config = home / ".config/memoryd/client.json"
        self.launcher = home / "my bin/memoryd-hook"
        self.launcher.parent.mkdir()
        self.launcher.write_text(script(config_file=self.config, python=Path(sys.executable), code=code))
        self.launcher.chmod(0o755)

    def connect(self, url: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        values = {
            "url": url,
            "token": "of-the-test",
            "redaction_key": "ab" * 32,
            "state_dir": str(self.state),
        }
        self.config.write_text(json.dumps(values))

    def hook(
        self, client: str, event: str, payload: object, *more: str
    ) -> subprocess.CompletedProcess[bytes]:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = subprocess.run(
            [str(self.launcher), client, event, *more],
            input=data,
            capture_output=True,
            env={"HOME": str(self.home)},
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    def entries(self) -> list[Entry]:
        return [entry for name in self.spool.names() if (entry := self.spool.read(name)) is not None]

    def wait_until_delivered(self) -> None:
        deadline = time.monotonic() + 20
        while self.spool.names():
            assert time.monotonic() < deadline, (self.state / "drain.log").read_text()
            time.sleep(0.01)

    def stop_drain(self) -> None:
        """The lock of a drain is held by the one process that has it open; end that."""
        locks = set(self.state.glob("drain-*.lock"))
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_drain = any(fd.readlink() in locks for fd in (process / "fd").iterdir())
            except OSError:
                continue
            if is_drain and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)


@pytest.fixture
def machine(home: Path) -> Iterator[Machine]:
    machine = Machine(home)
    machine.connect("http://127.0.0.1:9")
    yield machine
    machine.stop_drain()


@pytest.mark.parametrize(("client", "name"), [(c, n) for c in QUIET for n in names(c)])
def test_every_sample_is_spooled_without_a_word_to_the_client(
    client: str, name: str, home: Path, monkeypatch: pytest.MonkeyPatch
):
    """In this process, for speed; the tests below start the real thing."""
    from io import BytesIO, TextIOWrapper

    from client import detached, hook

    payload = sample(client, name)
    out = TextIOWrapper(BytesIO())
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(payload).encode())))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(detached, "start", lambda _settings: False)
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "MEMORYD_CLIENT_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMORYD_URL", "http://127.0.0.1:9")

    assert hook.main([client, payload["hook_event_name"]]) == 0
    spool = Spool(str(home / ".local/state/memoryd/spool"))
    (entry,) = (spool.read(name) for name in spool.names())
    assert entry is not None
    key = "session_id" if "session_id" in payload else "conversation_id"
    session = payload[key]
    assert entry.body[key] == session
    asked = query_of(entry.url)
    assert (asked["agent"], asked["event"]) == (client, payload["hook_event_name"])
    assert asked["session_id"] == session
    assert asked["cwd"] == "/home/mira/src/tidal-ledger"
    assert out.buffer.getvalue() == QUIET[client]


@pytest.mark.parametrize("path", sorted((HERE / "malformed").glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("client", ["claude-code", "codex", "another"])
def test_malformed_input_is_warned_of_and_never_fails_the_client(client: str, path: Path, machine: Machine):
    done = machine.hook(client, "Stop", path.read_bytes())

    assert done.stdout == (b"{}\n" if client == "another" else b"")
    assert machine.spool.names() or b"memoryd: this event was not kept" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["claude-code"]])
def test_missing_arguments_do_not_fail_either(arguments: list[str], machine: Machine):
    done = subprocess.run(
        [str(machine.launcher), *arguments], input=b"{}", capture_output=True, env={}, check=False
    )

    assert done.returncode == 0
    assert b"usage" in done.stderr


def test_an_installation_that_is_gone_does_not_fail_the_client(home: Path):
    launcher = home / "memoryd-hook"
    launcher.write_text(script(config_file=home / "c.json", python=home / "gone", code=home / "gone"))
    launcher.chmod(0o755)
    done = subprocess.run([str(launcher), "codex", "Stop"], input=b"{}", capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"")
    assert b"memoryd" in done.stderr


def test_a_state_directory_that_cannot_be_written_does_not_fail_the_client(machine: Machine):
    machine.state.parent.mkdir(parents=True)
    machine.state.write_text("in the way")
    done = machine.hook("claude-code", "Stop", sample("claude-code", "Stop"))

    assert done.stdout == b""
    assert b"not kept" in done.stderr


def test_no_secret_and_nothing_private_reaches_the_spool(machine: Machine):
    key = stripe_key()
    private = "do not store"
    machine.hook("claude-code", "PostToolUse", sample("claude-code", "PostToolUse.secret", secret=key))
    machine.hook(
        "claude-code",
        "UserPromptSubmit",
        {"session_id": "s", "cwd": f"/tmp/{key}", "prompt": f"use {key} <private>{private}"},
    )

    kept = b"".join(
        path.read_bytes()
        for path in machine.home.rglob("*")
        if path.is_file() and not path.is_relative_to(machine.home / "it's & code; here")
    )
    assert len(machine.entries()) == 2
    assert key.encode() not in kept
    assert private.encode() not in kept
    assert b"[REDACTED:" in kept


def test_without_redaction_nothing_is_kept(machine: Machine):
    code = machine.home / "it's & code; here"
    (code / "memory_core").unlink()
    (code / "memory_core").mkdir()
    for part in (ROOT / "memory_core").iterdir():
        if part.name != "redaction":
            (code / "memory_core" / part.name).symlink_to(part)
    done = machine.hook("claude-code", "Stop", sample("claude-code", "Stop"))

    assert b"not kept" in done.stderr
    assert machine.spool.names() == []


def test_the_spooled_event_is_delivered_in_the_background(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    machine.hook("codex", "Stop", sample("codex", "Stop"), "--source", "plugin")
    (item,) = gate.wait_for(1)
    machine.wait_until_delivered()

    assert item["body"]["last_assistant_message"].endswith("✅")
    assert query_of(item["url"])["source"] == "plugin"
    assert gate.tokens == ["Bearer of-the-test"]


def test_the_host_does_not_wait_for_the_delivery(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    with gate.arrived:  # the gate cannot answer before this is released
        machine.hook("codex", "Stop", sample("codex", "Stop"))
        assert len(machine.spool.names()) == 1
    machine.wait_until_delivered()


def test_hooks_of_one_session_are_numbered_in_order_also_at_the_same_time(machine: Machine):
    payload = json.dumps(sample("claude-code", "PostToolUse")).encode()
    running = [
        subprocess.Popen(
            [str(machine.launcher), "claude-code", "PostToolUse"],
            stdin=subprocess.PIPE,
            env={"HOME": str(machine.home)},
        )
        for _ in range(6)
    ]
    for process in running:
        process.communicate(payload, timeout=60)
    numbers = [int(query_of(entry.url)["seq"]) for entry in machine.entries()]

    assert len(set(numbers)) == 6
    assert len({entry.key for entry in machine.entries()}) == 6


def test_a_retry_sends_the_key_that_the_event_was_given_at_first(machine: Machine, gate: Gate):
    machine.hook("codex", "Stop", sample("codex", "Stop"))
    (entry,) = machine.entries()
    machine.stop_drain()
    machine.connect(gate.url)
    gate.behaviour = says("pending")
    machine.hook("codex", "SessionStart", sample("codex", "SessionStart"))
    gate.wait_for(2)

    assert gate.items[0]["url"] == entry.url


def test_a_session_start_delivers_first_and_then_shows_what_it_is_given(machine: Machine, gate: Gate):
    machine.hook("codex", "Stop", sample("codex", "Stop"))
    machine.stop_drain()
    machine.connect(gate.url)
    gate.handoff = fence("Fees are half done.", "handoff from codex")
    done = machine.hook("claude-code", "SessionStart", sample("claude-code", "SessionStart"))

    shown = json.loads(done.stdout)["hookSpecificOutput"]
    assert shown == {"hookEventName": "SessionStart", "additionalContext": gate.handoff}
    assert [item["body"]["hook_event_name"] for item in gate.items] == ["Stop", "SessionStart"]
    assert gate.handoffs_asked[0]["agent"] == "claude-code"
    assert gate.handoffs_asked[0]["session_id"] == sample("claude-code", "SessionStart")["session_id"]


def test_what_is_shown_keeps_within_what_the_client_takes(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    gate.handoff = fence("x" * 50_000, "handoff")
    done = machine.hook("codex", "SessionStart", sample("codex", "SessionStart"))
    text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]

    assert len(text) <= limits.INJECTED_CONTEXT_MAX_CHARS
    assert text.rstrip().endswith("end -->")


def test_a_handoff_that_comes_later_goes_out_with_the_first_prompt_and_only_with_that(
    machine: Machine, gate: Gate
):
    machine.connect(gate.url)
    start = machine.hook("claude-code", "SessionStart", sample("claude-code", "SessionStart"))
    gate.handoff = "Fees are half done."
    first = machine.hook("claude-code", "UserPromptSubmit", sample("claude-code", "UserPromptSubmit"))
    second = machine.hook("claude-code", "UserPromptSubmit", sample("claude-code", "UserPromptSubmit"))

    assert start.stdout == second.stdout == b""
    assert json.loads(first.stdout)["hookSpecificOutput"] == {
        "hookEventName": "UserPromptSubmit",
        "additionalContext": "Fees are half done.",
    }


def test_a_session_that_was_given_its_context_does_not_ask_again(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    gate.handoff = "Fees are half done."
    machine.hook("claude-code", "SessionStart", sample("claude-code", "SessionStart"))
    prompt = machine.hook("claude-code", "UserPromptSubmit", sample("claude-code", "UserPromptSubmit"))

    assert prompt.stdout == b""
    assert len(gate.handoffs_asked) == 1


def test_a_server_that_hangs_holds_a_start_up_no_longer_than_allowed(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    with gate.arrived:
        started = time.monotonic()
        done = machine.hook("codex", "SessionStart", sample("codex", "SessionStart"))

    assert done.stdout == b""
    assert time.monotonic() - started < limits.CONTEXT_FETCH_SECONDS + 60
    assert len(machine.spool.names()) <= 1


def test_a_client_that_has_stopped_listening_is_no_error(machine: Machine, gate: Gate):
    machine.connect(gate.url)
    gate.handoff = "x" * 9_000
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [str(machine.launcher), "codex", "SessionStart"],
        stdin=subprocess.PIPE,
        stdout=writer,
        stderr=subprocess.PIPE,
        env={"HOME": str(machine.home)},
    )
    os.close(writer)
    _, errors = process.communicate(json.dumps(sample("codex", "SessionStart")).encode(), timeout=60)

    assert process.returncode == 0
    assert b"Traceback" not in errors


def test_the_shim_loads_nothing_that_is_slow():
    """Each of these costs more than all that the shim needs."""
    code = "import sys; sys.path.append(sys.argv[1]); import client.hook, client.detached, memory_core.redaction.client; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True, check=True
    )

    assert not {
        "click",
        "dataclasses",
        "pathlib",
        "uuid",
        "http.client",
        "ssl",
        "logging",
        "subprocess",
        "inspect",
    } & set(done.stdout.split())


def test_one_drain_at_a_time_outlives_its_hook(machine: Machine):
    machine.hook("codex", "Stop", sample("codex", "Stop"))
    machine.hook("codex", "Stop", sample("codex", "Stop"))

    (path,) = machine.state.glob("drain-*.lock")
    with path.open("r+") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_byte_order_mark_is_no_obstacle(machine: Machine):
    machine.hook("claude-code", "Stop", malformed("bom"))

    assert machine.entries()[0].body["cwd"] == "C:\\src\\app"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_host_that_closes_a_stream_costs_no_more_than_the_event(machine: Machine, closed: str):
    command = f'exec "$0" claude-code Stop {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, str(machine.launcher)],
        input=json.dumps(sample("claude-code", "Stop")).encode(),
        capture_output=True,
        env={"HOME": str(machine.home)},
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"")
    assert len(machine.entries()) == int("<" not in closed)


def test_a_host_that_never_closes_its_end_is_not_waited_for(machine: Machine):
    with subprocess.Popen(
        [str(machine.launcher), "claude-code", "Stop"],
        stdin=subprocess.PIPE,
        env={"HOME": str(machine.home)},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(sample("claude-code", "Stop")).encode())
        process.stdin.flush()
        assert process.wait(limits.HOOK_STDIN_SECONDS + 10) == 0

    assert len(machine.entries()) == 1
