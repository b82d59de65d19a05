"""`[budget]` of the configuration file, and its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import limits
from memory_core.config import Settings
from memory_core.domain.budget import Allowance, Budget, Cap, Price
from memory_core.errors import Invalid
from memory_core.models.budget_settings import read_budget
from memory_core.store.model_budget import text_of


def read(tmp_path: Path, text: str = "", **environ: str) -> Budget:
    (tmp_path / "config.toml").write_text(text)
    variables = {f"MEMORYD_BUDGET__{name}": value for name, value in environ.items()}
    return read_budget(Settings(data_dir=tmp_path), variables, kinds=("consolidate", "distill"))


def test_where_nothing_is_said_there_is_a_cap_of_tokens_and_none_of_money(tmp_path: Path):
    assert read(tmp_path) == Budget()
    assert Budget().day == Cap(tokens=limits.BUDGET_TOKENS_PER_DAY, money=None)


def test_everything_that_can_be_said(tmp_path: Path):
    found = read(
        tmp_path,
        """
        [budget]
        tokens_per_day = 2_000_000
        money_per_day = 1.5
        project_tokens_per_day = 500_000
        project_money_per_day = 0.25
        currency = "EUR"
        backlog_max = 50
        project."default/site" = { tokens_per_day = 900_000 }
        kind.consolidate = { calls_per_session = 2, tokens_per_100_observations = 20_000 }
        price."openai:gpt-x" = { input = 1.25, output = 10, cached = 0.125 }
        price."ollama:*" = { input = 0, output = 0 }
        """,
    )

    assert found == Budget(
        day=Cap(tokens=2_000_000, money=1_500_000),
        project=Cap(tokens=500_000, money=250_000),
        projects={"default/site": Cap(tokens=900_000)},
        kinds={"consolidate": Allowance(calls_per_session=2.0, tokens_per_100_observations=20_000.0)},
        prices={
            "openai:gpt-x": Price(input=1_250_000, output=10_000_000, cached=125_000),
            "ollama:*": Price(input=0, output=0, cached=0),
        },
        currency="EUR",
        backlog_max=50,
    )
    assert found.of_project("default/site") == Cap(tokens=900_000, money=250_000)


def test_variables_win_and_tables_are_json_there(tmp_path: Path):
    found = read(
        tmp_path,
        "[budget]\ntokens_per_day = 5\nmoney_per_day = 1\n",
        TOKENS_PER_DAY="7_000",
        MONEY_PER_DAY="none",
        PRICE='{"openai:gpt-x": {"input": 0.1, "output": 0.3}}',
    )

    assert found.day == Cap(tokens=7_000, money=None)
    assert found.prices == {"openai:gpt-x": Price(input=100_000, output=300_000, cached=100_000)}


def test_none_takes_a_cap_away(tmp_path: Path):
    found = read(tmp_path, '[budget]\ntokens_per_day = "none"\nbacklog_max = "none"\n')

    assert found.day.tokens is None
    assert found.backlog_max is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tokens_a_day = 5", "no key tokens_a_day"),
        ("tokens_per_day = -1", "tokens_per_day must be a number from 0 on"),
        ("tokens_per_day = 1.5", "tokens_per_day must be a whole number"),
        ("tokens_per_day = true", "tokens_per_day must be a number"),
        ("money_per_day = nan", "money_per_day must be a number"),
        ("money_per_day = inf", "money_per_day must be a number"),
        ('money_per_day = "a lot"', "money_per_day must be a number"),
        ("currency = 5", "currency is a label"),
        ("price = 5", "price must be a table"),
        ('price."gpt-x" = { input = 1, output = 1 }', "provider:model"),
        ('price."openai:gpt-x" = { input = 1 }', "without output"),
        ('price."openai:gpt-x" = { input = 1, output = 1, thinking = 2 }', "no key thinking"),
        ('price."openai:gpt-x" = { input = "free", output = 1 }', "input must be a number"),
        ("kind.lunch = { calls_per_session = 1 }", "no such job kind; there are: consolidate, distill"),
        ("kind.distill = { calls_per_hour = 1 }", "no key calls_per_hour"),
        ("kind.distill = 5", "must be a table"),
        ("project.site = { tokens_per_day = 1 }", "workspace/project"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, line: str, said: str):
    with pytest.raises(Invalid, match=said):
        read(tmp_path, f"[budget]\n{line}\n")


def test_equal_budgets_are_equal_texts(tmp_path: Path):
    one = read(tmp_path, '[budget]\nprice."a:x" = {input=1,output=1}\nprice."b:y" = {input=2,output=2}\n')
    two = read(tmp_path, '[budget]\nprice."b:y" = {input=2,output=2}\nprice."a:x" = {output=1,input=1}\n')

    assert text_of(one) == text_of(two)
    assert text_of(one) != text_of(Budget())
