"""The drain as a process of its own, which outlives the hook: one for each server's URL, by a lock it inherits.

Drains of several URLs share the spool. They send in turns, by a second lock that is held only while one sends, and that is not taken
before its server has answered something: a drain whose server is away, hangs, or never sees a packet, holds up nobody.
"""

from __future__ import annotations

import binascii
import fcntl
import os

from client.settings import ClientSettings

#: Held by the drain that sends.
SENDING_LOCK = "drain.lock"


def try_lock(settings: ClientSettings) -> int | None:
    """The descriptor that makes this the drain of the server's URL, or None when there is one already."""
    return _locked(settings, _own_lock(settings))


def try_sending(settings: ClientSettings) -> int | None:
    """The descriptor that lets a drain send, or None while another one does."""
    return _locked(settings, SENDING_LOCK)


def nudge(settings: ClientSettings) -> None:
    """Tell the drain of this URL, if it pauses, to try now."""
    try:
        os.utime(os.path.join(settings.state_dir, _own_lock(settings)))
    except FileNotFoundError:
        pass  # there never was one


def nudged_ns(settings: ClientSettings) -> int:
    """When it was nudged last."""
    try:
        return os.stat(os.path.join(settings.state_dir, _own_lock(settings))).st_mtime_ns
    except FileNotFoundError:
        return 0


def _own_lock(settings: ClientSettings) -> str:
    return f"drain-{binascii.crc32(settings.url.encode('utf-8', 'replace')):08x}.lock"


def _locked(settings: ClientSettings, name: str) -> int | None:
    os.makedirs(settings.state_dir, mode=0o700, exist_ok=True)
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(settings.state_dir, name), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def start(settings: ClientSettings) -> bool:
    """Fork a drain unless one of this URL runs. That one is nudged, and looks again after it has let the lock go.

    The lock belongs to the open file, so the child holds it from the first moment on; there is no
    time between in which a second one could start.
    """
    descriptor = try_lock(settings)
    if descriptor is None:
        nudge(settings)
        return False
    child = os.fork()
    if child:
        os.close(descriptor)
        return True
    try:
        _leave_the_host(descriptor)
        _drain(settings, descriptor)
    finally:
        os._exit(0)


def _drain(settings: ClientSettings, lock: int) -> None:
    from client import drain
    from client.spool import Spool
    from memory_core import limits

    try:
        drain.drain(Spool(settings.spool_dir), settings, seconds=limits.DETACHED_DRAIN_SECONDS, lock=lock)
    except Exception as error:  # nobody else would ever see it
        drain.log(settings, f"ended by {type(error).__name__}: {error}"[:500])


def _leave_the_host(kept: int) -> None:
    """A session of its own, and none of the host's pipes: a host waits until the last writer has closed them."""
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, max(kept + 2, 1_024))
