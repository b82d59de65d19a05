"""An import into a whole memoryd whose processes die meanwhile, and which then works with what came."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import Running, wait_until
from tests.emelex.databases import Emelex, answered, said

pytestmark = [pytest.mark.stack, pytest.mark.kills]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("import") / "home", conditions=["patient"]) as running:
        yield running


class Person:
    """Types commands in a directory, as processes of their own."""

    def __init__(self, memoryd: Running, place: Path) -> None:
        self._place = place
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMORYD_")},
            "HOME": str(place.parent),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "MEMORYD_URL": memoryd.url,
            "MEMORYD_TOKEN": memoryd.token,
            "MEMORYD_HOST_ID": "ada-laptop",
        }

    def begins(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "client", *words],
            cwd=self._place,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def asks(self, *words: str) -> Any:
        process = self.begins(*words, "--json")
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return json.loads(out)


def test_an_import_outlives_deaths_and_memoryd_works_on_with_it(memoryd: Running, tmp_path: Path):
    place = tmp_path / "shop"
    place.mkdir()
    person, emelex = Person(memoryd, place), Emelex(tmp_path / "emelex", 3)
    sessions = [
        emelex.session(place, [said(f"step {n} of {number}: {'x' * 400}") for n in range(400)])
        for number in range(12)
    ]
    emelex.turn(sessions[-1], said("remember that the pelican feeder opens at nine"), answered("noted"))
    emelex.compacted(sessions[0], 400, "four hundred steps were made")
    waiting = emelex.job("compaction", sessions[1], 400, "running")
    entries = [emelex.knowledge(place, f"fact {n}", f"it is {n}", f"it was {n}") for n in range(30)]

    def staged() -> int:
        held = memoryd.request("GET", "/api/v1/durable-sessions?limit=50")[1]
        return len(held)

    dying = person.begins("import-emelex", str(emelex.path))
    wait_until(lambda: staged() >= 3, saying="three sessions have come")
    dying.kill()
    dying.communicate()
    killer = threading.Thread(
        target=lambda: (
            wait_until(lambda: staged() >= 7, saying="seven sessions have come"),
            memoryd.kill("writer"),
        )
    )
    killer.start()
    told = person.asks("import-emelex", str(emelex.path))
    killer.join()

    assert (told["left"], told["wrong"]) == ([], 0)
    listed = person.asks("sessions", "list", "--durable", "--all")
    lengths = {s["id"]: s["last_sequence"] for s in listed}
    assert set(lengths) == set(sessions)
    # The job that waited there may be done here by now, with an event more.
    assert lengths.pop(sessions[1]) in (400, 401)
    assert (lengths.pop(sessions[0]), lengths.pop(sessions[-1])) == (401, 402)
    assert set(lengths.values()) == {400}
    assert {e["id"] for e in person.asks("knowledge", "list", "-n", "100")} == set(entries)
    assert person.asks("import-emelex", str(emelex.path))["imported"] == {
        "sessions_there": 12,
        "knowledge_there": 30,
        "jobs": 0,
    }
    # A session that came teaches.
    wait_until(
        lambda: person.asks("jobs", "show", waiting)["state"] == "completed",
        seconds=60,
        saying="the compaction is done",
    )
    person.asks("sessions", "distill", sessions[-1])
    wait_until(
        lambda: "pelican" in json.dumps(person.asks("knowledge", "search", "pelican")),
        seconds=60,
        saying="knowledge is drawn from a session that came",
    )
    emelex.close()
