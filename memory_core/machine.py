"""The operating system's lasting name of this machine."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def system_id() -> str:
    """The id that the system keeps for this machine; empty when there is none, as in many containers."""
    for file in _FILES:
        try:
            text = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    if platform.system() == "Darwin":
        found = subprocess.run(
            ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in found.stdout.splitlines():
            if "IOPlatformUUID" in line:
                return line.split('"')[3]
    return ""
