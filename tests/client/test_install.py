"""Installing changes what is ours and nothing else, twice is once, and uninstalling takes exactly that out again."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from client.changes import FileChange, apply, preview
from client.install import Connection, installers_named, plan_hooks, plan_mcp, secrets_in
from client.installers import Place
from client.launcher import launcher_path
from memory_core.agents.claude_code import CLAUDE_CODE
from memory_core.agents.codex import CODEX
from memory_core.errors import Conflict, Invalid, NotFound
from tests.client.conftest import NOW_US
from tests.client.installing import files, hooks_of, install, uninstall, write

SETTINGS = """\
{
    "model": "opus",
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "say 'memoryd-hook is done'"
                    }
                ]
            }
        ]
    },
    "größe": 1
}
"""
CONFIG = """\
# mine
model = "gpt"  # keep this

[mcp_servers.other]
url = "http://other.test/mcp"

[tui]
theme = 'dark'
"""

Plan = Callable[[], list[FileChange]]


def test_claude_code_gets_an_exec_form_hook_for_each_event(place: Place):
    install(place, "claude")
    found = hooks_of(place.home / ".claude/settings.json")

    assert list(found) == list(CLAUDE_CODE.hook_events)
    assert found["Stop"] == [
        {
            "hooks": [
                {
                    "type": "command",
                    "command": str(launcher_path(place.home)),
                    "args": ["claude-code", "Stop"],
                    "timeout": 10,
                }
            ]
        }
    ]


def test_codex_gets_a_command_line_for_each_event_and_no_key_that_it_refuses(place: Place):
    install(place, "codex")
    config = json.loads((place.home / ".codex/hooks.json").read_text())

    assert list(config) == ["hooks"]
    assert list(config["hooks"]) == list(CODEX.hook_events)
    assert config["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3


def test_both_get_the_endpoint_with_the_token(place: Place, token: str):
    install(place, url="https://box.test/mcp/")

    claude = json.loads((place.home / ".claude.json").read_text())["mcpServers"]["memoryd"]
    codex = tomllib.loads((place.home / ".codex/config.toml").read_text())["mcp_servers"]["memoryd"]
    assert claude == {
        "type": "http",
        "url": "https://box.test/mcp",
        "headers": {"Authorization": f"Bearer {token}"},
    }
    assert codex == {"url": "https://box.test/mcp", "http_headers": {"Authorization": f"Bearer {token}"}}


def test_what_was_there_stays_in_its_order(place: Place):
    settings = write(place.home / ".claude/settings.json", SETTINGS)
    config = write(place.home / ".codex/config.toml", CONFIG)
    install(place)

    assert list(json.loads(settings.read_text("utf-8"))) == ["model", "hooks", "größe"]
    assert hooks_of(settings)["Stop"][0]["hooks"][0]["command"].startswith("say")
    assert settings.read_text("utf-8").startswith('{\n    "model"')
    assert '# mine\nmodel = "gpt"  # keep this\n' in config.read_text("utf-8")
    assert "\n\n[tui]\ntheme = 'dark'\n" in config.read_text("utf-8")


def test_installing_twice_changes_nothing_more(place: Place):
    write(place.home / ".claude/settings.json", SETTINGS)
    write(place.home / ".codex/config.toml", CONFIG)
    install(place)
    before = files(place.home)

    assert install(place) == []
    assert files(place.home) == before


@pytest.mark.parametrize("with_files", [True, False])
def test_uninstalling_restores_every_byte(with_files: bool, place: Place):
    if with_files:
        write(place.home / ".claude/settings.json", SETTINGS)
        write(
            place.home / ".claude.json",
            '{\n  "numStartups": 3,\n  "mcpServers": {\n    "other": {}\n  }\n}\n',
        )
        write(place.home / ".codex/config.toml", CONFIG)
        write(place.home / ".codex/hooks.json", '{\n  "description": "mine"\n}\n')
        write(place.home / ".gemini/settings.json", SETTINGS)
        write(
            place.home / ".cursor/hooks.json",
            '{\n  "version": 1,\n  "hooks": {\n    "stop": [\n      {\n        "command": "say done"\n      }\n    ]\n  }\n}\n',
        )
    before = files(place.home)
    install(place)
    uninstall(place)

    assert files(place.home) == before


def test_uninstalling_puts_no_newline_where_there_was_none(place: Place):
    config = write(place.home / ".codex/config.toml", CONFIG.rstrip("\n"))
    install(place)
    uninstall(place)

    assert config.read_text("utf-8") == CONFIG.rstrip("\n")


def test_the_token_file_of_the_environment_goes_before_an_earlier_one(place: Place, tmp_path: Path):
    install(place)
    other = tmp_path / "other"
    other.write_text("x")
    install(replace(place, environ={**place.environ, "MEMORYD_TOKEN_FILE": str(other)}))

    named = json.loads((place.home / ".config/memoryd/client.json").read_text("utf-8"))["token_file"]
    assert named == str(other)


def test_uninstalling_one_client_leaves_the_other_working(place: Place):
    install(place)
    uninstall(place, "codex")

    assert launcher_path(place.home).exists()
    assert hooks_of(place.home / ".claude/settings.json")
    assert not (place.home / ".codex/hooks.json").exists()


def test_uninstalling_where_nothing_is_installed_changes_nothing(place: Place):
    write(place.home / ".claude/settings.json", SETTINGS)
    before = files(place.home)
    uninstall(place)

    assert files(place.home) == before


def test_a_hook_of_an_older_home_is_replaced_and_one_that_only_mentions_us_is_not(place: Place):
    old = {
        "type": "command",
        "command": "/old/home/.local/share/memoryd/bin/memoryd-hook",
        "args": ["claude-code", "Stop"],
    }
    mentions = {"type": "command", "command": "echo /x/memoryd/bin/memoryd-hook failed"}
    path = write(
        place.home / ".claude/settings.json",
        json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": [old, mentions]}]}}),
    )
    install(place)
    commands = [handler["command"] for group in hooks_of(path)["Stop"] for handler in group["hooks"]]

    assert commands == [mentions["command"], str(launcher_path(place.home))]


def test_an_event_that_is_no_longer_registered_is_cleaned_up(place: Place):
    install(place)
    path = place.home / ".claude/settings.json"
    config = json.loads(path.read_text("utf-8"))
    config["hooks"]["Setup"] = config["hooks"]["Stop"]
    path.write_text(json.dumps(config))
    install(place)

    assert "Setup" not in hooks_of(path)


def test_the_command_lines_do_not_change_with_the_installation(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Codex trusts the hash of a hook: after an upgrade only the launcher's inside may differ."""
    install(place)
    before = (place.home / ".codex/hooks.json").read_bytes()
    launcher = launcher_path(place.home).read_text()
    monkeypatch.setattr("sys.executable", "/opt/another/python")
    install(place)

    assert (place.home / ".codex/hooks.json").read_bytes() == before
    assert launcher_path(place.home).read_text() != launcher


def test_a_changed_file_leaves_a_dated_backup(place: Place):
    write(place.home / ".claude/settings.json", SETTINGS)
    (backup,) = install(place, "claude")

    assert backup.name == "settings.json.memoryd-backup-20260528T202640Z"
    assert backup.read_text("utf-8") == SETTINGS


def test_a_symlinked_file_is_written_through(place: Place):
    real = write(place.home / "dotfiles/claude settings.json", SETTINGS)
    link = place.home / ".claude/settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    install(place)

    assert link.is_symlink()
    assert "memoryd-hook" in real.read_text("utf-8")


def test_a_link_to_nothing_is_written_through_too(place: Place):
    link = place.home / ".claude.json"
    link.symlink_to(place.home / "dotfiles/not yet.json")
    install(place)

    assert link.is_symlink()
    assert "memoryd" in (place.home / "dotfiles/not yet.json").read_text()


def test_a_file_that_holds_the_token_is_the_owners_alone(place: Place):
    config = write(place.home / ".codex/config.toml", CONFIG)
    config.chmod(0o644)
    settings = write(place.home / ".claude/settings.json", SETTINGS)
    settings.chmod(0o644)
    install(place)

    modes = {path: path.stat().st_mode & 0o777 for path in place.home.rglob("*") if path.is_file()}
    assert modes[config] == modes[place.home / ".claude.json"] == 0o600
    assert modes[place.home / ".config/memoryd/client.json"] == 0o600
    assert modes[settings] == 0o644
    assert modes[launcher_path(place.home)] == 0o755


def test_other_directories_are_honoured(home: Path, token: str):
    write(home / ".local/share/memoryd/data/token", token)
    place = Place(
        home=home, environ={"CLAUDE_CONFIG_DIR": str(home / "c d"), "CODEX_HOME": str(home / "x y")}
    )
    install(place)

    assert {"settings.json", ".claude.json"} <= {path.name for path in (home / "c d").iterdir()}
    assert {"hooks.json", "config.toml"} <= {path.name for path in (home / "x y").iterdir()}
    assert not (home / ".claude").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude/settings.json", '{"a": 1,}'),
        (".claude/settings.json", "[]"),
        (".claude/settings.json", '{"a": 1, "a": 2}'),
        (".claude/settings.json", '{"hooks": []}'),
        (".claude/settings.json", '{"hooks": {"Stop": {}}}'),
        (".claude.json", '{"mcpServers": "x"}'),
        (".gemini/settings.json", "// mine\n{}"),
        (".cursor/hooks.json", '{"hooks": {"stop": {}}}'),
        (".cursor/mcp.json", "[]"),
        (".codex/config.toml", "a = = 1"),
        (".codex/config.toml", "mcp_servers = 3"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone_and_named(name: str, text: str, place: Place):
    path = write(place.home / name, text)
    with pytest.raises(Invalid, match=path.name.replace(".", r"\.")):
        install(place)

    assert path.read_text() == text


def test_a_file_that_changes_between_plan_and_apply_stops_everything(place: Place):
    settings = write(place.home / ".claude/settings.json", SETTINGS)
    changes = plan_hooks(place, installers_named([]), Connection())
    settings.write_text("{}")
    with pytest.raises(Conflict, match="run the command again"):
        apply(changes, now_us=NOW_US)

    assert settings.read_text() == "{}"
    assert not launcher_path(place.home).exists()


def test_a_crash_while_a_file_is_replaced_leaves_the_old_one(place: Place, monkeypatch: pytest.MonkeyPatch):
    settings = write(place.home / ".claude/settings.json", SETTINGS)
    changes = plan_hooks(place, installers_named(["claude-code"]), Connection())
    monkeypatch.setattr(os, "fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        apply(changes, now_us=NOW_US)

    assert settings.read_text("utf-8") == SETTINGS
    assert not list(place.home.rglob("*.tmp"))


def test_without_a_token_the_endpoint_is_not_written(home: Path):
    with pytest.raises(Invalid, match="memoryd up"):
        install(Place(home=home))


def test_an_unknown_client_is_named_with_those_there_are():
    with pytest.raises(NotFound, match="claude-code, codex"):
        installers_named(["emacs"])


def test_a_preview_shows_no_token_and_no_key(place: Place, token: str):
    install(place)
    write(
        place.home / ".claude.json",
        json.dumps({"mcpServers": {"memoryd": {"headers": {"Authorization": f"Bearer {token}"}}}}),
    )
    changes = plan_mcp(place, installers_named([]), Connection(url="http://elsewhere.test"))
    key = json.loads((place.home / ".config/memoryd/client.json").read_text())["redaction_key"]
    shown = preview(changes, hide=secrets_in(changes))

    assert "elsewhere.test" in shown
    assert token not in shown
    assert key not in shown


def test_settings_given_once_are_kept(place: Place):
    install(place, url="https://box.test")
    key = json.loads((place.home / ".config/memoryd/client.json").read_text())["redaction_key"]
    install(place)
    values = json.loads((place.home / ".config/memoryd/client.json").read_text())

    assert values["url"] == "https://box.test"
    assert values["redaction_key"] == key


def test_a_token_file_that_is_not_there_is_refused_before_anything_is_written(home: Path):
    place = Place(home=home, environ={})

    with pytest.raises(Invalid, match="--token-file names the file"):
        plan_hooks(place, installers_named(["codex"]), Connection(token_file=home / "nowhere"))
