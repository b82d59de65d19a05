from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.redaction import client
from memory_core.redaction.scan import OverBudget
from memory_core.redaction.server import Redactor
from tests.redaction.corpus import Maker, leaks

KEY = bytes(range(32))
MARKER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{4}\]")
#: Texts out of which rules, wrappings and markers can arise by chance.
PIECES = st.sampled_from(
    [
        "password", "=", ": ", '"', "'", "token", "\n", " ", "\\n", "\\", "%3D", "<private>", "</private>", "key",
        "[REDACTED:", "[REDACTED:secret:12ab]", "]", "-----BEGIN RSA ", "PRIVATE KEY-----", "-----END ", "Bearer ",
        "https://u:", "@host/", "eyJ", ".", "\x1b[0m", "\u200b", "é", "\ud83d", "sk-", "-p ", "Cookie: a=", "curl -u ",
    ]
)  # fmt: skip
TEXTS = st.lists(
    st.one_of(PIECES, st.text(max_size=12), st.from_regex(r"[A-Za-z0-9+/_=-]{1,40}", fullmatch=True))
).map("".join)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
RELAXED = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(text=TEXTS)
@RELAXED
def test_redacting_twice_changes_nothing(gate: Redactor, text: str) -> None:
    once = gate.redact_text(text)
    again = gate.redact_text(once.text)

    assert not once.is_unscanned
    assert again.text == once.text
    assert again.counts == {}


@given(text=TEXTS)
@RELAXED
def test_redacting_twice_changes_nothing_at_the_client(text: str) -> None:
    once = client.redact(text, KEY)

    assert not once.is_unscanned
    assert client.redact(once.text, KEY).text == once.text


@given(text=TEXTS)
@RELAXED
def test_what_the_client_redacted_the_gate_leaves_marked(gate: Redactor, text: str) -> None:
    sent = client.redact(text, KEY).text

    kept = gate.redact_text(sent).text

    for marker in set(MARKER.findall(sent)):
        assert kept.count(marker) >= 1


@given(value=JSON)
@RELAXED
def test_a_json_value_keeps_its_shape_and_settles(gate: Redactor, value: object) -> None:
    once = gate.redact_value(value)

    assert not once.is_unscanned
    assert shape(once.value) == shape(value)
    assert gate.redact_value(once.value).value == once.value
    json.dumps(once.value).encode()


def shape(value: object) -> object:
    if isinstance(value, dict):
        return ["dict", *map(shape, value.values())]
    if isinstance(value, list):
        return ["list", *map(shape, value)]
    return None if isinstance(value, str | int | float) and not isinstance(value, bool) else type(value)


@given(seed=st.integers(0, 2**32), before=st.text(max_size=60), after=st.text(max_size=60))
@RELAXED
def test_no_vendor_token_survives_in_any_surroundings(
    gate: Redactor, seed: int, before: str, after: str
) -> None:
    maker = Maker(seed)
    secret = maker.sample("x", "«ghp_⟨an:36⟩»").watched[0]
    text = f"{before} {secret} {after}"

    assert secret not in gate.redact_text(text).text
    assert secret not in json.dumps(gate.redact_value({"a": [text], before: text}).value)


@given(text=TEXTS)
@RELAXED
def test_the_result_is_not_much_longer_than_the_text(gate: Redactor, text: str) -> None:
    result = gate.redact_text(text).text

    assert len(result) <= 12 * len(text) + 64


def test_a_secret_under_a_telling_name_is_found_in_json(gate: Redactor) -> None:
    secret = secrets.token_urlsafe(24)
    value = {
        "env": [{"name": "DB_PASSWORD", "value": secret}],
        "nested": json.dumps({"client_secret": secret}),
    }

    redacted = gate.redact_value(value)

    assert secret not in json.dumps(redacted.value)
    assert redacted.counts


def test_a_field_is_looked_at_up_to_its_limit_and_the_rest_is_dropped(gate: Redactor) -> None:
    secret = Maker(3).sample("x", "«glpat-⟨url:20⟩»").watched[0]
    text = ("word " * (limits.FIELD_REDACTED_MAX_BYTES // 5 - 2)) + secret + " tail" * 100

    redacted = gate.redact_text(text).text

    assert len(redacted) <= limits.FIELD_REDACTED_MAX_BYTES
    assert not leaks(secret, redacted)
    assert secret[:12] not in redacted


def test_over_budget_nothing_of_the_text_is_kept(gate: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REDACTION_SECONDS_PER_MIB", 0.0)

    redacted = gate.redact_text("a harmless text")

    assert redacted.is_unscanned
    assert re.fullmatch(r"\[REDACTED:unscanned:[0-9a-f]{4}\]", redacted.text)
    assert redacted.counts == {"unscanned": 1}


@pytest.mark.parametrize("error", [RuntimeError, OverBudget, TimeoutError, MemoryError])
def test_whatever_fails_nothing_of_the_value_is_kept(
    gate: Redactor, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("memory_core.redaction.native.NativeScanner.find", fail)
    value = {"tool_input": {"command": "harmless", "N0isy key": 7}, "list": ["harmless", None, True]}

    redacted = gate.redact_value(value)

    assert redacted.is_unscanned
    assert "harmless" not in str(redacted.value)
    assert "N0isy" not in str(redacted.value)
    assert list(redacted.value) == ["tool_input", "list"]
    assert redacted.value["list"][1:] == [None, True]


def test_too_deep_a_value_is_not_kept(gate: Redactor) -> None:
    value: object = "harmless"
    for _ in range(limits.REDACTED_DEPTH_MAX + 5):
        value = [value]

    redacted = gate.redact_value(value)

    assert redacted.is_unscanned
    assert "harmless" not in str(redacted.value)


ADVERSARIAL = [
    "a", "=", "a=", "key=", "token: \"", "password='", "eyJ-", "eyJa.", "-----BEGIN KEY-----\n", "https://a:",
    "://a:b", "\\n", "\\\\", "%41", "sk-", "Bearer ", "cookie: a=b;", "mysql -u ", "auth=(\"", "<private", "name: key ",
    "\x1b[", "AKIA", "curl ", "kind: secret\n a: ", "[REDACTED:", "-p ", "pass", "QUJD", "://", "\n:5432:",
]  # fmt: skip


@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_time_grows_with_the_length_only(gate: Redactor, piece: str) -> None:
    small, large = 48 * 1024, 4 * 48 * 1024

    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            gate.redact_text(text)
            best = min(best, time.process_time() - start)
        return best

    # Four times the length; quadratic growth would take sixteen times as long.
    assert seconds(large) / seconds(small) < 10


def test_what_the_native_scanner_is_slow_at_ends_with_the_budget(gate: Redactor) -> None:
    start = time.process_time()
    redacted = gate.redact_value([("-----BEGIN RSA " + "PRIVATE KEY-----\n") * 5_000] * 8)
    took = time.process_time() - start

    assert redacted.is_unscanned or redacted.counts
    assert took < 20 * limits.REDACTION_SECONDS_PER_MIB


def test_the_native_scanner_writes_into_its_directory_only(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "data dir" / "rules"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; from memory_core.redaction.server import Redactor;"
        "Redactor(b'k', Path(sys.argv[1])).redact_text('x')"
    )
    environment = {"HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(home)}

    subprocess.run([sys.executable, "-B", "-c", code, str(cache)], env=environment, check=True)

    assert [path.suffix for path in cache.iterdir()] == [".vscdb"]
    assert list(home.rglob("*")) == []
    assert cache.stat().st_mode & 0o077 == 0


class Busy:
    """A native scanner whose wall clock runs out some times before it gets anywhere."""

    def __init__(self, times: int) -> None:
        self.times = times

    def find(self, _data: bytes, _seconds: float) -> list:
        self.times -= 1
        if self.times >= 0:
            raise TimeoutError
        return []


def test_a_busy_machine_costs_no_text(gate: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_native", Busy(4))
    assert gate.redact_text("a harmless text").text == "a harmless text"

    monkeypatch.setattr(gate, "_native", Busy(5))
    assert gate.redact_text("a harmless text").is_unscanned
