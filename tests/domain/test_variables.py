"""A misspelt variable is said with the one that is meant, and refused where a process reads its settings."""

from __future__ import annotations

import pytest

from memory_core import config
from memory_core.config import unknown_variables
from memory_core.errors import Invalid


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MEMORYD_DATADIR", "MEMORYD_DATA_DIR"),
        ("MEMORYD_PROT", "MEMORYD_PORT"),
        ("MEMORYD_TOKN_FILE", "MEMORYD_TOKEN_FILE"),
        ("MEMORYD_MODLES__PROVIDER", "MEMORYD_MODELS__PROVIDER"),
        ("MEMORYD_LOGLEVEL", "MEMORYD_LOG_LEVEL"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_one_that_is_meant(written: str, meant: str, tmp_path):
    assert unknown_variables({written: "x"}) == {written: meant}
    with pytest.raises(Invalid, match=f"{written} is no setting; {meant} is"):
        config.load({"data_dir": tmp_path}, {written: "x"})


@pytest.mark.parametrize("name", ["MEMORYD_SOMETHING_ELSE", "MEMORYD_", "MEMORYD_WEATHER__TODAY"])
def test_a_variable_that_is_like_no_other_stops_nothing(name: str, tmp_path):
    assert unknown_variables({name: "x"}) == {name: None}
    assert config.load({"data_dir": tmp_path}, {name: "x"}).data_dir == tmp_path


def test_what_is_known_and_what_others_say_is_passed_over(tmp_path):
    settings = config.load({"data_dir": tmp_path}, {})
    others = {
        "MEMORYD_SERVICE_HOST": "10.0.0.1",
        "MEMORYD_PORT_49374_TCP_ADDR": "10.0.0.1",
        "MEMORYD_TEST_MUTANT": "x",
        "MEMORYD_TOKEN": "x",
        "MEMORYD_IGNORE_MARKER": "1",
        "MEMORYD_MODELS__API_KEY": "x",
        "HOME": "/",
        "memoryd_port": "1",
    }

    assert unknown_variables({**settings.environment(), **others}) == {}
