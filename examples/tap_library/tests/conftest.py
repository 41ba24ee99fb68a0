"""A library and its server for each test that asks for them."""

import json

import pytest

from burler.testing import canary
from tap_library.data import Library, Size
from tap_library.server import Server

SMALL = Size(branches=4, authors=130, books=60, loans=90, events=3)


class Served(Server):
    """A server that a test may look into: which token it wants, what it was asked."""

    def __init__(self, library, **more):
        super().__init__(library, canary("library"), **more)

    def asked(self):
        """What it was asked since this was called last: a dict for each request."""
        lines = self.log_path.read_text().splitlines() if self.log_path.exists() else []
        self.log_path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    def config(self, **more):
        return {"base_url": self.url, "access_token": self.token, **more}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """A proxy that the environment names would be asked for this machine's own addresses."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """One server for all tests that do not stop theirs: it takes half a second to start."""
    with Served(Library.make(tmp_path_factory.mktemp("library") / "library.db", SMALL)) as server:
        yield server


@pytest.fixture
def serve(tmp_path, shared):
    """A server of a library that is made anew. With options of the server, or `own`: started for this test alone."""
    running = []

    def start(size=SMALL, *, own=False, **more):
        if not own and not more:
            Library.make(shared.library.path, size)
            shared.asked()
            return shared
        running.append(Served(Library.make(tmp_path / "library.db", size), **more))
        running[-1].start()
        return running[-1]

    yield start
    for server in running:
        server.stop()
