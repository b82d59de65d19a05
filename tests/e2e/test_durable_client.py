"""Programs with a durable session on a whole stack, killed with `kill -9` at every step of a turn, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from client.durable import (
    AllowOnce,
    DurableAgentSession,
    ModelReply,
    ReplayRequired,
    SessionBusy,
    StaleLease,
    StaleReplay,
    UncertainToolInvocations,
    WorkspaceMismatch,
    recover,
)
from client.durable.agent import Around
from client.durable.history import SUMMARY_LABEL
from client.durable.redaction import redact_with
from memory_core.errors import Invalid
from tests.client.durable.program import agent_of, settings_of
from tests.e2e.durable_soak import CONDITIONS, ENVIRON
from tests.e2e.running import MUTANT, Running, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.kills]

#: Every step of a turn with one tool that must be allowed, `run` being the tool itself.
STEPS = ("begin", "plan", "ask", "decide", "start", "run", "complete", "checkpoint", "end")
MOMENTS = [(step, after) for step in STEPS for after in (False, True) if (step, after) != ("run", False)]
#: The call was started and has no result.
UNCERTAIN = {("start", True), ("run", True), ("complete", False)}
#: The tool had written by then.
WRITTEN = {
    ("run", True),
    *((step, after) for step in ("complete", "checkpoint", "end") for after in (False, True)),
}


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("durable"), environ=ENVIRON, conditions=CONDITIONS) as stack:
        yield stack


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_HOST_ID", ENVIRON["MEMORYD_HOST_ID"])


@dataclass
class Bench:
    """A directory with a session, and the file that its tool writes."""

    memoryd: Running
    home: Path
    session: str = ""

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)
        self.settings = settings_of(self.memoryd.url, self.memoryd.token)
        self.agent = agent_of(self.diary)
        begun = DurableAgentSession.start(self.agent, self.directory, settings=self.settings)
        self.session = begun.session_id
        begun.release()

    @property
    def directory(self) -> Path:
        return self.home / "work"

    @property
    def diary(self) -> Path:
        return self.home / "diary"

    def lines(self) -> list[str]:
        return self.diary.read_text().splitlines() if self.diary.exists() else []

    def program(self, *prompts: str, **orders: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.client.durable.program"],
            env={
                **{name: self.memoryd.environ[name] for name in ("PATH", "PYTHONPATH", MUTANT)},
                "HOME": str(self.home),
                "PYTHONDONTWRITEBYTECODE": "1",
                "MEMORYD_HOST_ID": ENVIRON["MEMORYD_HOST_ID"],
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        given = {
            "url": self.memoryd.url,
            "token": self.memoryd.token,
            "session": self.session,
            "directory": str(self.directory),
            "diary": str(self.diary),
            "prompts": list(prompts),
        }
        process.stdin.write(json.dumps({**given, **orders}) + "\n")
        process.stdin.close()
        return process

    def free(self) -> None:
        """Wait until the lease of a program that was killed has ended."""

        def is_free() -> bool:
            status, found = self.memoryd.request("GET", f"/api/v1/durable-sessions/{self.session}")
            assert status == 200, found
            return not found["is_held"]

        wait_until(is_free, saying="the lease has ended")

    def resume(self) -> DurableAgentSession:
        return DurableAgentSession.resume(self.agent, self.session, self.directory, settings=self.settings)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        process.wait(120)
    finally:
        process.kill()
        process.wait()
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        return process.returncode, process.stdout.read() + process.stderr.read()


def test_a_program_killed_at_any_step_is_resumed_exactly_and_no_tool_runs_twice(
    memoryd: Running, tmp_path: Path
) -> None:
    benches = {moment: Bench(memoryd, tmp_path / f"{moment[0]}-{moment[1]}") for moment in MOMENTS}
    for some in (MOMENTS[::3], MOMENTS[1::3], MOMENTS[2::3]):
        running = {
            (step, after): benches[step, after].program("one", "two", step=step, after=after)
            for step, after in some
        }
        for moment, process in running.items():
            code, said = ended(process)
            assert code == -9, (moment, code, said)
            assert '"two"' not in said

    for moment, bench in benches.items():
        bench.free()
        if moment in UNCERTAIN:
            with pytest.raises(UncertainToolInvocations) as raised:
                bench.resume()
            assert [call.tool_name for call in raised.value.calls] == ["note"]
            report = recover(
                bench.session, bench.directory, accept_unknown_effects=True, settings=bench.settings
            )
            assert report["uncertain_results"] == 1
        session = bench.resume()
        wrote = ["one"] if moment in WRITTEN else []
        assert bench.lines() == wrote, (moment, f"what the tool wrote: {bench.lines()}, not {wrote}")

        assert session.run("three", approve=lambda _: AllowOnce()).text == "done: wrote three"
        told = session.history
        session.release()
        again = bench.resume()
        assert again.history == told, moment
        assert [line for line in bench.lines() if line == "three"] == ["three"]
        again.release()
        with pytest.raises(Invalid, match="nothing to recover"):
            recover(bench.session, bench.directory, settings=bench.settings)


#: Where a program falls silent for longer than its lease: before anything, between plan and start, in its tool, before it says how it ended.
SILENCES = (
    ("begin", False),
    ("plan", True),
    ("start", False),
    ("run", True),
    ("complete", False),
    ("end", False),
)


def test_reclaimed_session_claim_invalidates_first_writer(memoryd: Running, tmp_path: Path) -> None:
    """A process that stood still comes back when another one has the session: it writes nothing, and begins no tool."""
    benches = {moment: Bench(memoryd, tmp_path / f"{moment[0]}-{moment[1]}") for moment in SILENCES}
    silent = {
        (step, after): benches[step, after].program("one", "two", step=step, after=after, stops=True)
        for step, after in SILENCES
    }
    try:
        for process in silent.values():
            wait_until(lambda p=process: is_stopped(p.pid), saying="the program stands still")
        said: dict[tuple[str, bool], tuple[object, list[str]]] = {}
        for moment, bench in benches.items():
            bench.free()
            if moment in UNCERTAIN:
                recover(bench.session, bench.directory, accept_unknown_effects=True, settings=bench.settings)
            session = bench.resume()
            assert session.run("mine", approve=lambda _: AllowOnce()).text == "done: wrote mine"
            said[moment] = (session.history, bench.lines())
            session.release()

        for moment, process in silent.items():
            process.send_signal(signal.SIGCONT)
            code, told = ended(process)
            assert code != 0, moment
            assert "Stale" in told or "ReplayRequired" in told, (moment, told)

        for moment, bench in benches.items():
            history, lines = said[moment]
            again = bench.resume()
            assert again.history == history, moment
            assert bench.lines() == lines, (moment, "a tool ran without its start being journaled")
            again.release()
    finally:
        for process in silent.values():
            process.kill()
            process.wait()


def is_stopped(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def test_a_live_program_renews_its_lease_and_keeps_its_session_to_itself(
    memoryd: Running, tmp_path: Path
) -> None:
    bench = Bench(memoryd, tmp_path / "bench")
    release, asked = threading.Event(), threading.Event()

    def waits(_: object) -> ModelReply:
        asked.set()
        assert release.wait(60)
        return ModelReply(text="slow and steady")

    slow = replace(bench.agent, model=waits)
    session = DurableAgentSession.resume(
        slow,
        bench.session,
        bench.directory,
        settings=bench.settings,
        around=Around(redact=redact_with(b"0" * 32), renew_seconds=1),
    )
    said: list[str] = []
    running = threading.Thread(target=lambda: said.append(session.run("go").text))
    running.start()
    assert asked.wait(60)
    first = memoryd.request("GET", f"/api/v1/durable-sessions/{bench.session}")[1]["lease_until"]

    def is_renewed() -> bool:
        found = memoryd.request("GET", f"/api/v1/durable-sessions/{bench.session}")[1]
        assert found["is_held"]
        return found["lease_until"][:19] > first[:19]

    wait_until(is_renewed, saying="the lease was renewed")
    with pytest.raises(SessionBusy) as raised:
        bench.resume()
    assert "lease_until" in raised.value.detail
    release.set()
    running.join(60)
    assert said == ["slow and steady"]
    session.close()


def test_a_renamed_directory_is_the_same_one_and_a_replaced_one_is_refused(
    memoryd: Running, tmp_path: Path
) -> None:
    bench = Bench(memoryd, tmp_path / "bench")
    session = bench.resume()
    session.run("one", approve=lambda _: AllowOnce())
    session.release()
    moved = bench.directory.rename(bench.home / "moved")

    again = DurableAgentSession.resume(bench.agent, bench.session, moved, settings=bench.settings)
    assert len(again.history) == 4
    again.release()
    found = memoryd.request("GET", f"/api/v1/durable-sessions/{bench.session}")[1]
    assert found["directory"]["path"] == str(moved)
    assert found["snapshot"]["authority"]["workspace_root"] == str(moved)

    bench.directory.mkdir()
    with pytest.raises(WorkspaceMismatch):
        bench.resume()
    assert not memoryd.request("GET", f"/api/v1/durable-sessions/{bench.session}")[1]["is_held"]


def test_a_directory_that_vanishes_in_a_turn_ends_it_and_nothing_more_is_written(
    memoryd: Running, tmp_path: Path
) -> None:
    bench = Bench(memoryd, tmp_path / "bench")
    session = bench.resume()

    def move(_: object) -> AllowOnce:
        bench.directory.rename(bench.home / "moved")
        return AllowOnce()

    with pytest.raises(WorkspaceMismatch):
        session.run("one", approve=move)

    assert bench.lines() == []
    assert not session.is_usable
    session.release()
    back = DurableAgentSession.resume(
        bench.agent, bench.session, bench.home / "moved", settings=bench.settings
    )
    assert back.history[-1].text.startswith("Not executed")
    back.close()


def test_a_compaction_that_came_in_while_nobody_renewed_must_be_read_before_the_next_turn(
    memoryd: Running, tmp_path: Path
) -> None:
    bench = Bench(memoryd, tmp_path / "bench")
    session = DurableAgentSession.resume(
        bench.agent,
        bench.session,
        bench.directory,
        settings=bench.settings,
        around=Around(redact=redact_with(b"0" * 32), renew_seconds=0.01),
    )
    for number in range(7):
        session.run(f"turn {number}", approve=lambda _: AllowOnce())
    answer = session.compact(12_000, current_tokens=11_000)
    assert answer["job"] is not None

    def is_compacted() -> bool:
        (found,) = memoryd.request("GET", f"/api/v1/durable-sessions/{bench.session}/compactions")[1]
        return found["summary_sequence"] is not None

    wait_until(is_compacted, saying="the compaction is done, as the lease has ended")
    with pytest.raises((ReplayRequired, StaleReplay, StaleLease)):
        session.run("too early", approve=lambda _: AllowOnce())
    assert not session.is_usable
    before = session.history

    session.open()

    assert session.history[0].text.startswith(SUMMARY_LABEL)
    kept = session.history[1:]
    assert kept == before[-len(kept) :]
    assert session.run("now", approve=lambda _: AllowOnce()).text == "done: wrote now"
    assert "too early" not in bench.lines()
    assert session.close() is not None
