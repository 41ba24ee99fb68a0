"""What is said of a request that brought no answer: status, address, the reply's first words, the cure; no secrets."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import traceback

import pytest
from clocks import Clock

import burler
from burler.errors import CredentialsError, HttpError, NoAnswerError, NotFoundError
from burler.http import Client, bearer, mask_url
from burler.testing import canary, run_tap
from support.servers import echoed, serving

SECRET = canary("http-errors")


def error_of(reply, path="/a", *, method="GET", base="", options=None, **asked):
    """The error for one reply of a server."""
    with (
        serving(lambda asked: reply) as server,
        Client(server.url + base, retries=0, **Clock().options, **(options or {})) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.request(method, path, **asked)
    assert len(str(caught.value).splitlines()) <= 3
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value, server.url


@pytest.mark.parametrize(
    ("status", "kind", "cure"),
    [
        (400, HttpError, "compare params and body"),
        (401, CredentialsError, "No credentials were seen: the client has no token="),
        (403, CredentialsError, "If it wants none, this address may not ask"),
        (404, NotFoundError, "allow_statuses=(404,)"),
        (410, NotFoundError, "It is gone; say allow_statuses=(410,) if that may be"),
        (429, HttpError, "requests_per_second"),
        (500, HttpError, "The source fails; run again later"),
        (418, HttpError, ""),
        (304, HttpError, ""),
    ],
)
def test_statuses(status, kind, cure):
    error, url = error_of(status)
    assert type(error) is kind
    assert str(error).startswith(f"GET {url}/a: {status} ")
    assert cure in str(error)
    assert (error.status, error.method, error.url, error.attempts) == (status, "GET", f"{url}/a", 1)
    assert error.exit_code == 1


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"token": SECRET}, {}),
        ({"auth": ("ann", SECRET)}, {}),
        ({"auth": lambda prepared: prepared}, {}),
        ({"headers": {"X-API-Key": SECRET}}, {}),
        ({"params": {"api_key": SECRET}}, {}),
        ({}, {"params": {"access_token": SECRET}}),
        ({}, {"headers": {"Cookie": f"sid={SECRET}"}}),
        ({}, {"json": {"user": "ann", "pass": SECRET}}),
        ({}, {"data": {"user": "ann", "pass": SECRET}}),
    ],
)
@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_were_sent_are_not_said_to_be_missing(options, asked, status):
    with (
        serving(lambda asked: status) as server,
        Client(server.url, **options) as client,
        pytest.raises(CredentialsError) as caught,
    ):
        client.post("/a", **asked)
    assert len(str(caught.value).splitlines()) == 2
    assert "No credentials" not in str(caught.value) and "were not sent" not in str(caught.value)


def test_a_whole_url_of_another_server_is_asked_without_credentials_and_the_refusal_says_so():
    with serving(lambda asked: 401) as other, serving(lambda asked: []) as home:
        with Client(home.url, token=SECRET) as client, pytest.raises(CredentialsError) as caught:
            client.get(f"{other.url}/a")
        assert str(caught.value).endswith("were not sent: they go to the server of base_url, and nowhere else.")


def test_the_first_words_of_the_reply():
    error, _url = error_of((400, {}, b'{"error":\n\n   "no such field: nam\xc3\xa9"}'))
    assert 'It says: {"error": "no such field: namé"}' in str(error)
    assert error.body == '{"error":\n\n   "no such field: namé"}'.encode()


def test_long_replies_and_replies_that_are_no_text_are_cut():
    error, _url = error_of((400, {}, b"x" * 100_000))
    assert len(str(error)) < 500
    assert error.body == b"x" * 1000
    error, _url = error_of((400, {}, bytes(range(256)) * 10))
    assert "It says" not in str(error)
    assert error.body == b""


def test_a_secret_in_the_reply_is_not_cut_in_two():
    """Where a text is cut, half a secret would stand unmasked."""
    secret = canary("cut" + "x" * 60)
    bearer(secret)
    for before in range(150, 205):
        error, _url = error_of((400, {}, b"y" * before + b" " + secret.encode()))
        assert secret[:20] not in str(error) + error.body.decode()


def test_no_secret_is_in_any_error_log_or_traceback(caplog):
    caplog.set_level(logging.DEBUG, logger="burler")
    body = b'{"access_token": "%s", "url": "/x?api_key=%s&a=1"}' % (SECRET.encode(), SECRET.encode())
    error, _url = error_of(
        (500, {}, body),
        f"/a?token={SECRET}&page=2",
        params={"api_key": SECRET},
        headers={"X-Api-Key": SECRET},
        options={"token": SECRET, "retry_statuses": ()},
    )
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)) + caplog.text
    assert SECRET not in shown
    assert "page=2" in str(error)
    assert '"access_token": "***"' in str(error)
    assert "/x?api_key=***&a=1" in str(error)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x.io/a?page=1&token=abc", "https://x.io/a?page=1&token=***"),
        ("https://x.io/a?API_KEY=abc&b", "https://x.io/a?API_KEY=***&b"),
        ("https://x.io/a?access%5Ftoken=abc#t", "https://x.io/a?access%5Ftoken=***"),
        ("https://ann:pw@x.io/a@b", "https://***@x.io/a@b"),
        ("https://ann:p@w@x.io/", "https://***@x.io/"),
        ("https://s3/x?X-Amz-Signature=ab&X-Amz-Date=1", "https://s3/x?X-Amz-Signature=***&X-Amz-Date=1"),
        ("https://x/y?sig=a&code=b&key=c&keyword=d", "https://x/y?sig=***&code=***&key=***&keyword=d"),
        ("/a?token=", "/a?token="),
        ("/a", "/a"),
        ("", ""),
    ],
)
def test_urls_are_masked(url, shown):
    assert mask_url(url) == shown


def test_a_known_secret_is_masked_wherever_it_stands_in_a_url():
    secret = canary("in-a-path")
    bearer(secret)
    assert mask_url(f"https://x.io/bot{secret}/send?q={secret}") == "https://x.io/bot***/send?q=***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"password": "a\\"b", "n": "c"}', '{"password": "***", "n": "c"}'),
        ('{"refresh_token": "cut of', '{"refresh_token": "***"'),
        ("grant=x&client_secret=abc&y=1", "grant=x&client_secret=***&y=1"),
        # Codes of errors can be read, and codes of logins can not.
        ('{"code": "THROTTLED", "key": "orders.total"}', '{"code": "THROTTLED", "key": "orders.total"}'),
        ('{"code": "no such field in this list of names"}', '{"code": "no such field in this list of names"}'),
        ('{"code": "SplxlOBeZQQYbYS6WxSbIA"}', '{"code": "***"}'),
        ("a=1&code=SplxlOBeZQQYbYS6WxSbIA&code=12", "a=1&code=***&code=12"),
    ],
)
def test_texts_are_masked(text, shown):
    assert shown in echoed(text)


def test_codes_in_urls_are_masked():
    assert mask_url("/x?code=12") == "/x?code=***"


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    clock = Clock()
    with (
        Client(f"http://127.0.0.1:{port}", retries=2, **clock.options) as client,
        pytest.raises(NoAnswerError) as caught,
    ):
        client.get("/a", params={"token": SECRET})
    error = caught.value
    assert str(error).splitlines() == [
        f"GET http://127.0.0.1:{port}/a?token=***: the connection was refused, after 3 tries.",
        "Look at base_url, and whether the source can be reached from here (network, proxy).",
    ]
    assert (error.status, error.attempts, error.body) == (None, 3, b"")
    assert SECRET not in "".join(traceback.format_exception(error))


def test_a_host_without_an_address(monkeypatch):
    def nothing(*_given):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nothing)
    with Client("http://nowhere.invalid", retries=0) as client, pytest.raises(NoAnswerError) as caught:
        client.get("/a")
    assert "http://nowhere.invalid/a: its host has no address." in str(caught.value)


def test_a_server_that_does_not_take_connections():
    """Its queue is full, so that connecting itself takes too long."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        with (
            Client(f"http://127.0.0.1:{address[1]}", retries=0, timeout_seconds=(0.2, 9)) as client,
            pytest.raises(NoAnswerError, match=r"no connection within 0\.2 seconds"),
        ):
            client.get("/a")
        for one in waiting:
            one.close()


def test_http_and_https_mixed_up():
    with (
        serving(lambda asked: 200) as server,
        Client(server.url.replace("http:", "https:"), retries=0) as client,
        pytest.raises(NoAnswerError) as caught,
    ):
        client.get("/a")
    assert "no safe connection (TLS) could be made" in str(caught.value)
    assert "http or https" in str(caught.value)


def certificate(folder):
    """A certificate that nobody has signed."""
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_certificate_that_is_not_trusted(tmp_path):
    """It is not tried again: time cures no certificate. With verify= it is trusted."""
    path = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    tries = []

    def serve(listening):
        with contextlib.suppress(OSError):  # it is closed at the end
            while True:
                with listening.accept()[0] as connection:
                    tries.append(1)
                    with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as safe:
                        safe.recv(10_000)
                        safe.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        url = f"https://localhost:{listening.getsockname()[1]}"
        clock = Clock()
        with Client(url, **clock.options) as client, pytest.raises(NoAnswerError) as caught:
            client.get("/a")
        assert (clock.waits, len(tries)) == ([], 1)
        with Client(url, verify=str(path), retries=0) as client:
            assert client.json("/a") == []
        listening.shutdown(socket.SHUT_RDWR)  # which ends the thread
        thread.join(10)
    assert "its certificate is not trusted: " in str(caught.value)
    assert "verify=" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("http://[::1/a", {}),
        ("http://127.0.0.1:99999/a", {}),
        ("http:///a", {}),
        ("/a", {"headers": {"X-A": f"a\nX-Api-Key: {SECRET}"}}),
        ("/a", {"headers": {"X-A": f"{SECRET}\u20ac\n"}}),
    ],
)
def test_what_can_not_be_sent_is_an_error_that_quotes_no_secret(path, named):
    clock = Clock()
    with (
        Client("http://127.0.0.1:9", **clock.options) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get(path, **named)
    assert clock.waits == []
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert ("no address" if path != "/a" else "a header can't be sent") in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_an_error_in_a_stream_names_it_and_ends_with_1():
    tap = burler.tap("tap-shop", config_spec=["base_url", "access_token"])

    @tap.client
    def client(config):
        return Client(config["base_url"], token=config["access_token"], retries=0)

    @tap.sync("orders", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def orders(client):
        yield from client.pages("/orders", params={"token": SECRET})

    with serving(lambda asked: (401, {}, {"error": f"no such token {SECRET}"})) as server:
        out = run_tap(tap, {"base_url": server.url, "access_token": SECRET})
    assert out.result.exit_code == 1
    error = out.result.errors["orders"]
    assert isinstance(error, CredentialsError)
    assert "401 Unauthorized" in str(error)
    assert SECRET not in str(error)


def test_a_post_that_reached_nobody_is_not_said_to_have_done_its_work():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(NoAnswerError) as caught:
            client.post("/a", json={})
    assert str(caught.value).splitlines() == [
        f"POST http://127.0.0.1:{port}/a: the connection was refused.",
        "Look at base_url, and whether the source can be reached from here (network, proxy).",
    ]
