"""Which `Host` and which `Origin` are answered: the guard against rebound names and foreign browser pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

_BRACKETED = re.compile(r"\[([0-9a-f:.]+)\](?::[0-9]*)?")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Names:
    """The names of this server: loopback, the address it is bound to, and those that the settings allow."""

    def __init__(self, host: str, allowed: Iterable[str]) -> None:
        bound = () if host in ("0.0.0.0", "::", "") else (host,)  # noqa: S104
        self._configured = frozenset(name.lower() for name in allowed)
        self._allowed = self._configured | frozenset(name.lower() for name in (*LOOPBACK, *bound))

    def refusal(self, environ: Mapping[str, Any]) -> tuple[int, str] | None:
        """Status and reason when this request must not be answered, else None."""
        host = str(environ.get("HTTP_HOST", "")).strip().lower()
        if not host:
            return 400, "missing Host header"
        if "," in host or _is_foreign_target(str(environ.get("RAW_URI", "")), host):
            return 400, "ambiguous Host header"
        if host not in self._allowed and _without_port(host) not in self._allowed:
            return 403, "forbidden host; add it to MEMORYD_ALLOWED_HOSTS if it is yours"
        origin = environ.get("HTTP_ORIGIN")
        if origin is not None and not self._is_own(str(origin).strip().lower(), host):
            return 403, "forbidden origin"
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        """A page of this very server, or of a configured name; another port of localhost is somebody else."""
        try:
            parts = urlsplit(origin)
            has_more = parts.path or parts.query or parts.fragment or parts.username is not None
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or has_more:
            return False
        return parts.netloc == host or bool({parts.netloc, _without_port(parts.netloc)} & self._configured)


def _is_foreign_target(target: str, host: str) -> bool:
    """Whether the request line names another authority than the Host header."""
    if target.startswith("/") or not target or target == "*":
        return False
    return urlsplit(target.lower()).netloc != host


def _without_port(host: str) -> str:
    if host.startswith("["):
        address = _BRACKETED.fullmatch(host)
        return address.group(1) if address else host
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and ":" not in name else host
