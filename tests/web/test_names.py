"""Host and Origin: who may be meant, and from whose page."""

from __future__ import annotations

import pytest

from web.names import Names

HOST = {"HTTP_HOST": "127.0.0.1:49374"}


@pytest.fixture
def names() -> Names:
    return Names("127.0.0.1", ["memory.test", "[fd00::1]:8443"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:49374",
        "localhost:1",
        "LOCALHOST",
        "[::1]:49374",
        "::1",
        "memory.test",
        "memory.test:443",
    ],
)
def test_own_names_are_answered(names: Names, host: str) -> None:
    assert names.refusal({"HTTP_HOST": host}) is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("", 400),
        ("127.0.0.1, evil.test", 400),
        ("evil.test:49374", 403),
        ("localhost.evil.test", 403),
        ("127.0.0.1.evil.test", 403),
        ("127.0.0.1:x", 403),
        ("notlocalhost", 403),
        ("[::2]", 403),
        ("[::1].evil.test", 403),
        ("[::1]x:49374", 403),
        ("[::1", 403),
    ],
)
def test_other_names_are_not(names: Names, host: str, status: int) -> None:
    refusal = names.refusal({"HTTP_HOST": host})
    assert refusal is not None
    assert refusal[0] == status


def test_the_request_lines_authority_counts_too(names: Names) -> None:
    assert names.refusal(HOST | {"RAW_URI": "http://evil.test/readyz"}) == (400, "ambiguous Host header")
    assert names.refusal(HOST | {"RAW_URI": "http://127.0.0.1:49374/x"}) is None
    assert names.refusal(HOST | {"RAW_URI": "/hook?url=http://evil.test"}) is None


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:49374", "https://memory.test", "http://memory.test:8080"]
)
def test_pages_of_this_server_may_ask(names: Names, origin: str) -> None:
    assert names.refusal(HOST | {"HTTP_ORIGIN": origin}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.test",
        "http://127.0.0.1:3000",
        "http://localhost:49374",
        "file://",
        "http://127.0.0.1:49374.evil.test",
        "http://user@127.0.0.1:49374",
        "http://127.0.0.1:49374/path",
        "chrome-extension://memory.test",
        "http://[",
    ],
)
def test_other_pages_may_not(names: Names, origin: str) -> None:
    refusal = names.refusal(HOST | {"HTTP_ORIGIN": origin})
    assert refusal is not None
    assert refusal[0] == 403


def test_a_forwarded_host_is_not_believed(names: Names) -> None:
    environ = {
        "HTTP_HOST": "evil.test",
        "HTTP_X_FORWARDED_HOST": "127.0.0.1",
        "HTTP_X_FORWARDED_FOR": "127.0.0.1",
    }
    refusal = names.refusal(environ)
    assert refusal is not None
    assert refusal[0] == 403


def test_a_server_bound_to_everything_is_not_named_so() -> None:
    everything = "0.0.0.0"  # noqa: S104
    assert Names(everything, []).refusal({"HTTP_HOST": "0.0.0.0:49374"}) is not None
