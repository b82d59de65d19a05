"""Whether the writer before this one ended in order: `run/writer.stopped` names the epoch of the last that did."""

from __future__ import annotations

from pathlib import Path

from memory_core.store.install import replace_synced

_FILE = "writer.stopped"


def note_clean_stop(run_dir: Path, epoch: int) -> None:
    """Synced, as the last act: everything else is on disk then."""
    replace_synced(run_dir / _FILE, f"{epoch}\n")


def was_clean(run_dir: Path, epoch: int) -> bool:
    """Whether the epoch before `epoch` ended in order. Each start has an epoch of its own, so an old note deceives nobody."""
    try:
        return int((run_dir / _FILE).read_text(encoding="ascii")) == epoch - 1
    except (OSError, ValueError):
        return epoch == 1
