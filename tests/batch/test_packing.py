"""Packed files: written and read as streams; whatever is wrong with one is said, and never taken for its end."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tracemalloc
import zlib

import pytest
import zstandard
from piped import lines_of, pages_of, written

from burler.errors import BatchError, ConfigError, MissingExtra

IDS = [b'{"id":%d,"name":"n%d"}' % (number, number * 7919 % 10007) for number in range(3000)]
ROWS = b"".join(row + b"\n" for row in IDS)
ONE = b'{"id":1}\n'
BOTH = pytest.mark.parametrize("compression", ["gzip", "zstd"])


def packed(data: bytes, compression: str) -> bytes:
    return gzip.compress(data) if compression == "gzip" else zstandard.compress(data)


def read(data: bytes, compression: str) -> bytes:
    return lines_of(data, "jsonl", None, compression)


@pytest.mark.parametrize(
    ("compression", "level"),
    [("none", None), ("gzip", None), ("gzip", 0), ("gzip", 4), ("gzip", 9), ("zstd", None), ("zstd", -7), ("zstd", 19)],
)
def test_what_was_packed_comes_back_also_by_other_programs(compression, level):
    options = {} if level is None else {"level": level}
    made = written("jsonl", {}, *map(bytes.decode, IDS), compression=compression, compression_options=options)
    assert read(made, compression) == ROWS
    if compression == "gzip":
        assert gzip.decompress(made) == ROWS
    if compression == "zstd":
        assert zstandard.ZstdDecompressor().stream_reader(io.BytesIO(made)).read() == ROWS


@pytest.mark.parametrize("level", [10, -1, "6", True, 1.5])
def test_a_level_that_gzip_does_not_have(level):
    wrong = r"batch_config.encoding.compression_options.level must be a whole number"
    with pytest.raises(ConfigError, match=wrong):
        written("jsonl", {}, "{}", compression="gzip", compression_options={"level": level})


@BOTH
def test_cut_off_anywhere_it_is_an_error(compression):
    whole = packed(ONE, compression)
    for size in range(1, len(whole)):
        with pytest.raises(BatchError, match=f"cut off: its {compression} data ends before its end"):
            read(whole[:size], compression)
    whole = packed(ROWS, compression)
    for rest in (1, 3, 6, len(whole) - 1):
        with pytest.raises(BatchError, match="cut off"):
            read(whole + whole[:rest], compression)


@BOTH
def test_cut_off_at_a_block_border_it_is_an_error(compression):
    if compression == "gzip":
        one = zlib.compressobj(1, zlib.DEFLATED, 31)
        border = one.compress(ROWS) + one.flush(zlib.Z_FULL_FLUSH)
    else:
        frame = zstandard.ZstdCompressor().compressobj()
        border = frame.compress(ROWS) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    with pytest.raises(BatchError, match="cut off"):
        read(border, compression)


@BOTH
def test_every_changed_byte_is_an_error_or_changes_nothing(compression):
    rows = ROWS[: ROWS.index(b"\n", 400) + 1]
    whole = (
        packed(rows, "gzip") if compression == "gzip" else zstandard.ZstdCompressor(write_checksum=True).compress(rows)
    )
    refused = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        try:
            given = read(bytes(changed), compression)
        except BatchError:
            refused += 1
        else:
            assert given == rows, f"byte {place}"
    assert refused > len(whole) * 0.9


@BOTH
def test_the_error_comes_after_what_was_whole(compression):
    many = ROWS * 30
    given = []
    with pytest.raises(BatchError, match="something else"):
        for lines, _ in pages_of(packed(many, compression) + b"rubbish " * 5, "jsonl", None, compression):
            given.append(lines)
    assert many.startswith(b"".join(given)) and len(given) >= 1


@BOTH
def test_what_comes_out_late_is_not_taken_for_a_cut(compression):
    """Files whose bytes end about where a reader's piece of them does."""
    for size in range((1 << 16) - 40, (1 << 16) + 8, 3):
        row = b'{"t":"%s"}\n' % random.Random(size).randbytes(size // 2).hex().encode()
        stored = gzip.compress(row, 0) if compression == "gzip" else packed(row, compression)
        assert read(stored, compression) == row


@BOTH
def test_a_file_that_grows_a_thousand_times_is_read_in_little_memory(compression):
    whole = packed((b'{"t":"%s"}\n' % (b"x" * 10_000)) * 8_000, compression)
    tracemalloc.start()
    count = sum(count for _, count in pages_of(whole, "jsonl", None, compression))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 8_000
    assert most < 40 << 20


def test_without_zstandard_the_extra_is_named(monkeypatch):
    made = packed(ONE, "zstd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"^writing files with zstd needs the package .*[Ii]nstall"):
        written("jsonl", {}, "{}", compression="zstd")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'pyarrow'.*[Ii]nstall"):
        read(made, "zstd")


def test_gzip_works_without_isal(monkeypatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    made = written("jsonl", {}, *map(bytes.decode, IDS), compression="gzip")
    assert read(made, "gzip") == ROWS
    with pytest.raises(BatchError, match=r"(?s)its gzip data ends before its end.*Run the tap again"):
        read(made[:-1], "gzip")
