"""What we depend on: licences from an allow list, everything pinned by hash, no index named."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Substrings of licence expressions and classifiers that we accept.
ALLOWED = (
    "MIT",
    "BSD",
    "Apache",
    "ISC",
    "PSF",
    "Python Software Foundation",
    "MPL-2.0",
    "Mozilla Public License 2.0",
    "Unlicense",
    "zlib",
    "0BSD",
    "CC0",
    "LGPL-3.0",  # only if linked dynamically and unmodified
    "The Unlicense",
)
#: Packages whose metadata states no licence; read in their source distribution by hand.
STATED_ELSEWHERE: dict[str, str] = {}


def locked(file: str = "requirements-dev.lock") -> dict[str, str]:
    """Package name → pinned version, of those that the lock file names for this platform or any other."""
    text = (ROOT / file).read_text()
    return {
        name.lower(): version
        for name, version in re.findall(r"^([A-Za-z0-9_.\-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, re.M)
    }


def licence_of(name: str) -> str:
    meta = metadata.metadata(name)
    classifiers = [c for c in meta.get_all("Classifier") or [] if c.startswith("License")]
    short = (meta.get("License") or "")[:200]
    return " | ".join(filter(None, [meta.get("License-Expression"), *classifiers, short]))


def test_every_dependency_has_a_licence_that_we_accept():
    refused = {}
    for name in locked():
        try:
            licence = licence_of(name)
        except metadata.PackageNotFoundError:
            continue  # another platform's
        if name not in STATED_ELSEWHERE and not any(word.lower() in licence.lower() for word in ALLOWED):
            refused[name] = licence

    assert refused == {}


def test_most_of_the_lock_is_installed_here():
    installed = {d.metadata["Name"].lower().replace("_", "-") for d in metadata.distributions()}
    missing = [
        name
        for name in locked()
        if name.replace("_", "-").replace(".", "-") not in installed and name not in installed
    ]

    assert len(missing) < 12, missing


def test_each_pin_carries_hashes_and_no_index_is_named():
    text = (ROOT / "requirements-dev.lock").read_text()

    assert text.count("--hash=sha256:") > len(locked())
    assert "--index-url" not in text
    assert "://" not in text


def test_a_server_and_the_image_get_the_same_versions_as_the_tests():
    assert locked("requirements.lock").items() <= locked().items()
    assert (
        locked("requirements.lock").items() <= locked("requirements-image.lock").items() <= locked().items()
    )


def test_what_pyproject_asks_for_is_in_the_lock():
    wanted = re.findall(
        r'^    "([A-Za-z0-9_.\-]+)', (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0], re.M
    )

    assert [
        name
        for name in wanted
        if name != "memoryd"
        and name.lower().replace(".", "-").replace("_", "-") not in locked()
        and name.lower() not in locked()
    ] == []
