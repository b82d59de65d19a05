"""How much is found and how little is harmed, on invented samples. The figures are in docs/redaction.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_core.redaction import client
from memory_core.redaction.scan import Redacted
from memory_core.redaction.server import Redactor
from tests.redaction.corpus import Maker, score_plain, score_secrets

KEY = bytes(range(32))
SEED = 20_261_130

Redact = Callable[[str], str]


@pytest.fixture(params=["gate", "client"])
def redact(request: pytest.FixtureRequest, gate: Redactor) -> Redact:
    if request.param == "client":
        return lambda text: scanned(client.redact(text, KEY))
    return lambda text: scanned(gate.redact_text(text))


def scanned(redacted: Redacted) -> str:
    # A text that was given up would count as found.
    assert not redacted.is_unscanned
    return redacted.text


def test_secrets_in_usual_places_are_found(redact: Redact) -> None:
    score = score_secrets(Maker(SEED).core(per_kind=6), redact)

    assert score.total > 600
    assert score.share_right >= 0.98, score


def test_secrets_in_awkward_wrappings_are_found(redact: Redact) -> None:
    score = score_secrets(Maker(SEED).listed("hard.txt", 6), redact)

    assert score.share_right >= 0.95, score


@pytest.mark.parametrize("file", ["plain.txt", "fresh_plain.txt", "second_plain.txt", "third_plain.txt"])
def test_what_only_looks_like_a_secret_survives(redact: Redact, file: str) -> None:
    score = score_plain(Maker(SEED).listed(file, 10), redact)

    assert score.share_right >= 0.99, score


@pytest.mark.parametrize(("file", "wanted"), [("fresh.txt", 0.95), ("second.txt", 0.93), ("third.txt", 0.93)])
def test_what_the_blind_sets_taught_is_kept(redact: Redact, file: str, wanted: float) -> None:
    score = score_secrets(Maker(SEED).listed(file, 6), redact)

    assert score.share_right >= wanted, score


def test_the_count_can_fail() -> None:
    samples = Maker(SEED).listed("core.txt", 1)

    assert score_secrets(samples, lambda text: text).share_right == 0
    assert score_plain(samples, lambda _: "").share_right == 0
