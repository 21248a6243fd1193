"""The server against clients that send strange bytes, by real connections."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.test_api import PATIENCE_S, Home

from headgate.model.errors import PipelineError
from headgate.service.app import make_app
from headgate.service.server import HEADER_BYTES_MAX, TlsFiles, listen, make_server

START = b"POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b'{"script": "show feeds;"}'


class Client:
    """A connection that sends what it is told."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            try:
                self.socket.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                return

    def statuses(self, count: int) -> list[int]:
        """The status of each of so many answers; fewer if the connection ends before."""
        found: list[int] = []
        try:
            with self.socket.makefile("rb") as answers:
                while len(found) < count and (line := answers.readline()):
                    found.append(int(line.split()[1]))
                    length = 0
                    while header := answers.readline().strip():
                        name, _, value = header.partition(b":")
                        if name.lower() == b"content-length":
                            length = int(value)
                    answers.read(length)
        except ConnectionResetError:
            pass
        return found


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    client = Client(home.url)
    yield client
    client.socket.close()


def plain(token: bytes) -> bytes:
    return START + b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n%b" % (
        token,
        len(BODY),
        BODY,
    )


def chunked(token: bytes, pieces: Sequence[bytes], *, trailers: bytes = b"") -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces if each)
    head = START + b"Authorization: Bearer %b\r\nTransfer-Encoding: chunked\r\n\r\n" % token
    return head + chunks + b"0\r\n" + trailers + b"\r\n"


@given(cuts=st.lists(st.integers(0, 300), max_size=6), is_chunked=st.booleans())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_request_may_come_in_any_pieces(home: Home, cuts: list[int], is_chunked: bool) -> None:
    token = home.token("acme").encode()
    # Chunks of a byte have six bytes around each.
    pieces = [bytes([byte]) for byte in BODY]
    data = chunked(token, pieces) if is_chunked else plain(token)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    client = Client(home.url)
    with client.socket:
        client.send([data[a:b] for a, b in pairwise(places)])
        assert client.statuses(1) == [200]


def test_requests_of_one_piece_are_answered_in_order(home: Home, client: Client) -> None:
    good, bad = plain(home.token("acme").encode()), plain(b"wrong")
    client.send([good + bad + good])
    assert client.statuses(3) == [200, 401, 200]


ENDLESS = {
    "one header": [START, b"X: " + b"x" * HEADER_BYTES_MAX, *[b"x" * 10_000] * 50],
    "many headers": [START + b"".join(b"X%d: y\r\n" % n for n in range(5_000)) + b"\r\n"],
    "slowly": [START, *[b"Xxxxxxxx: y\r\n"] * 5_000],
    "a path": [b"GET /" + b"x" * 200_000],
    "a method": [b"G" * 200_000],
    "trailers": [
        START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        *[b"Xxxxxxxx: y\r\n"] * 5_000,
    ],
    "one trailer": [
        START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
        *[b"x" * 10_000] * 50,
    ],
    "a chunk's extension": [
        START + b"Transfer-Encoding: chunked\r\n\r\n1;",
        *[b"x" * 10_000] * 50,
    ],
}


@pytest.mark.parametrize("pieces", ENDLESS.values(), ids=ENDLESS)
def test_endless_headers_are_refused(home: Home, client: Client, pieces: list[bytes]) -> None:
    client.send(pieces)
    # Without a token 401 may come first: then the connection ends behind it.
    assert set(client.statuses(5)) <= {400, 401}
    after = Client(home.url)
    with after.socket:
        after.send([plain(home.token("acme").encode())])
        assert after.statuses(1) == [200], "others are served"


STRANGE = {
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "length and chunks": b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length that is none": b"Content-Length: +1\r\n\r\nx",
    "a header without a colon": b"Nothing\r\n\r\n",
    "a folded header": b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a NUL": b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    "a chunk that is none": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("rest", STRANGE.values(), ids=STRANGE)
def test_what_could_be_read_in_two_ways_is_refused(client: Client, rest: bytes) -> None:
    client.send([START + rest])
    client.socket.shutdown(socket.SHUT_WR)
    assert set(client.statuses(3)) <= {400, 401}


# --- TLS ------------------------------------------------------------------------------------------


def make_certificate(folder: Path, name: str) -> TlsFiles:
    """For this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return TlsFiles(*files)


def test_it_has_a_certificate_of_its_own(tmp_path: Path) -> None:
    tls = make_certificate(tmp_path, "own")
    home = Home(tmp_path)
    running = make_server(make_app(home.headgate), tls)
    with listen("127.0.0.1", 0) as port:
        thread = threading.Thread(target=running.run, args=[[port]], daemon=True)
        thread.start()
        address = f"localhost:{port.getsockname()[1]}"
        context = ssl.create_default_context(cafile=tls.certificate)
        answer = httpx.get(f"https://{address}/livez", verify=context, timeout=PATIENCE_S)
        assert answer.status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate"):
            httpx.get(f"https://{address}/livez", timeout=PATIENCE_S)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://{address}/livez", timeout=PATIENCE_S)
        running.should_exit = True
        thread.join(PATIENCE_S)
    home.catalog.close()


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    own, other = (make_certificate(tmp_path, name) for name in ("own", "other"))
    with pytest.raises(PipelineError, match="MISMATCH"):
        TlsFiles(own.certificate, other.key)
    with pytest.raises(PipelineError, match="No such file"):
        TlsFiles(tmp_path / "none.pem", own.key)
