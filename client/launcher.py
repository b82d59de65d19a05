"""The launcher that all hooks name: one fixed path that stays the same across upgrades.

Codex trusts a hook by the hash of its command line, so what changes (interpreter, place of the code)
stands inside the launcher and never in a client's configuration.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import client

NAME = "memoryd-hook"

_SCRIPT = """\
#!/bin/sh
# Written by `memoryd install-hooks`; the same command renews it after a move or an upgrade.
[ -n "$MEMORYD_CLIENT_CONFIG" ] || MEMORYD_CLIENT_CONFIG={config}
export MEMORYD_CLIENT_CONFIG
python={python}
code={code}
if [ ! -x "$python" ] || [ ! -f "$code/client/hook.py" ]; then
    echo "memoryd: its installation is gone from $code; run 'memoryd install-hooks --apply' or 'memoryd uninstall'" >&2
    exit 0
fi
"$python" -I -S -c 'import sys; sys.path.append(sys.argv.pop(1)); from client.hook import run; run()' "$code" "$@"
exit 0
"""


def launcher_path(home: Path) -> Path:
    return home / ".local" / "share" / "memoryd" / "bin" / NAME


def script(*, config_file: Path, python: Path | None = None, code: Path | None = None) -> str:
    """The launcher's text. `python` and `code` (the directory that holds `client/`) are this process's own."""
    interpreter = python or Path(sys.executable)
    root = code or Path(client.__file__).resolve().parent.parent
    return _SCRIPT.format(
        config=shlex.quote(str(config_file)),
        python=shlex.quote(str(interpreter)),
        code=shlex.quote(str(root)),
    )


def is_ours(command: str) -> bool:
    """Whether a program's path is that of a launcher of memoryd, wherever the home was at that time."""
    return command.endswith(f"/memoryd/bin/{NAME}")


def is_our_line(line: str) -> bool:
    """Whether a command line for a shell runs a launcher of memoryd."""
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    return bool(words) and is_ours(words[0])


def command_line(launcher: Path, client: str, event: str) -> str:
    """The hook as one line for a shell; the same on every run, whatever the path holds."""
    return f"{shlex.quote(str(launcher))} {client} {event}"
