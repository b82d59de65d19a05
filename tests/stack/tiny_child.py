"""A small real child: beats, and has a child of its own like a web server has. `tiny_child.py NAME [MODE]`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from memory_core import config
from memory_core.clock import SystemClock
from workers import exit_codes
from workers.heartbeat import Heartbeat, heartbeat_file


def main(name: str, mode: str = "") -> int:
    settings = config.load()
    notes = settings.run_dir / f"{name}.notes"
    if mode == "refuses":
        return exit_codes.REFUSED
    if mode == "crashes":
        _note(notes, "start")
        return 1
    if name == "writer":
        settings.install_file.write_text("ab" * 16)
    grandchild = os.fork()
    if grandchild == 0:
        threading.Event().wait()
    _note(notes, f"grandchild {grandchild}")
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if mode == "stubborn" else ended.set())
    heart = Heartbeat(heartbeat_file(settings.run_dir, name), SystemClock())
    while not ended.wait(0.05):
        if (settings.run_dir / f"{name}.silence").exists():
            continue
        heart.beat()
    order = settings.run_dir / "order"
    _note(order, name)
    os.kill(grandchild, signal.SIGKILL)
    os.waitpid(grandchild, 0)
    return 0


def _note(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
