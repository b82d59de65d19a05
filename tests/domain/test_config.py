"""Settings: what wins over what, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import config
from memory_core.errors import Invalid


def write(data_dir: Path, text: str) -> dict[str, str]:
    (data_dir / "config.toml").write_text(text, encoding="utf-8")
    return {"MEMORYD_DATA_DIR": str(data_dir)}


def test_without_a_file_the_defaults_hold(tmp_path: Path):
    settings = config.load(environ={"MEMORYD_DATA_DIR": str(tmp_path)})

    assert settings.port == config.DEFAULT_PORT
    assert config.section(settings, "schedules", environ={}) == {}


def test_an_option_wins_over_the_environment_and_that_over_the_file(tmp_path: Path):
    environ = write(tmp_path, '[server]\nport = 5001\nlog_level = "DEBUG"\nallowed_hosts = ["a.test"]\n')

    assert config.load(environ=environ).port == 5001
    assert config.load(environ=environ).allowed_hosts == ("a.test",)
    assert config.load(environ={**environ, "MEMORYD_PORT": "5002"}).port == 5002
    assert config.load({"port": 5003}, environ={**environ, "MEMORYD_PORT": "5002"}).port == 5003


def test_a_file_elsewhere_is_read_where_it_is_named(tmp_path: Path):
    (tmp_path / "other.toml").write_text("[server]\nport = 5004\n", encoding="utf-8")

    named = config.load({"config_file": str(tmp_path / "other.toml")}, environ=write(tmp_path, ""))

    assert named.port == 5004


def test_a_variable_wins_over_the_file_key_by_key(tmp_path: Path):
    settings = config.load(environ=write(tmp_path, '[models]\nprovider = "a"\nmodel = "b"\n'))

    found = config.section(settings, "models", environ={"MEMORYD_MODELS__MODEL": "c", "MEMORYD_PORT": "1"})

    assert found == {"provider": "a", "model": "c"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server\n", "no valid TOML"),
        ("[servr]\nport = 1\n", r"nobody reads \[servr\]"),
        ("[server]\nprot = 1\n", "no setting 'prot'"),
        ('[server]\nport = "x"\n', "port must be of type int"),
        ('[server]\ndata_dir = "/x"\n', "no setting 'data_dir'"),
        ("server = 1\n", "must be a table"),
    ],
)
def test_a_slip_in_the_file_is_named(tmp_path: Path, text: str, said: str):
    with pytest.raises(Invalid, match=said):
        config.load(environ=write(tmp_path, text))


def test_a_user_without_a_home_is_asked_where_the_data_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)

    with pytest.raises(Invalid, match="MEMORYD_DATA_DIR"):
        config.default_data_dir({})
    assert config.default_data_dir({"XDG_DATA_HOME": "/x"}) == Path("/x/memoryd/data")
