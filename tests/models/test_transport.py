"""The transport over TLS: a wait that is looked into loses nothing, and a certificate that nobody vouches for is refused."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memory_core import limits
from memory_core.models import errors, transport
from memory_core.models.port import ask
from memory_core.models.settings import ModelSettings, choose
from tests.models.fakes.anthropic import Anthropic
from tests.models.fakes.shape import KEY
from tests.models.server import QuickClock, Reply, Server, serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    directory = tmp_path_factory.mktemp("tls")
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return directory / "cert.pem", directory / "key.pem"


@pytest.fixture
def server(certificate: tuple[Path, Path]) -> Generator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with serving(Anthropic().read) as plain:
        plain.http.socket = context.wrap_socket(
            plain.http.socket, server_side=True, do_handshake_on_connect=False
        )
        yield plain


def answer(server: Server, **settings: float) -> str:
    model = choose(
        ModelSettings(
            provider="anthropic", api_key=KEY, base_url=f"https://127.0.0.1:{server.port}", **settings
        ),
        QuickClock(),
    )
    assert model is not None
    return model.complete(ask("x")).text


def trusting(monkeypatch: pytest.MonkeyPatch, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    monkeypatch.setattr(transport, "_certificates", lambda: context)


def test_an_answer_in_pieces_with_long_waits_arrives_whole(
    server: Server, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    trusting(monkeypatch, certificate)
    monkeypatch.setattr(limits, "MODEL_POLL_SECONDS", 0.01)
    whole = Anthropic().answer("Piece by piece, also “quoted”")
    server.will(Reply(headers=whole.headers, chunks=slowly(server, b"".join(whole.chunks))))

    assert answer(server) == "Piece by piece, also “quoted”"


def slowly(server: Server, body: bytes) -> Iterator[bytes]:
    """In pieces of an odd size, each after many looks into the wait."""
    for start in range(0, len(body), 97):
        server.over.wait(0.05)
        yield body[start : start + 97]


def test_a_wait_over_tls_ends_in_time(
    server: Server, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    trusting(monkeypatch, certificate)
    server.will(Anthropic().answer("a b").broken(3, "stall"))

    with pytest.raises(errors.TimedOut):
        answer(server, timeout_seconds=2.0)


def test_a_certificate_that_nobody_vouches_for_is_refused(server: Server):
    with pytest.raises(errors.Unreachable):
        answer(server)

    assert server.asked == []


def test_threads_that_share_a_model_do_not_share_a_call():
    fake = Anthropic()
    with serving(fake.read) as server:
        server.will(*[fake.answer("same")] * 8)
        model = choose(
            ModelSettings(provider="anthropic", api_key=KEY, base_url=fake.base_url(server.port)),
            QuickClock(),
        )
        assert model is not None
        got: list[str] = []
        threads = [
            threading.Thread(target=lambda: got.append(model.complete(ask("x")).text)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert got == ["same"] * 8
