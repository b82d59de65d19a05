"""The client works where the server's libraries are not installed."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import client.commands

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    m.name.replace("_", "-") for m in pkgutil.iter_modules(client.commands.__path__) if m.name[0] != "_"
)

#: Imports of anything but the standard library, ourselves and the client's three libraries (with what they bring) fail.
WITHOUT_SERVER = """
import sys
ALLOWED = {"client", "memory_core", "click", "rich", "tomlkit", "pygments", "markdown_it", "mdurl", "colorama"}
class Missing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in ALLOWED:
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from client.main import main
main(sys.argv[1:])
"""


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_SERVER, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "MEMORYD_URL": "http://127.0.0.1:9"},
        input="{}",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_explains_itself_without_the_server_libraries(command: str, tmp_path: Path):
    told = run(command, "--help", home=tmp_path)

    assert told.returncode == 0, told.stderr
    assert "Usage:" in told.stdout


def test_a_hook_and_an_installation_need_only_the_client(tmp_path: Path):
    (tmp_path / ".claude").mkdir()

    hooked = run("hook", "claude-code", "UserPromptSubmit", home=tmp_path)
    installed = run("install-hooks", "claude-code", "--apply", home=tmp_path)

    assert (hooked.returncode, installed.returncode) == (0, 0), installed.stderr
    assert (tmp_path / ".claude" / "settings.json").is_file()
