"""Bodies: bounded, one JSON dialect, and errors instead of surprises."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from flask import Request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.test import EnvironBuilder

from memory_core import limits
from memory_core.errors import Invalid
from web.bodies import READ_MAX_BYTES, parse_json, read_body

RequestFactory = Callable[..., Request]


@pytest.fixture
def request_of() -> RequestFactory:
    def make(body: bytes, **headers: str) -> Request:
        builder = EnvironBuilder(
            method="POST", data=body, headers={"Content-Type": "application/json"} | headers
        )
        request = Request(builder.get_environ())
        request.max_content_length = READ_MAX_BYTES
        return request

    return make


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"  \n",
        b"{",
        b'{"a":"cut',
        b"{} {}",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":"caf\xe9"}',
        b'{"n":' + b"9" * 5_000_000 + b"}",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 65 + b"]" * 65,
        b'{"a":"\xed\xa0\x80"}',
        b"[" + b"[]," * limits.JSON_CONTAINERS_MAX + b"0]",
        b'{"a":"' + b'\\"' * 2_000_000 + b"[" * limits.JSON_CONTAINERS_MAX + b"[",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_cannot_be_stored_is_invalid_and_nothing_else(text: bytes) -> None:
    with pytest.raises(Invalid):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (rb'{"a":"half \ud83d end"}', {"a": "half � end"}),
        (rb'{"a":"\ude00 \ud83d\ude00 \\ud83d"}', {"a": "� 😀 \\ud83d"}),
        (rb'{"a":"\ud83d\ud83d\ude00"}', {"a": "�😀"}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"n":' + b"9" * 40 + b"}", {"n": int("9" * 40)}),
        (b"[1]", [1]),
        (b'{"a":"' + b"[{" * 500 + b'"}', {"a": "[{" * 500}),
    ],
)
def test_what_agents_really_send_is_read(text: bytes, value: Any) -> None:
    assert parse_json(text) == value


def test_brackets_in_texts_and_as_many_lists_as_there_may_be_are_read() -> None:
    text = '\\" [' * limits.JSON_CONTAINERS_MAX
    assert parse_json(b'{"a":"' + text.encode() + b'","b":[]}') == {"a": text.replace("\\", ""), "b": []}
    assert (
        len(parse_json(b"[" + b"[]," * (limits.JSON_CONTAINERS_MAX - 1) + b"0]"))
        == limits.JSON_CONTAINERS_MAX
    )


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert parse_json(b"[" * limits.JSON_DEPTH_MAX + b"]" * limits.JSON_DEPTH_MAX)


def test_a_body_longer_than_the_limit_is_refused_before_it_is_read(request_of: RequestFactory) -> None:
    request = request_of(b"{}")
    request.environ["CONTENT_LENGTH"] = str(limits.REQUEST_BODY_MAX_BYTES + 1)
    request.environ["wsgi.input"] = untouched = _Endless()
    with pytest.raises(RequestEntityTooLarge):
        read_body(request)
    assert untouched.given == 0


def test_a_chunked_body_is_read_only_up_to_the_limit(request_of: RequestFactory) -> None:
    request = request_of(b"")
    endless = _Endless()
    request.environ.pop("CONTENT_LENGTH", None)
    request.environ |= {
        "wsgi.input": endless,
        "wsgi.input_terminated": True,
        "HTTP_TRANSFER_ENCODING": "chunked",
    }
    with pytest.raises(RequestEntityTooLarge):
        read_body(request)
    assert endless.given <= limits.REQUEST_BODY_MAX_BYTES + limits.MIB


def test_a_body_that_ends_early_is_not_taken_for_a_whole_one(request_of: RequestFactory) -> None:
    request = request_of(b"{}")
    request.environ["CONTENT_LENGTH"] = "20"
    with pytest.raises((Invalid, BadRequest)):
        read_body(request)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Encoding": "gzip"},
        {"Content-Type": "text/html"},
    ],
    ids=str,
)
def test_forms_and_compressed_bodies_are_not_taken(
    request_of: RequestFactory, headers: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedMediaType):
        read_body(request_of(b"--x--", **headers))


class _Endless(BytesIO):
    """A client that never stops sending, and counts what was taken from it."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None, "reads without a limit"
        assert size >= 0, "reads without a limit"
        self.given += size
        return b"x" * size

    def readinto(self, buffer: Any) -> int:
        self.given += len(buffer)
        buffer[:] = b"x" * len(buffer)
        return len(buffer)
