"""Packed files: written and read as streams; whatever is wrong with one is said, and never taken for its end."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys
import tracemalloc
import zlib

import pytest
import zstandard

from burler.errors import BatchError, ConfigError, MissingExtra
from support.internals import packing

ROWS = b"".join(b'{"id":%d,"name":"n%d"}\n' % (number, number * 7919 % 10007) for number in range(3000))
BOTH = pytest.mark.parametrize("compression", ["gzip", "zstd"])


def packed(data: bytes, compression: str | None, **options: object) -> bytes:
    one = packing.packer(compression, options)
    return one.compress(data) + one.flush()


def read(data: bytes, compression: str | None) -> bytes:
    return packing.unpacked(io.BytesIO(data), compression).read()


class Trickle(io.RawIOBase):
    """Gives what it has in pieces of a size, as a slow connection does."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size
        self.is_closed = False

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, self._size) if size >= 0 else self._size)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
@pytest.mark.parametrize("data", [b"", b"x", ROWS], ids=["empty", "one", "rows"])
def test_what_was_packed_comes_back(compression, data):
    assert read(packed(data, compression), compression) == data


@pytest.mark.parametrize(
    ("compression", "level"), [("gzip", 0), ("gzip", 3), ("gzip", 4), ("gzip", 9), ("zstd", -7), ("zstd", 22)]
)
def test_levels(compression, level):
    assert read(packed(ROWS, compression, level=level), compression) == ROWS


def test_other_programs_read_it():
    assert gzip.decompress(packed(ROWS, "gzip")) == ROWS
    assert zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed(ROWS, "zstd"))).read() == ROWS


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_buffer_that_is_used_again_may_be_packed(compression):
    one = packing.packer(compression, {})
    buffer = bytearray(ROWS)
    made = one.compress(memoryview(buffer))
    buffer[:] = b"-" * len(buffer)
    assert read(made + one.flush(), compression) == ROWS


@pytest.mark.parametrize("options", [{"level": 10}, {"level": -1}, {"level": "6"}, {"level": True}, {"level": 1.5}])
def test_a_level_that_gzip_does_not_have(options):
    wrong = r"^batch_config.encoding.compression_options.level must be a whole number from 0 to 9 for gzip, not "
    with pytest.raises(ConfigError, match=wrong):
        packing.packer("gzip", options)


def test_unknown_compressions_name_the_known_ones():
    with pytest.raises(ConfigError, match=r"'lz4' is unknown. Known: none, gzip, zstd"):
        packing.packer("lz4", {})
    with pytest.raises(BatchError, match=r"'lz4' is unknown. Known: none, gzip, zstd"):
        packing.unpacked(io.BytesIO(), "lz4")


@BOTH
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_parts_one_after_another_are_one_file(compression, piece):
    data = packed(ROWS, compression) + packed(b"", compression) + packed(b"more", compression)
    assert packing.unpacked(Trickle(data, piece), compression).read() == ROWS + b"more"


def test_frames_of_zstd_that_are_to_be_skipped_hold_nothing():
    skipped = b"\x5f\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert read(skipped + packed(ROWS, "zstd") + skipped, "zstd") == ROWS


def test_zeros_behind_gzip_are_passed_over():
    assert read(packed(ROWS, "gzip") + bytes(100_000), "gzip") == ROWS


@BOTH
def test_cut_off_anywhere_it_is_an_error(compression):
    whole = packed(b"one row\n", compression)
    for size in range(1, len(whole)):
        with pytest.raises(BatchError, match=f"cut off: its {compression} data ends before its end"):
            read(whole[:size], compression)


@BOTH
def test_cut_off_at_a_block_border_it_is_an_error(compression):
    if compression == "gzip":
        one = zlib.compressobj(1, zlib.DEFLATED, 31)
        border = one.compress(ROWS) + one.flush(zlib.Z_FULL_FLUSH)
    else:
        frame = zstandard.ZstdCompressor().compressobj()
        border = frame.compress(ROWS) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    stream = packing.unpacked(io.BytesIO(border), compression)
    with pytest.raises(BatchError, match="cut off"):
        stream.read()


@BOTH
def test_cut_off_within_a_later_part_it_is_an_error(compression):
    whole = packed(ROWS, compression)
    for rest in (1, 3, 6, len(whole) - 1):
        with pytest.raises(BatchError, match="cut off"):
            read(whole + whole[:rest], compression)


@BOTH
def test_every_changed_byte_is_an_error_or_changes_nothing(compression):
    whole = packed(ROWS[:600], compression)
    refused = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        try:
            given = read(bytes(changed), compression)
        except BatchError:
            refused += 1
        else:
            assert given == ROWS[:600], f"byte {place}"
    assert refused > len(whole) * 0.9


@BOTH
def test_something_else_behind_the_end_is_an_error(compression):
    with pytest.raises(BatchError, match=r"something else behind the end of its \w+ data\.$"):
        read(packed(ROWS, compression) + b"more", compression)


@BOTH
def test_an_empty_file_is_an_error(compression):
    with pytest.raises(BatchError, match=f"it is empty, and so no {compression} file"):
        read(b"", compression)


@pytest.mark.parametrize(
    ("data", "compression", "said"),
    [
        (b'{"id":1}\n', "gzip", r"it is no gzip file\.$"),
        (packed(b"x", "zstd"), "gzip", "it is no gzip file: it is zstd."),
        (packed(b"x", "gzip"), "zstd", "it is no zstd file: it is gzip."),
        (b"PAR1....", "zstd", "it is no zstd file: it is Parquet."),
        (b"\n", "gzip", "it is no gzip file"),
    ],
)
def test_another_format_is_named(data, compression, said):
    with pytest.raises(BatchError, match=said.replace("{", r"\{")):
        read(data, compression)


@BOTH
def test_the_error_comes_after_what_was_whole(compression):
    whole = packed(ROWS, compression)
    stream = packing.unpacked(io.BytesIO(whole + b"rubbish"), compression)
    assert stream.read(len(ROWS)) == ROWS
    with pytest.raises(BatchError):
        stream.read(1)


@BOTH
def test_what_comes_out_late_is_not_taken_for_a_cut(compression, monkeypatch):
    monkeypatch.setattr(packing, "_READ_BYTES", 5)
    monkeypatch.setattr(packing, "_ZSTD_BYTES", 3)
    for piece in (1, 7, 8, 64):
        monkeypatch.setattr(packing, "_PIECE_BYTES", piece)
        for size in range(70):
            for data in (b"a" * size, random.Random(size).randbytes(size)):
                assert read(packed(data, compression), compression) == data


@BOTH
def test_a_file_that_grows_a_thousand_times_is_read_in_little_memory(compression):
    whole = packed(bytes(200 << 20), compression)
    stream = packing.unpacked(io.BytesIO(whole), compression)
    tracemalloc.start()
    count = 0
    while piece := stream.read(1 << 20):
        count += len(piece)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 200 << 20
    assert most < 100 << 20


@BOTH
def test_closing_it_closes_the_file_below(compression):
    below = Trickle(packed(ROWS, compression), 100)
    packing.unpacked(below, compression).close()
    assert below.is_closed


def test_without_zstandard_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"^packing BATCH files with zstd needs the package .*install 'pyarrow>="):
        packing.packer("zstd", {})
    with pytest.raises(MissingExtra, match=r"install 'pyarrow>="):
        packing.unpacked(io.BytesIO(), "zstd")


def test_gzip_works_without_isal():
    code = (
        "import sys, io; sys.modules['isal'] = None\n"
        "from support.internals import packing; packer, unpacked = packing.packer, packing.unpacked\n"
        "one = packer('gzip', {}); made = one.compress(b'rows' * 1000) + one.flush()\n"
        "assert 'isal.isal_zlib' not in sys.modules\n"
        "assert unpacked(io.BytesIO(made), 'gzip').read() == b'rows' * 1000\n"
        "try: unpacked(io.BytesIO(made[:-1]), 'gzip').read()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "BatchError it is cut off: its gzip data ends before its end.\n"


def test_what_a_file_looks_like():
    assert packing.looks_like(gzip.compress(b"")) == "gzip"
    assert packing.looks_like(b'{"id":1}') is None
    assert packing.looks_like(b"") is None
