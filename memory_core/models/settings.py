"""The settings of `[models]`: which provider, which model, whose key. Everything is off until one is named."""

from __future__ import annotations

import importlib.util
import ipaddress
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memory_core import config, limits
from memory_core.clock import Clock
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import Invalid
from memory_core.models import local_files, vendors
from memory_core.models.embedder import WiredEmbedder
from memory_core.models.language_model import WiredLanguageModel
from memory_core.models.port import Cancel, Embedder, LanguageModel, Meter, NoMeter, never
from memory_core.models.wire import Access, Vendor, embedding_vendors, language_vendors
from memory_core.registry import Registry, discover

W = TypeVar("W")
_SECTION = "models"
#: The provider on this machine, and the word for none at all.
LOCAL = "local"
NOBODY = "none"
#: The language model as a reranker.
BY_MODEL = "model"


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Keys of `[models]`; each is also `MEMORYD_MODELS__<KEY>`. Reference: `docs/models.md`."""

    #: Who answers prompts; empty means nobody.
    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key_file: str = ""
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = limits.MODEL_CALL_SECONDS
    max_output_tokens: int = limits.MODEL_OUTPUT_TOKENS
    context_tokens: int = limits.MODEL_CONTEXT_TOKENS
    #: Who makes vectors; empty means the local embedder where it is installed, `none` nobody.
    embed_provider: str = ""
    embed_model: str = ""
    embed_base_url: str = ""
    embed_api_key_file: str = ""
    embed_api_key: str = field(default="", repr=False)
    embed_dimensions: int = 0
    embed_document_prefix: str = ""
    embed_query_prefix: str = ""
    #: What judges the best hits of a search once more: `model`, the language model; empty or `none`: nothing.
    reranker: str = ""


def read_settings(settings: config.Settings, environ: Mapping[str, str] | None = None) -> ModelSettings:
    """`[models]` of the configuration file, under the environment.

    Raises `Invalid` for a key that nobody reads, a value of the wrong type or out of its range, a provider that there
    is none of, a model or an address that the provider needs and that is missing, and a key that stands in the file.
    """
    told = config.section(settings, _SECTION, environ)
    in_file = config.section(settings, _SECTION, {})
    types: dict[str, type[Any]] = {f.name: type(f.default) for f in fields(ModelSettings)}
    if unknown := sorted(set(told) - set(types)):
        raise Invalid(f"[{_SECTION}] has no key {', '.join(unknown)}; there are: {', '.join(sorted(types))}")
    for name in ("api_key", "embed_api_key"):
        if in_file.get(name):
            raise Invalid(f"[{_SECTION}] {name} does not belong into a configuration file; use {name}_file")
    read = ModelSettings(**{name: _value(name, value, types[name]) for name, value in told.items()})
    read = replace(
        read,
        embed_provider=_embed_provider(read.embed_provider, settings),
        reranker="" if read.reranker == NOBODY else read.reranker,
    )
    _check(read)
    return read


def _embed_provider(told: str, settings: config.Settings) -> str:
    """What is meant: without a word the local embedder, where it is installed."""
    if told:
        return "" if told == NOBODY else told
    return LOCAL if local_files.built_in(settings.models) is not None else ""


def choose(
    read: ModelSettings, clock: Clock, meter: Meter | None = None, cancelled: Cancel = never
) -> LanguageModel | None:
    """The language model that the settings name, or None. Connects to nothing. `cancelled` ends its calls, beside what each
    caller gives.

    Raises `Invalid` where the vendor's client is not installed, the key cannot be read, or a setting is missing.
    """
    if not read.provider:
        return None
    vendor = _installed(_vendor(language_vendors, "provider", read.provider))
    model, base_url = _language_place(read, vendor)
    key = _key(vendor, read.provider, read.api_key, read.api_key_file, "api_key")
    access = Access(model=model, base_url=base_url, api_key=key)
    return WiredLanguageModel(
        name=read.provider,
        model=model,
        wire=vendor.connect(access),
        clock=clock,
        meter=meter or NoMeter(),
        cancelled=cancelled,
        max_output_tokens=read.max_output_tokens,
        timeout_seconds=read.timeout_seconds,
        context_tokens=read.context_tokens,
    )


def choose_embedder(
    read: ModelSettings,
    clock: Clock,
    meter: Meter | None = None,
    cancelled: Cancel = never,
    *,
    settings: config.Settings | None = None,
    timeout_seconds: float | None = None,
) -> Embedder | None:
    """The embedder that the settings name, or None. As `choose`. A local one needs to know where its files are (`settings`), and
    nobody meters it.

    The key, its file and the base URL of the language model serve here too where both are of one provider.
    """
    if not read.embed_provider:
        return None
    vendor = _installed(_vendor(embedding_vendors, "embed_provider", read.embed_provider))
    model, base_url = _embedding_place(read, vendor)
    local = None
    if vendor.is_local and settings is not None:
        local = local_files.find(settings.models, model)
        model = local.identity
    is_same = read.embed_provider == read.provider
    has_own_key = bool(read.embed_api_key or read.embed_api_key_file) or not is_same
    key = _key(
        vendor,
        read.embed_provider,
        read.embed_api_key if has_own_key else read.api_key,
        read.embed_api_key_file if has_own_key else read.api_key_file,
        "embed_api_key",
    )
    access = Access(
        model=model,
        base_url=base_url,
        api_key=key,
        dimensions=read.embed_dimensions,
        local=local,
        run_dir=None if settings is None else settings.run_dir,
    )
    return WiredEmbedder(
        name=read.embed_provider,
        model=model,
        dimensions=read.embed_dimensions or (local.manifest.dimensions if local else 0),
        wire=vendor.connect(access),
        clock=clock,
        meter=(None if vendor.is_local else meter) or NoMeter(),
        cancelled=cancelled,
        timeout_seconds=read.timeout_seconds if timeout_seconds is None else timeout_seconds,
        prefixes={"document": read.embed_document_prefix, "query": read.embed_query_prefix},
        endpoint=base_url,
    )


def embedding_model(read: ModelSettings, settings: config.Settings) -> EmbeddingModel | None:
    """What the vectors of the configured embedder are comparable with; None where none is configured. Asks for no key and no
    client. Raises `Invalid` where a local model is not there."""
    if not read.embed_provider:
        return None
    vendor = _vendor(embedding_vendors, "embed_provider", read.embed_provider)
    model, base_url = _embedding_place(read, vendor)
    dimensions = read.embed_dimensions
    if vendor.is_local:
        local = local_files.find(settings.models, model)
        model, dimensions = local.identity, local.manifest.dimensions
    return EmbeddingModel(
        provider=read.embed_provider,
        endpoint=base_url,
        model=model,
        dimensions=dimensions,
        document_prefix=read.embed_document_prefix,
    )


def open_key_files(read: ModelSettings) -> list[str]:
    """Which of the keys' files others than their owner may read: one sentence each. Files that are not here say nothing."""
    named = {
        "api_key_file": "" if read.api_key else read.api_key_file,
        "embed_api_key_file": "" if read.embed_api_key else read.embed_api_key_file,
    }
    return [
        f"[{_SECTION}] {name}: others than its owner may read {file}; run: chmod 600 {shlex.quote(file)}"
        for name, file in named.items()
        if file and _is_open(Path(file))
    ]


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def known_providers() -> tuple[list[str], list[str]]:
    """The names that `provider` and `embed_provider` may have."""
    discover(vendors)
    return language_vendors.names(), embedding_vendors.names()


def _check(read: ModelSettings) -> None:
    if read.reranker not in ("", BY_MODEL):
        raise Invalid(f"[{_SECTION}] reranker is one of: {NOBODY}, {BY_MODEL}")
    if read.reranker and not read.provider:
        raise Invalid(f"[{_SECTION}] reranker = {BY_MODEL!r} needs a language model; name its provider")
    # What only the workers have, a client and a key, is not asked for here.
    if read.provider:
        _language_place(read, _vendor(language_vendors, "provider", read.provider))
    if read.embed_provider:
        vendor = _vendor(embedding_vendors, "embed_provider", read.embed_provider)
        _embedding_place(read, vendor)
        if vendor.needs_base_url and not read.embed_dimensions:
            raise Invalid(
                f"[{_SECTION}] embed_dimensions is missing: how long the vectors of {read.embed_model} are"
            )
    for name, least, most in (
        ("timeout_seconds", 1, limits.MODEL_CALL_SECONDS_MAX),
        ("max_output_tokens", 1, limits.MODEL_OUTPUT_TOKENS_MAX),
        ("context_tokens", 1, limits.MODEL_CONTEXT_TOKENS_MAX),
        ("embed_dimensions", 0, limits.EMBED_DIMENSIONS_MAX),
    ):
        if not least <= getattr(read, name) <= most:
            raise Invalid(f"[{_SECTION}] {name} must lie between {least} and {most:.10g}")


def _value(name: str, value: Any, wanted: type[Any]) -> Any:
    """A value of the file as it is, one of the environment (text) as what it means."""
    # The value is not repeated: a key may have been put here by mistake.
    wrong = Invalid(f"[{_SECTION}] {name} must be of type {wanted.__name__}")
    if wanted is str:
        if not isinstance(value, str):
            raise wrong
        return value if name.endswith("_prefix") else value.strip()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong
    if wanted is int and isinstance(value, float):
        raise wrong
    try:
        return wanted(value)
    except ValueError:
        raise wrong from None


def _vendor(registry: Registry[Vendor[W]], key: str, name: str) -> Vendor[W]:
    discover(vendors)
    if name not in registry:
        raise Invalid(
            f"[{_SECTION}] {key} = {name!r}: there is none; choose one of {', '.join(registry.names())}"
        )
    return registry.get(name)


def _installed(vendor: Vendor[W]) -> Vendor[W]:
    if not _is_installed(vendor.module):
        raise Invalid(f"{vendor.title} needs its client; install it: pip install 'memoryd[{vendor.extra}]'")
    return vendor


def _language_place(read: ModelSettings, vendor: Vendor[Any]) -> tuple[str, str]:
    """The model and the base URL of the language model, the latter empty where it is the vendor's own."""
    return _model(vendor, read.model, "model"), _url(vendor, read.base_url, "base_url")


def _embedding_place(read: ModelSettings, vendor: Vendor[Any]) -> tuple[str, str]:
    """The same of the embedder; the language model's address serves where both are of one provider."""
    shared = read.base_url if read.embed_provider == read.provider else ""
    return (
        _model(vendor, read.embed_model, "embed_model"),
        _url(vendor, read.embed_base_url or shared, "embed_base_url"),
    )


def _model(vendor: Vendor[Any], told: str, name: str) -> str:
    if model := told or vendor.default_model:
        return model
    raise Invalid(f"[{_SECTION}] {name} is missing: {vendor.title} has no model of its own choice")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _key(vendor: Vendor[Any], provider: str, key: str, file: str, name: str) -> str:
    if file and not key:
        key = _key_in(Path(file), f"{name}_file")
    if not key and vendor.needs_key:
        raise Invalid(
            f"{provider} needs an API key: name a file that holds it, [{_SECTION}] {name}_file,"
            f" or set MEMORYD_MODELS__{name.upper()}"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Invalid(f"the API key of {provider} holds a blank or a character that no key has")
    return key


def _key_in(file: Path, name: str) -> str:
    if not file.is_absolute():
        # The server's processes have a home and a working directory of their own.
        raise Invalid(f"[{_SECTION}] {name} must be an absolute path, without ~")
    try:
        with file.open("rb") as opened:
            content = opened.read(limits.API_KEY_MAX_BYTES + 1)
        text = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Invalid(f"[{_SECTION}] {name}: {file} cannot be read: {reason}") from None
    if not text or len(content) > limits.API_KEY_MAX_BYTES:
        raise Invalid(f"[{_SECTION}] {name}: {file} must hold the key and nothing else")
    return text


def _url(vendor: Vendor[Any], text: str, name: str) -> str:
    """Plain HTTP carries a key in clear: only on this machine, or to a server of one's own."""
    if not text:
        if vendor.needs_base_url:
            raise Invalid(f"[{_SECTION}] {name} is missing, for example http://127.0.0.1:11434/v1")
        return ""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise Invalid(f"[{_SECTION}] {name} is no URL") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise Invalid(f"[{_SECTION}] {name} must be an http or https URL without ? and #")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"[{_SECTION}] {name} must not hold a user or password; use the key's file")
    if parts.scheme == "http" and not vendor.needs_base_url and not _is_loopback(host):
        raise Invalid(f"[{_SECTION}] {name} must be https: the API key travels with each request")
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
