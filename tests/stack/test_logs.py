from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.config import Settings
from workers import logs

Configured = Callable[..., Path]


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[Configured]:
    """Sets logging up as a process does, and undoes it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level

    def configure(**options: object) -> Path:
        root.handlers = []
        settings = Settings(data_dir=tmp_path)
        logs.configure(settings, "tested", **options)  # pyright: ignore[reportArgumentType]
        return settings.log_dir / "tested.log"

    yield configure
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = before, level
    logging.captureWarnings(False)


def _records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_record_is_one_object_with_what_extra_brought(configured: Configured) -> None:
    path = configured()

    logging.getLogger("x.y").info(
        "it %s", "works", extra={"action": "worked", "count": 3, "path": Path("/a")}
    )

    (record,) = _records(path)
    assert record["message"] == "it works"
    assert record["level"] == "info"
    assert record["process"] == "tested"
    assert (record["action"], record["count"], record["path"]) == ("worked", 3, "/a")
    assert str(record["at"]).endswith("Z")


@pytest.mark.parametrize("library", ["celery.worker", "kombu.connection", "mcp.server.streamable_http"])
def test_what_a_library_says_of_every_call_is_not_written_but_its_warnings_are(
    configured: Configured, library: str
) -> None:
    path = configured()

    logging.getLogger(library).info("one more call")
    logging.getLogger(library).warning("something is wrong")

    assert [record["message"] for record in _records(path)] == ["something is wrong"]


def test_what_an_exception_quotes_is_not_logged(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured()

    try:
        raise ValueError("a private sentence")
    except ValueError:
        logging.getLogger("x").exception("it failed")

    assert "private" not in path.read_text()
    assert "private" not in capsys.readouterr().err
    exception = _records(path)[0]["exception"]
    assert isinstance(exception, dict)
    assert exception["type"] == "builtins.ValueError"
    assert "test_what_an_exception_quotes_is_not_logged" in exception["stack"][-1]


def test_a_log_is_private_rotated_and_capped(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_FILE_MAX_BYTES", 10_000)
    path = configured()

    for _ in range(600):
        logging.getLogger("x").info("x" * 100)

    files = sorted(path.parent.iterdir())
    assert len(files) == limits.LOG_FILES_KEPT
    assert all(file.stat().st_size <= 10_000 and file.stat().st_mode & 0o077 == 0 for file in files)


def test_a_long_message_is_cut(configured: Configured) -> None:
    path = configured()
    logging.getLogger("x").info("y" * 50_000)
    assert path.stat().st_size < 3_000


def test_the_terminal_gets_a_plain_line(configured: Configured, capsys: pytest.CaptureFixture[str]) -> None:
    configured()
    logging.getLogger("x").warning("mind the gap", extra={"action": "minded"})
    logging.getLogger("x").info("quiet")
    assert capsys.readouterr().err == "memoryd tested: mind the gap\n"


def test_a_full_disk_costs_lines_and_not_the_process(configured: Configured) -> None:
    path = configured()
    path.unlink()
    path.symlink_to("/dev/full")
    handler = next(item for item in logging.getLogger().handlers if isinstance(item, logs.CappedFile))
    handler.close()

    logging.getLogger("x").info("lost")
