"""Tables of every format: each test that asks for ``format`` runs for all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
if str(_HERE) not in sys.path:
    sys.path.append(str(_HERE))


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A PostgreSQL server. In CI it must be there."""
    import os

    from support import postgres

    try:
        block = postgres.shared()
        started = block.__enter__()
    except postgres.Missing as missing:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"CI must run the PostgreSQL tests: {missing}")
        pytest.skip(str(missing))
    yield started
    block.__exit__(None, None, None)


@pytest.fixture
def database(server: Any) -> str:
    return str(server.new_database())


@pytest.fixture
def format(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The format that ``pytest.mark.parametrize(..., indirect=True)`` names."""
    from format_places import Format

    from support.internals import opening

    kind = request.param
    out = tmp_path / "out é +x"
    if kind == "postgres":
        from support import postgres

        server, database = request.getfixturevalue("server"), request.getfixturevalue("database")
        url = f"postgresql://burler@127.0.0.1:{server.port}/{database}"
        place = opening.place_of("jdbc", url, "tap-x", "things", "tap-x", "things")
        yield Format("jdbc", place, {"password": postgres.PASSWORD}, out, lambda text: server.ask(text, database))
        return
    if kind == "rest":
        from iceberg_rest import rest_catalog

        out.mkdir()
        place = opening.place_of("iceberg", str(out), "tap-x", "things", "tap-x", "things")
        with rest_catalog(f"sqlite:///{tmp_path}/rest.db", f"file://{out}", "rest-token-4711") as url:
            yield Format("iceberg", place, {"type": "rest", "uri": url, "token": "rest-token-4711"}, out)
        return
    # Readers here may be slower than many publications.
    options = {"keep_versions": "1000"} if kind == "parquet" else {}
    yield Format(kind, opening.place_of(kind, str(out), "tap-x", "things", "tap-x", "things"), options, out)
