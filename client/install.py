"""Installing memoryd on a developer's machine: plans of file changes for hooks, for MCP, and for taking all out again."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from client import installers as package
from client import settings
from client.changes import FileChange, read_text
from client.installers import Installer, Place, installers
from client.launcher import launcher_path, script
from memory_core.agents import client_named
from memory_core.errors import Invalid
from memory_core.registry import discover


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Which server the client speaks to. None means: as it is, else the default."""

    url: str | None = None
    token: str | None = None
    token_file: Path | None = None


def installers_named(names: Iterable[str]) -> list[Installer]:
    """The installers of these clients (any of their names), all of them for no name; `NotFound` else."""
    _load()
    wanted = [client.name if (client := client_named(name)) else name for name in names]
    return [installers.get(name) for name in wanted or installers.names()]


def plan_hooks(place: Place, chosen: list[Installer], connection: Connection) -> list[FileChange]:
    """The launcher, the client's own settings, and the hooks of each client."""
    launcher = launcher_path(place.home)
    config = _config_file(place)
    changes = [_ours(launcher, script(config_file=config), mode=0o755), plan_settings(place, connection)]
    for installer in chosen:
        changes += installer.hooks(place, launcher)
    return changes


def plan_mcp(place: Place, chosen: list[Installer], connection: Connection) -> list[FileChange]:
    """The MCP endpoint of each client. `Invalid` when there is no token: it must stand in their files."""
    own = plan_settings(place, connection)
    values = json.loads(own.after or "{}")
    token = values.get("token") or _token_in(values.get("token_file", ""))
    if not token:
        where = values.get("token_file") or "no file is known"
        raise Invalid(f"there is no token ({where}): start `memoryd up` once, or give --token-file")
    url = f"{values['url']}/mcp"
    changes = [own]
    for installer in chosen:
        changes += installer.mcp(place, url, token)
    return changes


def plan_removal(place: Place, chosen: list[Installer]) -> list[FileChange]:
    """Everything of ours in the chosen clients; the launcher and settings too when no client is left.

    The spool stays: what is in it was not yet delivered.
    """
    changes = [change for installer in chosen for change in installer.remove(place)]
    others = [one for _, one in installers if one not in chosen]
    still_used = any(change.is_needed for one in others for change in one.remove(place))
    if not still_used:
        changes += [_ours(launcher_path(place.home), None), _ours(_config_file(place), None)]
    return changes


def plan_settings(place: Place, connection: Connection) -> FileChange:
    """The client's settings file: server, token or its file, a redaction key made once, the state directory.

    Raises `Invalid` for a token file that was named and is not there: the hooks would fail without a word.
    """
    if connection.token_file is not None and not _token_in(str(connection.token_file)):
        raise Invalid(
            f"there is no token in {connection.token_file}; --token-file names the file that holds it"
        )
    path = _config_file(place)
    before = read_text(path)
    values = _values(path, before)
    url = connection.url or place.environ.get("MEMORYD_URL") or values.get("url") or settings.DEFAULT_URL
    values["url"] = _checked(settings.plain_url(url))
    if connection.token or (connection.token_file is None and place.environ.get("MEMORYD_TOKEN")):
        values.pop("token_file", None)
        values["token"] = connection.token or place.environ["MEMORYD_TOKEN"]
    elif _names_token_file(connection, place) or not (values.get("token") or values.get("token_file")):
        values.pop("token", None)
        values["token_file"] = str((connection.token_file or _default_token_file(place)).absolute())
    values.setdefault("redaction_key", secrets.token_hex(32))
    values.setdefault("state_dir", settings.state_dir_of({**place.environ, "HOME": str(place.home)}))
    return _ours(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def secrets_in(changes: Iterable[FileChange]) -> list[str]:
    """The tokens and keys that a preview of these changes must not show."""
    found: list[str] = []
    for change in changes:
        if change.is_ours and change.path.name == "client.json":
            for text in (change.before, change.after):
                values = _values(change.path, text)
                found += [values.get("token", ""), values.get("redaction_key", "")]
                found.append(_token_in(values.get("token_file", "")))
    return sorted({text for text in found if text}, key=len, reverse=True)


def _ours(path: Path, after: str | None, *, mode: int = 0o600) -> FileChange:
    return FileChange(path=path, before=read_text(path), after=after, mode=mode, is_ours=True)


def _config_file(place: Place) -> Path:
    return Path(settings.config_file_of({**place.environ, "HOME": str(place.home)}))


def _names_token_file(connection: Connection, place: Place) -> bool:
    """Said now, by an option or by the variable: then it goes before what was installed earlier, as the URL does."""
    return connection.token_file is not None or bool(place.environ.get("MEMORYD_TOKEN_FILE"))


def _default_token_file(place: Place) -> Path:
    named = place.environ.get("MEMORYD_TOKEN_FILE")
    return Path(named or settings.default_token_file({**place.environ, "HOME": str(place.home)}))


def _values(path: Path, text: str | None) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise Invalid(f"{path} is not valid JSON ({error}); mend or remove it") from error
    if not isinstance(found, dict):
        raise Invalid(f"{path} holds no JSON object; mend or remove it")
    return found


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise Invalid(f"the server's URL begins with http:// or https://, not {url[:64]!r}")
    return url


def _token_in(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, ValueError):
        return ""


def _load() -> None:
    from memory_core import agents

    discover(agents)
    discover(package)
