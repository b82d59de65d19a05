"""The budget follows its file: a changed one counts when it is whole, and one that cannot be read changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from memory_core.config import Settings
from memory_core.errors import Invalid
from workers.writer.models import ConfiguredBudget


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "config.toml"
    made.write_text("[budget]\ntokens_per_day = 1000\n")
    return made


@pytest.fixture
def configured(file: Path) -> ConfiguredBudget:
    return ConfiguredBudget(Settings(data_dir=file.parent), ("distill",))


def cap(configured: ConfiguredBudget) -> int | None:
    return configured.current().day.tokens


def test_a_changed_file_counts_when_two_looks_found_it_the_same(configured: ConfiguredBudget, file: Path):
    assert cap(configured) == 1000

    file.write_text("")
    assert cap(configured) == 1000
    file.write_text("[budget]\ntokens_per_day = 200_000\n")
    assert cap(configured) == 1000

    assert cap(configured) == 200_000


def test_a_file_that_is_gone_for_a_moment_changes_nothing(configured: ConfiguredBudget, file: Path):
    aside = file.rename(file.with_suffix(".old"))
    assert [cap(configured) for _ in range(3)] == [1000] * 3

    aside.write_text("[budget]\ntokens_per_day = 7\n")
    aside.rename(file)
    assert [cap(configured) for _ in range(2)] == [1000, 7]


@pytest.mark.parametrize(
    "text", ["[budget", "[budget]\nkind.dream = {}\n", "[budget]\ntokens_per_day = -1\n"]
)
def test_what_cannot_be_read_changes_nothing_and_is_said_once(
    configured: ConfiguredBudget, file: Path, text: str, caplog: pytest.LogCaptureFixture
):
    file.write_text(text)
    with caplog.at_level(logging.ERROR):
        assert [cap(configured) for _ in range(4)] == [1000] * 4
    assert [record.__dict__["action"] for record in caplog.records] == ["budget_unreadable"]

    file.write_text("[budget]\ntokens_per_day = 99\n")
    assert [cap(configured) for _ in range(2)] == [1000, 99]


def test_a_writer_does_not_begin_with_a_budget_that_cannot_be_read(tmp_path: Path):
    (tmp_path / "config.toml").write_text("[budget]\nkind.dream = {}\n")
    with pytest.raises(Invalid, match="no such job kind"):
        ConfiguredBudget(Settings(data_dir=tmp_path), ("distill",))
