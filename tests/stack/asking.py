"""Plain requests to the servers of a stack."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any


def ask(url: str, basic: str = "", *, bearer: str = "", data: bytes | None = None) -> tuple[int, bytes]:
    """Status and body; status 0 where nobody answers. `basic` is `user:password`; with `data` it is a POST of JSON."""
    request = urllib.request.Request(url, data=data)
    request.add_header("Content-Type", "application/json")
    if basic:
        request.add_header("Authorization", "Basic " + base64.b64encode(basic.encode()).decode())
    elif bearer:
        request.add_header("Authorization", f"Bearer {bearer}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 0, b""


def tasks(url: str, basic: str) -> list[dict[str, Any]]:
    """The tasks that Flower at `url` has heard of."""
    status, body = ask(f"{url}/api/tasks?limit=500", basic)
    assert status == 200, status
    return list(json.loads(body).values())
