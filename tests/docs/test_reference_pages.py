"""The reference pages name what there is: nothing is left out, nothing is made up."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import client.commands
import memory_core.agents
import memory_core.tools
from memory_core.config import Settings
from memory_core.models import budget_settings
from memory_core.models.settings import ModelSettings, known_providers
from memory_core.recall import knowledge
from memory_core.registry import discover
from memory_core.store.every_table import metadata

ROOT = Path(__file__).parents[2]


def headings(page: str, level: int = 2) -> set[str]:
    text = (ROOT / "docs" / page).read_text()
    return set(re.findall(rf"^{'#' * level} (.+?)\s*$", text, re.M))


def test_every_setting_has_a_heading_and_every_heading_a_setting():
    assert headings("settings.md") - {"The client's settings"} == {f.name for f in fields(Settings)}


def test_every_table_has_a_heading_in_the_data_model():
    assert headings("data-model.md", 3) == set(metadata.tables)


def test_every_tool_has_a_heading():
    discover(memory_core.tools)

    assert headings("tools.md") == set(memory_core.tools.tools.names())


def test_every_agent_client_has_a_heading():
    discover(memory_core.agents)
    titles = {f"{kind.title} (`{name}`)" for name, kind in memory_core.agents.agents}

    assert titles <= headings("clients.md")


def test_every_model_provider_has_a_heading():
    language, embedding = known_providers()

    assert headings("models.md") - {"Budget", "Embeddings"} == {*language, *embedding}


def described_keys(section: str) -> set[str]:
    """The keys in the table of a section of the configuration file."""
    part = re.split(r"\n##+ ", (ROOT / "docs" / "settings.md").read_text().split(f"### [{section}]")[1])[0]
    rows = re.findall(r"^\| (`.+?) \|", part, re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)[`.]", row)}


def test_every_key_of_the_models_table_is_described():
    assert described_keys("models") == {f.name for f in fields(ModelSettings)}


def test_every_key_of_the_budget_table_is_described():
    assert described_keys("budget") == set(budget_settings.KEYS)


def test_every_key_of_the_memory_table_is_described():
    assert described_keys("memory") == set(knowledge.KEYS)


def test_every_command_of_the_command_line_has_a_heading():
    found = {m.name for m in pkgutil.iter_modules(client.commands.__path__) if not m.name.startswith("_")}

    assert headings("command-line.md") - {"Exit codes"} == {
        f"memoryd {name.replace('_', '-')}" for name in found
    }


def test_the_generated_pages_are_up_to_date():
    checked = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr


def test_every_action_in_the_logs_is_explained():
    named = {
        action
        for room in ("memory_core", "workers", "web")
        for path in (ROOT / room).rglob("*.py")
        for action in re.findall(r'"action": "([a-z_]+)"', path.read_text())
    }

    explained = set(re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "docs" / "operations.md").read_text(), re.M))
    assert named - explained == set()
