"""A real S3 server on this machine, for tests: moto behind a door that can be told to fail.

    from s3_server import s3_server  # in a conftest.py beside the tests

    def test_it(s3_server):
        storage = BatchStorage(s3_server.url("batches"), "crm-", s3_server.options)
        ...
        assert s3_server.keys() == [...]

Each test has a bucket of its own. What programs outside of this process need stands in ``environment``; the environment
of this process stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import socket
import threading

import pytest

from burler.testing import canary
from support.servers import leaves_sockets

REGION = "us-east-1"
AWS_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL")


def clean_environment():
    """The variables of this process without those that tell AWS's libraries who asks, and whom."""
    return {name: value for name, value in os.environ.items() if name not in AWS_NAMES}


class _Door:
    """Lets requests through to moto, one at a time, or does to one what a test has asked for.

    moto is not made for threads: an object that is read while another request reads or replaces it comes out torn.
    """

    def __init__(self, app):
        self._moto, self._lock = app, threading.Lock()
        self.rule = None
        self.requests = []

    def __call__(self, environ, start_response):
        rule, asked = self.rule, f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
        self.requests.append(asked)
        answer = rule(asked) if rule is not None else None
        if answer is None:
            return self._app(environ, start_response)
        if answer == "answer is lost":
            list(self._app(environ, start_response))
            answer = "hang up"
        if answer == "hang up":
            with contextlib.suppress(OSError):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        status, code = answer
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}, says the test</Message></Error>"
        start_response(f"{status} {code}", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body.encode()]

    def _app(self, environ, start_response):
        with self._lock:
            return list(self._moto(environ, start_response))


@functools.cache
def client_of(endpoint_url, key, secret):
    """A boto3 client, for looking at what is there; to make one takes a second."""
    import boto3

    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint_url,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name=REGION,
    )


class S3Server:
    """A running server with a bucket.

    Attributes:
        endpoint_url: ``http://127.0.0.1:PORT``.
        bucket: its name; empty at first.
        key, secret: credentials; the secret is a canary.
        client: boto3's, for looking at what is there.
        options: what fsspec's store takes (``storage_options``, ``batch_config.storage.options``).
        environment: the same as variables, for processes that a test starts.
    """

    def __init__(self, endpoint_url, door, key, secret):
        self.endpoint_url, self._door = endpoint_url, door
        self._begin = 0 if door is None else len(door.requests)
        self.key, self.secret = key, secret
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
        self.client = client_of(endpoint_url, key, secret)
        self.client.create_bucket(Bucket=self.bucket)

    def url(self, path=""):
        """``s3://bucket/path``."""
        return f"s3://{self.bucket}/{path}".rstrip("/")

    def put(self, name, data):
        """Make an object; its URL."""
        self.client.put_object(Bucket=self.bucket, Key=name, Body=data)
        return self.url(name)

    def get(self, name_or_url):
        """The bytes of an object, by its key or its URL."""
        name = name_or_url.removeprefix(self.url() + "/")
        return self.client.get_object(Bucket=self.bucket, Key=name)["Body"].read()

    def keys(self, prefix=""):
        """The keys of all objects, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", ()))

    def uploads(self):
        """The keys of multipart uploads that were begun and neither completed nor aborted."""
        return [found["Key"] for found in self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ())]

    @property
    def requests(self):
        """What was asked for until now: ``"PUT /bucket/key?partNumber=1&uploadId=..."``."""
        return self._door.requests[self._begin :]

    @contextlib.contextmanager
    def failing(self, rule):
        """While this lasts, ``rule`` says what happens to a request (as it stands in ``requests``): None (it is
        answered), "hang up" (the connection breaks), "answer is lost" (the same, but it was done), or a status and
        S3's code for it: ``(403, "AccessDenied")``."""
        self._door.rule = rule
        try:
            yield
        finally:
            self._door.rule = None

    def close(self):
        """Remove the bucket with all that is in it."""
        with contextlib.suppress(Exception):
            for name in self.keys():
                self.client.delete_object(Bucket=self.bucket, Key=name)
            self.client.delete_bucket(Bucket=self.bucket)


@contextlib.contextmanager
def serving():
    """Runs a server in this process: gives its URL and its door."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, *_a, **_k):
            pass

    door = _Door(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="s3-server", daemon=True)
    thread.start()
    leaves_sockets(server.server_port)
    try:
        yield f"http://127.0.0.1:{server.server_port}", door
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()


@pytest.fixture(scope="session")
def s3_process_server():
    """One server for all tests of the session."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with serving() as (endpoint_url, door):
        yield endpoint_url, door, "AKIATESTTESTTESTTEST", canary("s3-secret")


@pytest.fixture
def s3_server(s3_process_server):
    """A bucket of this test's own on the server."""
    server = S3Server(*s3_process_server)
    try:
        yield server
    finally:
        server.close()


if __name__ == "__main__":  # for tests that end the server itself: prints its URL, and ends with its input
    import sys

    with serving() as (url, _door):
        print(json.dumps({"endpoint_url": url}), flush=True)
        sys.stdin.read()
