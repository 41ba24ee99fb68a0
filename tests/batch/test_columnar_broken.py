"""Parquet and Arrow files that are broken, of another kind, or come over a poor line: one clear error."""

from __future__ import annotations

import json
import sys
from typing import Any

import piped
import pytest

from burler.errors import BatchError, MissingExtra
from support.servers import serving

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")
pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

FORMATS = ["parquet", "arrow"]
GIVEN = {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}
ROWS = [json.dumps({"id": i, "text": f"text {i}"}) for i in range(200)]


def written(format: str, given: dict[str, Any], *rows: str) -> bytes:
    """burler's own file of these rows."""
    return piped.written(format, given, *rows, compression="zstd")


def read(data: bytes, format: str, given: dict[str, Any] | None = GIVEN) -> list[bytes]:
    """The lines of a file."""
    return piped.lines_of(data, format, given).split(b"\n")[:-1]


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_cut_off_anywhere_is_an_error(format):
    data = written(format, GIVEN, *ROWS)
    for size in range(8, len(data), 97):
        with pytest.raises(BatchError, match="damaged or broken off"):
            read(data[:size], format)
    with pytest.raises(BatchError, match="damaged or broken off"):
        read(data[:-1], format)


def test_a_parquet_file_with_a_wrong_byte_is_an_error_or_still_right():
    data = written("parquet", GIVEN, *ROWS)
    right = read(data, "parquet", GIVEN)
    found = 0
    for place in range(4, len(data), 23):
        broken = bytearray(data)
        broken[place] ^= 0x55
        try:
            assert read(bytes(broken), "parquet", GIVEN) == right
        except BatchError:
            found += 1
    assert found > len(data) / 23 / 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_a_web_server_is_read_and_one_that_breaks_off_says_so(format, monkeypatch):
    """It can't be read from its end."""
    data = written(format, GIVEN, *ROWS)
    cut = (200, {}, data)
    with serving(lambda asked: cut if asked.path == "/whole" else cut_off) as server:

        def cut_off(connection):
            connection.send(200, data[:-200], length=len(data))
            connection.wfile.flush()
            connection.end()

        monkeypatch.setenv("BURLER_ALLOW", server.url)
        message = {"type": "BATCH", "stream": "users", "encoding": {"format": format, "compression": "none"}}
        found = list(piped.read({**message, "manifest": [f"{server.url}/whole"]}, GIVEN).rows())
        assert [row["id"] for row in found] == list(range(200))
        with pytest.raises(BatchError, match="broke off after "):
            list(piped.read({**message, "manifest": [f"{server.url}/cut"]}, GIVEN).rows())


@pytest.mark.parametrize("format", FORMATS)
def test_without_pyarrow_the_extra_is_named(format, monkeypatch):
    data = written(format, GIVEN, *ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'pyarrow'.*[Ii]nstall"):
        written(format, GIVEN, *ROWS)
    with pytest.raises(MissingExtra, match=r"needs the package 'pyarrow'.*[Ii]nstall"):
        read(data, format, GIVEN)
