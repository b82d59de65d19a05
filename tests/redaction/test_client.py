from __future__ import annotations

import base64
import os
import re
import secrets
import subprocess
import sys

import pytest

from memory_core.domain import token
from memory_core.redaction.client import redact, redact_json

KEY = bytes(range(32))
MARKER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{4}\]")


def random_text(length: int) -> str:
    return (
        base64.b32encode(os.urandom(length)).decode()[:length].swapcase()[: length // 2]
        + secrets.token_hex(length)[: length - length // 2]
    )


def test_a_token_of_ours_is_found() -> None:
    text = token.mint().text

    redacted = redact(f"curl -H 'X: {text}' http://localhost", KEY)

    assert text not in redacted.text
    assert redacted.counts == {"memoryd_token": 1}


def test_equal_secrets_have_equal_markers_under_one_key_only() -> None:
    value = random_text(32)
    once = redact(f"API_KEY={value} and again api_key: {value}", KEY).text
    other = redact(f"API_KEY={value}", b"another key").text

    markers = MARKER.findall(once)

    assert len(markers) == 2
    assert len(set(markers)) == 1
    assert markers[0] not in other


@pytest.mark.parametrize(
    "text",
    [
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "a risk-based task-list, apiKey: import.meta.env.VITE_KEY, password policy doc",
        "cat ~/.ssh/id_ed25519.pub; ls ~/.aws/credentials",
        "password = os.environ['DB_PASSWORD']",
        "token: ${{ secrets.NPM_TOKEN }}",
        "api_key = settings.api_key",
        "session 0198c5f2-7c1e-7000-8000-0123456789ab ended",
        "max_tokens=4096 and token_count: 12",
        "",
        "\ud800 lone surrogate is not a secret"[1:],
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redacted = redact(text, KEY)

    assert redacted.text == text
    assert redacted.counts == {}


def test_a_json_value_keeps_its_shape() -> None:
    value = random_text(24)
    payload = {"tool": "Bash", "n": 3, "none": None, "list": [1.5, True, {"password": value, "x": "plain"}]}

    redacted = redact_json(payload, KEY)

    inner = redacted.value["list"][2]
    assert MARKER.fullmatch(inner["password"])
    assert redacted.value == {**payload, "list": [1.5, True, {**inner, "x": "plain"}]}


def test_a_key_block_that_is_spread_over_a_list_is_found() -> None:
    body = [base64.b64encode(os.urandom(48)).decode() for _ in range(6)]
    label = "PRIVATE KEY-----"
    lines = ["$ cat server.key", f"-----BEGIN {label}", *body, f"-----END {label}", "$ ls"]

    redacted = redact_json({"output": lines}, KEY).value["output"]

    assert redacted[0] == "$ cat server.key"
    assert redacted[-1] == "$ ls"
    assert not any(line in str(redacted) for line in body)


def test_a_secret_in_a_key_goes_and_its_value_stays() -> None:
    secret = "ghp_" + random_text(36)

    redacted = redact_json({secret: "used twice"}, KEY).value

    assert secret not in redacted
    assert list(redacted.values()) == ["used twice"]


def test_a_text_that_cannot_be_scanned_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("memory_core.redaction.scan.find", fail)

    assert MARKER.fullmatch(redact("anything at all", KEY).text)
    assert redact("anything at all", KEY).is_unscanned
    shaped = redact_json({"tool": "Bash", "input": ["anything"]}, KEY)
    assert "anything" not in str(shaped.value)
    assert list(shaped.value) == ["tool", "input"]


def test_of_a_long_field_only_the_first_part_is_kept() -> None:
    text = "word " * 100_000

    assert len(redact(text, KEY).text) <= 256 * 1024


def test_the_client_needs_no_installed_package() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from memory_core.redaction.client import redact;"
        "print(redact('DB_PASSWORD=' + sys.argv[2], b'k').text);"
        "print(sorted(m for m in sys.modules if m in ('dataclasses', 'typing_extensions', 're2', 'inspect', 'asyncio')))"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    secret = random_text(20)

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, root, secret], capture_output=True, text=True
    )

    assert done.stderr == ""
    assert secret not in done.stdout
    assert done.stdout.splitlines()[1] == "[]"
