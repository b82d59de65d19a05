"""Ports that are taken: for how long they are waited for, and what is said."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from memory_core.clock import FakeClock
from memory_core.errors import Unavailable
from workers.supervisor.ports import require_free, sentence

HOST = "127.0.0.1"


class Freeing(FakeClock):
    """Closes a socket while it is waited."""

    def __init__(self, holder: socket.socket) -> None:
        super().__init__()
        self._holder = holder

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._holder.close()


def test_a_port_that_is_given_back_in_time_is_waited_for_and_that_is_said_once():
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        port = holder.getsockname()[1]
        said: list[str] = []

        require_free(HOST, port, Freeing(holder), said.append)

    assert said == [f"port {port} on {HOST} is in use; waiting up to 3 s for it"]


def test_a_port_that_stays_taken_is_refused_after_three_seconds():
    clock = FakeClock()
    begun = clock.monotonic()
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        port = holder.getsockname()[1]
        said: list[str] = []
        with pytest.raises(Unavailable, match=rf"port {port} on {HOST} .*EADDRINUSE.*outgoing connection"):
            require_free(HOST, port, clock, said.append)

    assert clock.monotonic() - begun == 3.0
    assert len(said) == 1


def test_an_address_of_another_machine_is_refused_at_once():
    clock = FakeClock()
    begun = clock.monotonic()
    with pytest.raises(Unavailable, match="EADDRNOTAVAIL"):
        require_free("192.0.2.1", 4000, clock, lambda _: None)

    assert clock.monotonic() == begun


@pytest.mark.parametrize(("port", "is_told"), [(49374, True), (8080, False)])
def test_a_port_among_those_of_outgoing_connections_can_be_reserved(port: int, is_told: bool, tmp_path: Path):
    ephemeral = tmp_path / "range"
    ephemeral.write_text("32768\t60999\n")
    error = OSError(errno.EADDRINUSE, "Address already in use")

    told = sentence(HOST, port, error, ephemeral)

    assert ("ip_local_reserved_ports=49374" in told) is is_told
    assert "ip_local_reserved_ports" not in sentence(HOST, port, error, tmp_path / "absent")
