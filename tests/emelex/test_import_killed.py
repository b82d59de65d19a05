"""An import that is killed at any step goes on where it was, and leaves no copy behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from client.emelex import copying
from memory_core.clock import FakeClock
from memory_core.errors import Conflict
from memory_core.ids import id_bytes
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.emelex.conftest import MakeEmelex
from tests.emelex.databases import Emelex, said
from tests.emelex.test_import import replay, run
from tests.emelex.test_import_of_parts import pictured, under_way

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
#: End of the path of the request that it dies at, and which of them.
STEPS = {
    "the first events": ("/events", 1),
    "the last events": ("/events", 3),
    "a journal": ("/journal", 1),
    "jobs": ("/jobs", 1),
    "a publication": ("/publish", 1),
    "an entry": ("/knowledge", 1),
    "versions": ("/versions", 2),
}


def full(emelex: Emelex) -> tuple[str, str]:
    """One of everything; a session of three slices and an entry of three parts."""
    session_id = emelex.session(Path.cwd(), [said(f"{n}") for n in range(600)])
    emelex.compacted(session_id, 600, "six hundred things were said")
    emelex.job("distillation", session_id, 601, "pending")
    pictured(emelex, b"\x00" + os.urandom(5_000))
    under_way(emelex, "completed", "started")
    return session_id, emelex.knowledge(Path.cwd(), "build", *(f"version {n}" for n in range(1, 71)))


@contextmanager
def killing(gate: Gate, step: str, *, is_before: bool) -> Generator[Callable[[], bool]]:
    """The process that is set dies at that request: before memoryd does it, or when it was done and not answered."""
    app = gate.house.app
    inner, (path, number) = app.wsgi_app, STEPS[step]
    seen = 0
    has_killed = False

    def wsgi(environ: Any, start_response: Any) -> Any:
        nonlocal seen, has_killed
        is_it = environ["PATH_INFO"].endswith(path) and not has_killed
        seen += is_it
        if is_it and seen == number and is_before:
            has_killed = True
            process.kill()
            process.wait()
        answer = inner(environ, start_response)
        if is_it and seen == number and not is_before:
            has_killed = True
            answer = [b"".join(answer)]
            process.kill()
            process.wait()
        return answer

    app.wsgi_app = wsgi  # type: ignore[method-assign]
    try:
        yield lambda: has_killed
    finally:
        app.wsgi_app = inner  # type: ignore[method-assign]


process: subprocess.Popen[bytes]


def begin(emelex: Emelex) -> None:
    global process
    process = subprocess.Popen(
        [sys.executable, "-m", "client", "import-emelex", str(emelex.path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def copies(person_home: Path) -> list[Path]:
    return sorted((person_home / ".local/state/memoryd/imports").glob("*"))


@pytest.mark.parametrize(
    ("step", "is_before"),
    [
        ("the first events", True),
        ("the last events", False),
        ("a journal", False),
        ("jobs", False),
        ("a publication", True),
        ("a publication", False),
        ("an entry", False),
        ("versions", True),
    ],
)
def test_an_import_that_is_killed_goes_on_and_brings_everything_once(
    person: Prompt, gate: Gate, make: MakeEmelex, tmp_path: Path, step: str, is_before: bool
):
    emelex = make(6)
    session_id, entry_id = full(emelex)
    before = emelex.path.read_bytes()

    with killing(gate, step, is_before=is_before) as has_killed:
        begin(emelex)
        process.wait(60)
    assert has_killed()
    assert process.returncode == -9
    assert len(copies(tmp_path)) == 1

    told = run(person, emelex)

    assert (told["left"], told["wrong"]) == ([], 0)
    assert copies(tmp_path) == []
    assert emelex.path.read_bytes() == before
    assert len(replay(gate, session_id)) == 1
    counts = {
        table: gate.rows(f"SELECT count(*) AS n FROM {table} WHERE {key} = ?", id_bytes(of))[0]["n"]
        for table, key, of in (
            ("session_events", "session_id", session_id),
            ("compactions", "session_id", session_id),
            ("distillations", "session_id", session_id),
            ("knowledge_versions", "knowledge_id", entry_id),
        )
    }
    expected = {"session_events": 601, "compactions": 1, "distillations": 1, "knowledge_versions": 70}
    assert counts == expected
    again = run(person, emelex)
    assert again["imported"] == {"sessions_there": 3, "knowledge_there": 1, "jobs": 0}


def test_a_session_whose_import_died_is_held_and_then_free_for_anybody(
    person: Prompt, gate: Gate, make: MakeEmelex
):
    """Nobody works on a part of a session; who takes it afterwards takes an empty one, and the import begins anew."""
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), [said(f"{n}") for n in range(600)])
    with killing(gate, "the last events", is_before=True):
        begin(emelex)
        process.wait(60)
    shown = person.asks("sessions", "show", session_id)
    assert (shown["is_held"], shown["last_sequence"]) == (True, 0)
    assert "working" not in person.says("sessions", "title", session_id, "mine", code=1)

    run(person, emelex)

    assert len(replay(gate, session_id)) == 600


# --- the copy ---------------------------------------------------------------------------------------


def test_a_copy_is_made_again_while_the_database_changes(make: MakeEmelex, tmp_path: Path):
    emelex, clock = make(6), FakeClock()
    pauses: list[float] = []
    real = copying._copy_files

    def copied(original: Path, target: Path) -> None:
        real(original, target)
        if not pauses:
            emelex.session("/srv/shop", (said("meanwhile"),))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copying, "_copy_files", copied)

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            clock.sleep(seconds)

        with copying.private_copy(emelex.path, tmp_path / "room", sleep) as copy:
            assert copy.with_name(f"{copy.name}-wal").read_bytes() == Path(f"{emelex.path}-wal").read_bytes()
    assert len(pauses) == 1


def test_a_database_that_never_stands_still_is_refused(make: MakeEmelex, tmp_path: Path):
    emelex = make(6)
    real = copying._copy_files

    def copied(original: Path, target: Path) -> None:
        real(original, target)
        emelex.session("/srv/shop", (said("again"),))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copying, "_copy_files", copied)
        with (
            pytest.raises(Conflict, match="stop the program"),
            copying.private_copy(emelex.path, tmp_path / "room", FakeClock().sleep),
        ):
            pass
    assert list((tmp_path / "room").iterdir()) == []


def test_a_copy_is_for_its_owner_alone_and_another_import_leaves_it_be(make: MakeEmelex, tmp_path: Path):
    emelex, room = make(6), tmp_path / "room"
    with copying.private_copy(emelex.path, room, FakeClock().sleep) as one:
        assert one.parent.stat().st_mode & 0o777 == 0o700
        assert one.stat().st_mode & 0o777 == 0o600
        with copying.private_copy(emelex.path, room, FakeClock().sleep) as two:
            assert one.exists()
            assert two.exists()
    assert list(room.iterdir()) == []
