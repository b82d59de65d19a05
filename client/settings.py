"""Where the client finds its server: `client.json`, then the environment. Light: the shim reads this at every hook.

No dataclass and no pathlib here: their import would take longer than the rest of the shim.
"""

from __future__ import annotations

import json
import os

DEFAULT_URL = "http://127.0.0.1:49374"


class ClientSettings:
    """What the client was told. `problem` says why a part of it could not be read."""

    __slots__ = ("_token", "config_file", "problem", "redaction_key", "state_dir", "token_file", "url")

    def __init__(
        self,
        *,
        url: str,
        token: str,
        token_file: str,
        redaction_key: bytes,
        state_dir: str,
        config_file: str,
        problem: str = "",
    ) -> None:
        self.url = url
        self._token = token
        self.token_file = token_file
        #: The client's own key of redaction markers: equal values link within this client only.
        self.redaction_key = redaction_key
        self.state_dir = state_dir
        self.config_file = config_file
        self.problem = problem

    def token(self) -> str:
        """The token, or empty text when there is none yet; read anew at each call, because it may rotate."""
        if self._token or not self.token_file:
            return self._token
        try:
            with open(self.token_file, encoding="utf-8") as file:
                return file.read(4096).strip()
        except (OSError, ValueError):
            return ""

    @property
    def token_origin(self) -> str:
        """Where the token comes from, for a sentence about it; never the token."""
        return self.token_file if self.token_file and not self._token else "MEMORYD_TOKEN or client.json"

    def refused(self, token: str) -> str:
        """What to say where the server did not take `token`; never the token."""
        if token:
            return f"{self.url} does not accept the token from {self.token_origin}; is it the token of that server?"
        return (
            f"{self.url} wants a token and there is none in {self.token_origin}; "
            "name the server's token file with MEMORYD_TOKEN_FILE"
        )

    @property
    def spool_dir(self) -> str:
        return os.path.join(self.state_dir, "spool")


def home_of(environ: dict[str, str]) -> str:
    """The home directory, also where a host starts hooks with an empty environment."""
    return environ.get("HOME") or os.path.expanduser("~")


def config_file_of(environ: dict[str, str]) -> str:
    named = environ.get("MEMORYD_CLIENT_CONFIG")
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(home_of(environ), ".config")
    return named or os.path.join(base, "memoryd", "client.json")


def state_dir_of(environ: dict[str, str]) -> str:
    base = environ.get("XDG_STATE_HOME") or os.path.join(home_of(environ), ".local", "state")
    return os.path.join(base, "memoryd")


def default_token_file(environ: dict[str, str]) -> str:
    """Where a server on this machine keeps its token: in its data directory."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(home_of(environ), ".local", "share")
    data_dir = environ.get("MEMORYD_DATA_DIR") or os.path.join(base, "memoryd", "data")
    return os.path.join(data_dir, "token")


def load(environ: dict[str, str] | None = None) -> ClientSettings:
    """Never raises: a hook must go on without a usable file, and `problem` says what was wrong."""
    environ = dict(os.environ) if environ is None else environ
    config_file = config_file_of(environ)
    values, problem = _read(config_file)
    key = _key(values.get("redaction_key", ""))
    from_environment = environ.get("MEMORYD_TOKEN_FILE", "")
    return ClientSettings(
        url=plain_url(environ.get("MEMORYD_URL") or values.get("url") or DEFAULT_URL),
        token=environ.get("MEMORYD_TOKEN") or ("" if from_environment else values.get("token", "")),
        token_file=from_environment or values.get("token_file") or default_token_file(environ),
        # Without a key of its own the client still redacts; its markers then link nothing.
        redaction_key=key or os.urandom(32),
        state_dir=values.get("state_dir") or state_dir_of(environ),
        config_file=config_file,
        problem=problem,
    )


def plain_url(url: str) -> str:
    """The server's base URL, also when someone gave that of its MCP endpoint."""
    url = url.strip().rstrip("/")
    return url.removesuffix("/mcp").rstrip("/")


def _read(path: str) -> tuple[dict[str, str], str]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        return {}, f"{path} cannot be read: {type(error).__name__}"
    if not isinstance(found, dict):
        return {}, f"{path} holds no JSON object"
    return {name: value for name, value in found.items() if isinstance(value, str)}, ""


def _key(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
