"""The table `[models]`: what is read, what is refused, and what is chosen."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from memory_core import config, limits
from memory_core.clock import FakeClock
from memory_core.errors import Invalid
from memory_core.models import local_files
from memory_core.models.settings import (
    ModelSettings,
    choose,
    choose_embedder,
    embedding_model,
    known_providers,
    open_key_files,
    read_settings,
)

KEY = "key-" + "fedcba9876543210" * 2
LOCAL = "http://127.0.0.1:11434/v1"


def read(tmp_path: Path, text: str = "", environ: dict[str, str] | None = None) -> ModelSettings:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return read_settings(config.Settings(data_dir=tmp_path), environ or {})


def test_without_settings_there_is_no_model_where_none_is_installed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(local_files, "built_in", lambda _: None)
    found = read(tmp_path)

    assert choose(found, FakeClock()) is None
    assert choose_embedder(found, FakeClock()) is None


def test_without_settings_the_local_embedder_is_used_where_it_is_installed(tmp_path: Path):
    settings = config.Settings(data_dir=tmp_path)

    embedder = choose_embedder(read_settings(settings, {}), FakeClock(), settings=settings)

    assert embedder is not None
    assert embedder.identity == embedding_model(read_settings(settings, {}), settings)
    assert (embedder.name, embedder.dimensions) == ("local", 384)
    assert embedder.model.startswith("all-minilm-l6-v2@")


def test_the_word_none_switches_the_local_embedder_off(tmp_path: Path):
    found = read(tmp_path, '[models]\nembed_provider = "none"')

    assert choose_embedder(found, FakeClock()) is None
    assert found.embed_provider == ""


def test_a_server_of_ones_own_must_be_told_how_long_vectors_are(tmp_path: Path):
    text = f'[models]\nembed_provider = "openai_compatible"\nembed_model = "m"\nembed_base_url = "{LOCAL}"'

    with pytest.raises(Invalid, match="embed_dimensions is missing"):
        read(tmp_path, text)


def test_a_local_model_that_is_not_there_is_named_with_what_to_do(tmp_path: Path):
    settings = config.Settings(data_dir=tmp_path)
    found = read(tmp_path, '[models]\nembed_provider = "local"\nembed_model = "another"')

    with pytest.raises(Invalid, match=r"no local model 'another'.*memoryd models add"):
        choose_embedder(found, FakeClock(), settings=settings)
    with pytest.raises(Invalid, match="memoryd models add"):
        embedding_model(found, settings)


def test_the_file_says_which(tmp_path: Path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    found = read(
        tmp_path,
        f"""
        [models]
        provider = "anthropic"
        model = "claude-sonnet-5"
        api_key_file = "{tmp_path}/key"
        timeout_seconds = 60
        max_output_tokens = 2000
        context_tokens = 8192
        embed_provider = "openai_compatible"
        embed_model = "nomic-embed-text"
        embed_base_url = "{LOCAL}"
        embed_dimensions = 768
        embed_query_prefix = "search_query: "
        """,
    )

    model, embedder = choose(found, FakeClock()), choose_embedder(found, FakeClock())
    assert model is not None
    assert (model.name, model.model, model.max_output_tokens) == ("anthropic", "claude-sonnet-5", 2000)
    assert model.context_tokens == 8_192
    assert embedder is not None
    assert (embedder.name, embedder.model, embedder.dimensions) == (
        "openai_compatible",
        "nomic-embed-text",
        768,
    )
    assert found.embed_query_prefix == "search_query: "


def test_the_environment_wins_over_the_file(tmp_path: Path):
    found = read(
        tmp_path,
        '[models]\nprovider = "openai"\nmax_output_tokens = 10\n',
        {
            "MEMORYD_MODELS__PROVIDER": "gemini",
            "MEMORYD_MODELS__API_KEY": KEY,
            "MEMORYD_MODELS__MAX_OUTPUT_TOKENS": "99",
            "MEMORYD_MODELS__TIMEOUT_SECONDS": "12.5",
        },
    )

    assert (found.provider, found.max_output_tokens, found.timeout_seconds) == ("gemini", 99, 12.5)
    assert choose(found, FakeClock()) is not None


def test_each_provider_but_those_at_home_has_a_model_of_its_own_choice(tmp_path: Path):
    language, embedding = known_providers()

    for name in language:
        if name != "openai_compatible":
            assert choose(ModelSettings(provider=name, api_key=KEY), FakeClock())
    for name in embedding:
        if name != "openai_compatible":
            read = ModelSettings(embed_provider=name, embed_api_key=KEY)
            assert choose_embedder(read, FakeClock(), settings=config.Settings(data_dir=tmp_path))


def test_one_key_and_address_serve_both_of_one_provider():
    shared = ModelSettings(
        provider="openai", embed_provider="openai", api_key=KEY, base_url="https://proxy.test/v1"
    )

    embedder: Any = choose_embedder(shared, FakeClock())

    assert embedder.wire.access.api_key == KEY
    assert embedder.wire.access.base_url == "https://proxy.test/v1"


def test_a_key_is_not_given_to_another_provider():
    mixed = ModelSettings(provider="anthropic", api_key=KEY, embed_provider="openai")

    with pytest.raises(Invalid, match="openai needs an API key"):
        choose_embedder(mixed, FakeClock())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('provider = "claude"', "choose one of anthropic, gemini, openai, openai_compatible"),
        ('embed_provider = "anthropic"', "choose one of gemini, local, openai, openai_compatible, voyage"),
        ('modell = "x"', "has no key modell"),
        ("model = 7", "model must be of type str"),
        ("max_output_tokens = 1.5", "max_output_tokens must be of type int"),
        ("max_output_tokens = true", "max_output_tokens must be of type int"),
        ("max_output_tokens = 0", "must lie between 1 and 65536"),
        ("context_tokens = 0", "must lie between 1 and 10000000"),
        ("timeout_seconds = 10000", "must lie between 1 and 840"),
        ("timeout_seconds = nan", "must lie between 1 and 840"),
        ("embed_dimensions = -1", "must lie between 0 and"),
        ('provider = "openai_compatible"\nmodel = "m"', "base_url is missing"),
        (f'provider = "openai_compatible"\nbase_url = "{LOCAL}"', "model is missing"),
        ('provider = "openai"\nbase_url = "http://api.test/v1"', "must be https"),
        (f'embed_provider = "openai_compatible"\nembed_base_url = "{LOCAL}"', "embed_model is missing"),
        ('embed_provider = "openai_compatible"\nembed_model = "m"', "embed_base_url is missing"),
        (f'api_key = "{KEY}"', "does not belong into a configuration file"),
        (f'embed_api_key = "{KEY}"', "does not belong into a configuration file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str):
    with pytest.raises(Invalid, match=said) as caught:
        read(tmp_path, f"[models]\n{text}\n")

    assert KEY not in str(caught.value)


def test_a_number_in_the_environment_that_is_none_is_not_repeated(tmp_path: Path):
    with pytest.raises(Invalid, match="max_output_tokens must be of type int") as caught:
        read(tmp_path, "", {"MEMORYD_MODELS__MAX_OUTPUT_TOKENS": KEY})

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "anthropic"}, "needs an API key"),
        ({"provider": "openai_compatible", "model": "m"}, "base_url is missing"),
        ({"provider": "openai_compatible", "base_url": LOCAL}, "model is missing"),
        ({"provider": "openai", "api_key": KEY, "base_url": "http://api.test/v1"}, "must be https"),
        ({"provider": "openai", "api_key": KEY, "base_url": f"https://u:{KEY}@api.test"}, "user or password"),
        ({"provider": "openai", "api_key": KEY, "base_url": "ftp://api.test"}, "http or https"),
        ({"provider": "openai", "api_key": KEY, "base_url": "https://api.test/?k=1"}, "without"),
        ({"provider": "openai", "api_key": KEY, "base_url": "https://api.test:port"}, "no URL"),
        ({"provider": "openai", "api_key": KEY + " x"}, "holds a blank"),
        ({"provider": "openai", "api_key": KEY + "\nX-Other: 1"}, "holds a blank"),
        ({"provider": "openai", "api_key_file": "/nowhere/key"}, "cannot be read"),
        ({"provider": "openai", "api_key_file": "~/key"}, "absolute path"),
        ({"provider": "openai", "api_key_file": "key"}, "absolute path"),
    ],
)
def test_a_choice_that_cannot_work_is_refused_at_once(settings: dict[str, Any], said: str):
    with pytest.raises(Invalid, match=said) as caught:
        choose(ModelSettings(**settings), FakeClock())

    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"k" * (limits.API_KEY_MAX_BYTES + 1)])
def test_a_key_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(Invalid, match="api_key_file"):
        choose(ModelSettings(provider="openai", api_key_file=str(tmp_path / "key")), FakeClock())


def test_a_server_at_home_may_be_reached_in_plain_http():
    home = ModelSettings(provider="openai_compatible", model="m", base_url="http://10.0.0.7:8000/v1/")

    model: Any = choose(home, FakeClock())

    assert model.wire.access.base_url == "http://10.0.0.7:8000/v1"
    assert model.wire.access.api_key == ""


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "anthropic" else found(name, *rest)
    )

    with pytest.raises(Invalid, match=r"pip install 'memoryd\[anthropic\]'"):
        choose(ModelSettings(provider="anthropic", api_key=KEY), FakeClock())


def test_a_key_shows_in_no_text_of_the_settings():
    settings = ModelSettings(provider="openai", api_key=KEY, embed_api_key=KEY)

    assert KEY not in repr(settings)
    assert KEY not in repr(choose(settings, FakeClock()))


@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_key_s_file_that_others_may_read_is_told_of(tmp_path: Path, mode: int, is_open: bool):
    file = tmp_path / "a key"
    file.write_text(KEY)
    file.chmod(mode)

    told = open_key_files(ModelSettings(provider="openai", api_key_file=str(file)))

    assert [f"chmod 600 '{file}'" in sentence for sentence in told] == [True] * is_open
    assert KEY not in str(told)
    # It is not read, or not here.
    assert open_key_files(ModelSettings(api_key=KEY, api_key_file=str(file))) == []
    assert open_key_files(ModelSettings(embed_api_key_file=str(tmp_path / "nothing"))) == []


def test_a_reranker_needs_a_language_model_and_a_known_name(tmp_path: Path):
    settings = config.Settings(data_dir=tmp_path)
    named = {"MEMORYD_MODELS__PROVIDER": "openai"}

    assert read_settings(settings, {}).reranker == ""
    assert read_settings(settings, {"MEMORYD_MODELS__RERANKER": "none"}).reranker == ""
    assert read_settings(settings, named | {"MEMORYD_MODELS__RERANKER": "model"}).reranker == "model"
    for wrong in ({"MEMORYD_MODELS__RERANKER": "model"}, named | {"MEMORYD_MODELS__RERANKER": "other"}):
        with pytest.raises(Invalid, match="reranker"):
            read_settings(settings, wrong)
