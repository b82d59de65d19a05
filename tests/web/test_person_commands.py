"""Commands of a person against a real gate: `projects` and `briefing`; and completions in a real shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stack.conftest import wait_until
from tests.web.served import ROOT, Served

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module", autouse=True)
def wiki(served: Served) -> None:
    served.house.start_writer()
    pages: list[dict[str, Any]] = [
        {"path": "_rules/tests", "body": "# Tests\n\nRun them before each commit.", "project": "shop"},
        {"path": "notes/a", "body": "# A \x1b[31m\n\nSee [[stock:b]].", "project": "shop"},
        {"path": "b", "body": "# B", "project": "stock", "workspace": "work"},
    ]
    for page in pages:
        answer = served.house.post("/api/v1/tools/memory_write_page", page)
        assert answer.status_code == 200, answer.text
    judged = {"path": "notes/a", "signal": "wrong", "reason": "not so", "project": "shop"}
    assert served.house.post("/api/v1/tools/memory_feedback", judged).status_code == 200


def memoryd(
    served: Served, home: Path, *words: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "MEMORYD_URL": served.url,
        "MEMORYD_TOKEN": served.house.token,
    }
    return subprocess.run(
        [sys.executable, "-m", "client", *words],
        env=environment,
        cwd=cwd or home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_in_a_repository_without_a_project_nothing_is_read_from_another_one_and_a_write_makes_its_own(
    served: Served, tmp_path: Path
):
    begin = {"session_id": "still open", "prompt": "hello", "cwd": "/srv/other-demo"}
    address = "/hook?agent=claude-code&event=UserPromptSubmit&wait=commit"
    assert served.house.post(address, begin).status_code == 200
    inside = tmp_path / "Paper Boat" / "src"
    inside.mkdir(parents=True)
    (tmp_path / "Paper Boat" / ".git").mkdir()

    for words in (("search", "hello"), ("read-page", "notes/a"), ("delete-page", "notes/a", "--yes")):
        said = memoryd(served, tmp_path, *words, cwd=inside)
        assert said.returncode == 1
        assert "nothing is known yet of default/paper-boat" in said.stderr
    page = ("write-page", "notes/hull", "--body", "# Hull\n\nFold it twice.", "--json")
    written = memoryd(served, tmp_path, *page, cwd=inside)
    assert written.returncode == 0, written.stderr
    assert json.loads(written.stdout)["project"] == "paper-boat"
    assert "Fold it twice" in memoryd(served, tmp_path, "read-page", "notes/hull", cwd=inside).stdout
    ended = address.replace("UserPromptSubmit", "SessionEnd")
    assert served.house.post(ended, {**begin, "reason": "other"}).status_code == 200


def test_projects_are_listed_all_or_of_one_workspace(served: Served, tmp_path: Path):
    said = memoryd(served, tmp_path, "projects")
    assert said.returncode == 0, said.stderr
    rows = [line.split("\t")[:3] for line in said.stdout.splitlines()]
    assert ["default", "shop", "2"] in rows
    assert ["work", "stock", "1"] in rows
    found = json.loads(memoryd(served, tmp_path, "projects", "--workspace", "work", "--json").stdout)
    assert [(p["workspace_name"], p["project_name"]) for p in found] == [("work", "stock")]


def test_a_briefing_is_readable_and_drives_no_terminal(served: Served, tmp_path: Path):
    said = memoryd(served, tmp_path, "briefing", "--project", "shop")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("default/shop\n2 pages, 0 sessions")
    assert "Run them before each commit." in said.stdout
    assert "memoryd:recalled" not in said.stdout
    assert "\x1b" not in said.stdout
    assert "wrong  not so" in said.stdout
    assert "Links to: default/stock (1)" in said.stdout
    answer = json.loads(memoryd(served, tmp_path, "briefing", "--project", "shop", "--json").stdout)
    assert answer["rules"][0]["path"] == "_rules/tests.md"


def test_a_briefing_without_a_known_project_says_which_there_are(served: Served, tmp_path: Path):
    said = memoryd(served, tmp_path, "briefing")
    assert said.returncode == 1
    assert "scope unknown" in said.stderr
    assert "default/shop" in said.stderr


def test_bash_completes_commands_and_options(served: Served, tmp_path: Path):
    program = tmp_path / "memoryd"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m client "$@"\n')
    program.chmod(0o755)
    script = memoryd(served, tmp_path, "completions", "bash")
    assert script.returncode == 0, script.stderr
    ask = (
        'eval "$SCRIPT"; COMP_WORDS=(memoryd $WORDS); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));'
        ' _memoryd_completion memoryd; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    for words, wanted in (("bri", "briefing"), ("search --ever", "--everywhere"), ("completions f", "fish")):
        done = subprocess.run(
            ["bash", "-c", ask],
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "SCRIPT": script.stdout,
                "WORDS": words,
                "HOME": str(tmp_path),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == [wanted], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script_and_another_one_is_refused(served: Served, tmp_path: Path, shell: str):
    plain = memoryd(served, tmp_path, "completions", shell)
    found = json.loads(memoryd(served, tmp_path, "completions", shell, "--json").stdout)
    assert found["script"].strip() == plain.stdout.strip()
    assert "_MEMORYD_COMPLETE" in plain.stdout
    assert memoryd(served, tmp_path, "completions", "tcsh").returncode == 2


def test_the_demo_leaves_no_session_open(served: Served, tmp_path: Path):
    said = memoryd(served, tmp_path, "demo")
    assert said.returncode == 0, said.stderr
    ends = served.house.rows(
        "SELECT ended_at FROM sessions WHERE project_id = (SELECT id FROM projects WHERE name = 'memoryd-demo')"
    )
    assert len(ends) == 4

    def are_over() -> bool:
        return not served.house.rows(
            "SELECT 1 FROM sessions WHERE ended_at IS NULL AND project_id ="
            " (SELECT id FROM projects WHERE name = 'memoryd-demo')"
        )

    wait_until(are_over)


def test_what_a_search_prints_of_a_page_is_read_back(served: Served, tmp_path: Path):
    found = memoryd(served, tmp_path, "search", "each", "commit", "--project", "default/shop").stdout
    printed = next(line.split()[0] for line in found.splitlines() if "_rules/tests" in line)
    assert printed == "default/shop:_rules/tests.md"

    for command in (("read-page", printed), ("versions", printed)):
        done = memoryd(served, tmp_path, *command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    refused = memoryd(served, tmp_path, "read-page", printed, "--project", "stock")
    assert refused.returncode == 1
    assert "lies in default/shop" in refused.stderr
