"""A real S3 server for tests: moto, once for all processes that run tests, behind a door that can be told to fail.

    from support.objects import s3_endpoint, s3_server  # both, in a conftest.py beside the tests

    def test_it(s3_server):
        storage = BatchStorage(s3_server.url("batches"), "crm-", s3_server.options)
        ...
        assert s3_server.keys() == [...]

Each test has a bucket of its own, with the requests for it and its failures. What programs outside of this process need
stands in ``environment``; the environment of this process stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

from burler.testing import canary
from support import shared
from support.servers import serving

REGION = "us-east-1"
AWS_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL")
KEY = "AKIATESTTESTTESTTEST"


def clean_environment() -> dict[str, str]:
    """The variables of this process without those that tell AWS's libraries who asks, and whom."""
    return {name: value for name, value in os.environ.items() if name not in AWS_NAMES}


# ---- what a test has --------------------------------------------------------------------------------------


class S3Server:
    """A bucket on a running server.

    Attributes:
        endpoint_url: ``http://127.0.0.1:PORT``.
        bucket: its name; empty at first.
        key, secret: credentials; the secret is a canary.
        options: what fsspec's store takes (``storage_options``, ``batch_config.storage.options``).
        environment: the same as variables, for processes that a test starts.
    """

    def __init__(self, endpoint_url: str, secret: str, key: str = KEY) -> None:
        self.endpoint_url, self.key, self.secret = endpoint_url, key, secret
        self.bucket = f"test-{secrets.token_hex(6)}"
        self.options = {
            "key": key,
            "secret": secret,
            "endpoint_url": endpoint_url,
            "client_kwargs": {"region_name": REGION},
            "config_kwargs": {"retries": {"max_attempts": 1}},
        }
        self.environment = {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint_url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self._door("PUT", "bucket")

    @property
    def client(self) -> Any:
        """boto3's, for what only S3's own interface tells; to make the first one takes a second."""
        return _client(self.endpoint_url, self.key, self.secret)

    def url(self, path: str = "") -> str:
        """``s3://bucket/path``."""
        return f"s3://{self.bucket}/{path}".rstrip("/")

    def put(self, name: str, data: bytes = b"") -> str:
        """Make an object, which counts as no request; its URL."""
        self._door("PUT", "object", name, data)
        return self.url(name)

    def put_empty(self, names: list[str]) -> None:
        """Make many empty objects at once."""
        self._door("PUT", "objects", data=json.dumps(names).encode())

    def get(self, name_or_url: str) -> bytes:
        """The bytes of an object, by its key or its URL.

        Raises:
            KeyError: there is none.
        """
        name = name_or_url.removeprefix(self.url() + "/")
        return self._door("GET", "object", name)

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all objects, sorted."""
        return [key for key in json.loads(self._door("GET", "objects")) if key.startswith(prefix)]

    def uploads(self) -> list[str]:
        """The keys of multipart uploads that were begun and neither completed nor aborted."""
        return json.loads(self._door("GET", "uploads"))

    @property
    def requests(self) -> list[str]:
        """What the bucket was asked for until now: ``"PUT /bucket/key?partNumber=1&uploadId=..."``."""
        return json.loads(self._door("GET", "requests"))

    @contextlib.contextmanager
    def failing(self, rule: Callable[[str], Any]) -> Iterator[None]:
        """While this lasts, ``rule`` says what happens to a request (as it stands in ``requests``): None (it is
        answered), "hang up" (the connection breaks), "answer is lost" (the same, but it was done), "twice" (it is done
        twice, and the second answer is given), a status and S3's code for it: ``(403, "AccessDenied")``, or headers
        that it has another value of, or none: ``{"If-Match": None}``."""
        with serving(lambda asked: (200, {}, json.dumps(rule(asked.body.decode())).encode())) as asked:
            self._door("PUT", "rule", data=asked.url.encode())
            try:
                yield
            finally:
                self._door("DELETE", "rule")

    def close(self) -> None:
        """Remove the bucket with all that is in it."""
        self._door("DELETE", "bucket")

    def _door(self, method: str, what: str, name: str = "", data: bytes = b"") -> bytes:
        connection = HTTPConnection(urlsplit(self.endpoint_url).netloc, timeout=60)
        try:
            connection.request(method, f"{_DOOR}{what}/{self.bucket}/{quote(name)}", data)
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        if reply.status == 404:
            raise KeyError(name)
        assert reply.status == 200, content
        return content


@functools.cache
def _client(endpoint_url: str, key: str, secret: str) -> Any:
    import boto3

    keys = {"aws_access_key_id": key, "aws_secret_access_key": secret, "region_name": REGION}
    return boto3.session.Session().client("s3", endpoint_url=endpoint_url, **keys)


@contextlib.contextmanager
def server(secret: str) -> Iterator[S3Server]:
    """A bucket on the server of this run of tests."""
    with shared.joined("objects", "support.objects") as where:
        made = S3Server(where["endpoint_url"], secret)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def mortal_server(secret: str) -> Iterator[tuple[S3Server, Callable[[], None]]]:
    """A bucket on a server of its own, and what kills that: for the tests in which it dies."""
    command = [sys.executable, "-m", "support.objects"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None

        def kill() -> None:
            process.kill()
            process.wait(60)

        try:
            yield S3Server(json.loads(process.stdout.readline())["endpoint_url"], secret), kill
        finally:
            kill()


@functools.cache
def _share_models() -> None:
    """Each client reads botocore's models of S3, which is most of its cost: here once for a process."""
    from botocore import loaders

    init, models = loaders.Loader.__init__, {}

    def sharing(loader: Any, *args: Any, **options: Any) -> None:
        init(loader, *args, **options)
        loader._cache = models

    loaders.Loader.__init__ = sharing


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """One server for all tests."""
    pytest.importorskip("s3fs")
    if importlib.util.find_spec("moto") is None:
        pytest.skip("the package moto is not installed")
    _share_models()
    with shared.joined("objects", "support.objects") as where:
        yield where["endpoint_url"]


@pytest.fixture
def s3_server(s3_endpoint: str) -> Iterator[S3Server]:
    """A bucket of this test's own."""
    made = S3Server(s3_endpoint, canary("s3-secret"))
    try:
        yield made
    finally:
        made.close()


# ---- the server's process ---------------------------------------------------------------------------------

_DOOR = "/_door/"


class _Door:
    """Lets requests through to moto, one at a time, or does to one what a test has asked for.

    moto is not made for threads: an object that is read while another request reads or replaces it comes out torn, and
    it compares and writes in two steps, which a real store does in one.
    """

    def __init__(self, moto: Any) -> None:
        self._moto, self._lock = moto, threading.Lock()
        self._rules: dict[str, str] = {}
        self._requests: dict[str, list[str]] = {}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        environ = {**environ, "wsgi.input": io.BytesIO(_body(environ))}
        if path.startswith(_DOOR):
            status, content = self._told(method, *path.removeprefix(_DOOR).split("/", 2), environ["wsgi.input"].read())
            start_response(f"{status} -", [("Content-Length", str(len(content)))])
            return [content]
        bucket, asked = path.split("/")[1], f"{method} {path}?{environ.get('QUERY_STRING', '')}"
        self._requests.setdefault(bucket, []).append(asked)
        answer = _answer(self._rules[bucket], asked) if bucket in self._rules else None
        if isinstance(answer, dict):
            changed = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in answer.items()}
            changed = {name: changed.get(name, value) for name, value in environ.items()}
            environ, answer = {name: value for name, value in changed.items() if value is not None}, None
        if answer is None:
            return self._asks_moto(environ, start_response)
        if answer == "twice":
            return self._asks_moto(environ, start_response, times=2)
        if answer == "answer is lost":
            self._asks_moto(environ, lambda *_given: None)
        if isinstance(answer, str):
            with contextlib.suppress(OSError):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        status, code = answer
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}, says the test</Message></Error>"
        start_response(f"{status} {code}", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [] if method == "HEAD" else [body.encode()]

    def _asks_moto(self, environ: dict[str, Any], start_response: Any, *, times: int = 1) -> list[bytes]:
        with self._lock:
            for _ in range(times - 1):
                list(self._moto(dict(environ), lambda *_given: None))
                environ["wsgi.input"].seek(0)
            return list(self._moto(environ, start_response))

    def _told(self, method: str, what: str, bucket: str, name: str, data: bytes) -> tuple[int, bytes]:
        """What a test wants done or known: status and body."""
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        with self._lock:
            match method, what:
                case "PUT", "bucket":
                    backend.create_bucket(bucket, REGION)
                case "DELETE", "bucket":
                    if bucket in backend.buckets:
                        backend.buckets[bucket].keys.clear()
                        backend.delete_bucket(bucket)
                    self._rules.pop(bucket, None), self._requests.pop(bucket, None)
                case "PUT", "rule":
                    self._rules[bucket] = data.decode()
                case "DELETE", "rule":
                    self._rules.pop(bucket, None)
                case "GET", "requests":
                    return 200, json.dumps(self._requests.get(bucket, [])).encode()
                case "GET", "uploads":
                    return 200, json.dumps(
                        [one.key_name for one in backend.buckets[bucket].multiparts.values()]
                    ).encode()
                case "PUT", "objects":
                    for key in json.loads(data):
                        backend.put_object(bucket, key, b"")
                case "GET", "objects":
                    return 200, json.dumps(sorted(backend.buckets[bucket].keys)).encode()
                case "PUT", "object":
                    backend.put_object(bucket, unquote(name), data)
                case "GET", "object":
                    found = backend.get_object(bucket, unquote(name))
                    return (404, b"") if found is None else (200, found.value)
        return 200, b""


def _body(environ: dict[str, Any]) -> bytes:
    """Of a request, whole: one whose sender goes away in the middle of it is none."""
    if environ.get("wsgi.input_terminated"):
        return environ["wsgi.input"].read()
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length else b""
    if len(body) < length:
        raise ConnectionAbortedError
    return body


def _answer(url: str, asked: str) -> Any:
    """What the test's rule says."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request("POST", "/", asked.encode())
        return json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return 500, "RuleFailed"
    finally:
        connection.close()


@contextlib.contextmanager
def _running() -> Iterator[str]:
    """A server in this process: its URL."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, *_a: Any, **_k: Any) -> None:
            pass

    door = _Door(DomainDispatcherApplication(create_backend_app))
    made = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Quiet)
    threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}"


def main(folder: str | None = None) -> None:
    """Serve a run of tests from its folder; without one, until the input ends."""
    for name in AWS_NAMES:
        os.environ.pop(name, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with _running() as url:
        if folder is not None:
            shared.keep(Path(folder), {"endpoint_url": url})
        else:
            sys.stdout.write(json.dumps({"endpoint_url": url}) + "\n")
            sys.stdout.flush()
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
