"""Files that a source made are looked at, and never read to their end."""

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from native_taps import batches, config_of, tap_of

from burler import batch_files
from burler.errors import FileError
from burler.testing import run_tap

zstandard = pytest.importorskip("zstandard")

PACK = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
LINES = b'{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n'
CSV = b"id,name\n1,a\n2,b\n"


SCHEMA = {"properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}


def run(path, names=None, **given):
    """A run with BATCH of a tap that yields the file; an error of its stream is raised."""
    schema = SCHEMA if names is None else {"properties": {name: {"type": ["null", "string"]} for name in names}}
    done = run_tap(tap_of(batch_files(path, **given), schema=schema, key_properties=[]), config_of(path.parent))
    for error in done.result.errors.values():
        raise error
    return done


def one(path, names=None, **given):
    """What goes out of a file: "as it is", "anew", or nothing."""
    urls = [url for message in batches(run(path, names, **given)) for url in message["manifest"]]
    return None if not urls else "as it is" if urls == [f"file://{path}"] else "anew"


def put(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packing", PACK)
def test_a_file_goes_out_as_it_is_where_a_message_can_say_how_it_is_packed(tmp_path, packing):
    wanted = "anew" if packing in (".bz2", ".xz") else "as it is"
    assert one(put(tmp_path, f"a.jsonl{packing}", PACK[packing](LINES)), columns=["id", "name"]) == wanted
    assert one(put(tmp_path, f"a.csv{packing}", PACK[packing](CSV))) == wanted


def test_csv_headers_of_many_kinds(tmp_path):
    for name, data, names, given in (
        ("a.csv", b"a;'b;c';d\n1;2;3\n", ["a", "b;c", "d"], {"delimiter": ";", "quote_char": "'"}),
        ("b.csv", b'"two\nlines","say ""hi"""\n1,2\n', ["two\nlines", 'say "hi"'], {}),
        ("c.csv", b"id,name\r\n1,a\r\n", ["id", "name"], {}),
        ("e.csv", b'a,"b\n1,2\n', ["a", '"b'], {"quote_char": ""}),
        ("f.tsv", b"id\tname\n1\t2\n", ["id", "name"], {}),
        ("g.csv", b'1,"x,y"\n', ["id", "name"], {"header": False, "columns": ["id", "name"]}),
    ):
        assert one(put(tmp_path, name, data), names, **given) == "as it is", name
    assert one(put(tmp_path, "h.csv", b"\xef\xbb\xbfid,name\n1,a\n")) == "anew"  # a byte order mark
    assert one(put(tmp_path, "i.csv", b"1,a\n"), header=False) == "anew"


def test_files_without_rows_are_in_no_message(tmp_path):
    known = {"columns": ["id", "name"]}
    assert one(put(tmp_path, "a.jsonl", b""), **known) is None
    assert one(put(tmp_path, "b.jsonl", b"\n\n"), **known) is None
    assert one(put(tmp_path, "c.csv", b""), header=False, **known) is None
    assert one(put(tmp_path, "d.jsonl.gz", gzip.compress(b"")), **known) is None
    assert one(put(tmp_path, "e.csv", b"id,name\r\n")) is None
    assert one(put(tmp_path, "e.csv.gz", gzip.compress(b'"id","name"'))) is None
    assert one(put(tmp_path, "f.csv", b"id\n\n"), ["id"]) == "as it is"  # a row with null
    assert one(put(tmp_path, "g.csv", b"\n\n"), ["id"], header=False, columns=["id"]) == "as it is"  # two of them


@pytest.mark.parametrize("packing", [".gz", ".zst", ".bz2", ".xz"])
def test_parts_that_follow_each_other_are_one_file(tmp_path, packing):
    pack = PACK[packing]
    assert one(put(tmp_path, f"a.csv{packing}", pack(b"") + pack(CSV)))
    assert one(put(tmp_path, f"b.csv{packing}", pack(b"id,na") + pack(b"me\n1,a\n")))
    lines = put(tmp_path, f"c.jsonl{packing}", pack(b"") + pack(b"\n") + pack(LINES))
    assert one(lines, columns=["id", "name"])
    assert one(put(tmp_path, f"d.jsonl{packing}", pack(b"") + pack(b"\n")), columns=["id", "name"]) is None


def test_zstd_files_that_begin_with_a_frame_to_be_skipped(tmp_path):
    data = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + PACK[".zst"](CSV)
    assert one(put(tmp_path, "a.csv.zst", data)) == "as it is"


def test_a_first_line_far_below_is_found(tmp_path):
    assert one(put(tmp_path, "a.jsonl", b"\n" * 1_000_000 + LINES), columns=["id", "name"]) == "as it is"
    assert one(put(tmp_path, "a.csv", b"\n" * 1_000_000 + CSV)) == "as it is"


def test_a_file_without_header_must_have_the_columns_that_were_named(tmp_path):
    for data, said in (
        (b"1;x\n", "row 1: 1 fields, where 2 columns are expected.\n  .*delimiter"),
        (b"1,x,3\n", "row 1: 3 fields, where 2 columns are expected"),
        (b"id,name\n1,x\n", "(?s)row 1: it holds the names of the columns.*header=True"),
    ):
        with pytest.raises(FileError, match=said):
            one(put(tmp_path, "a.csv", data), header=False, columns=["id", "name"])


def test_unchecked_files_are_not_looked_at(tmp_path):
    gone = tmp_path / "gone.jsonl"
    assert one(gone, check=False, columns=["id", "name"]) == "as it is"


BROKEN = {
    "gone": ("a.jsonl", None, {}, "is not there.\n  Was it written"),
    "not gzip": ("a.jsonl.gz", LINES, {}, "it is no gzip file.\n.*compression="),
    "gzip without a word": ("a.jsonl", gzip.compress(LINES), {}, "it is gzip.\n.*compression="),
    "zstd for gzip": ("a.jsonl.gz", PACK[".zst"](LINES), {}, "it is no gzip file: it is zstd.\n.*compression="),
    "half a gzip": ("a.jsonl.gz", gzip.compress(LINES)[:-9], {}, "is cut off: its gzip data ends before its end"),
    "half a zstd": ("a.jsonl.zst", PACK[".zst"](LINES)[:-3], {}, "is cut off: its zstd data ends before its end"),
    "a broken gzip": ("a.jsonl.gz", gzip.compress(LINES)[:10] + b"\xff" * 50, {}, "its gzip data can't be unpacked"),
    "parquet named jsonl": ("a.jsonl", b"PAR1....", {}, "it is Parquet.\n.*format="),
    "arrow named csv": ("a.csv", b"ARROW1..", {}, "it is Arrow.\n.*format="),
    "an array": ("a.jsonl", b'[{"id": 1}]\n', {}, "line 1: it is no JSON object.*a document that holds the rows"),
    "a document": ("a.jsonl", b'{\n  "rows": []\n}\n', {}, "line 1: it is no "),
    "csv named jsonl": ("a.jsonl", CSV, {}, "line 1: it is no JSON object.*a document that holds the rows"),
    "no utf-8": ("a.jsonl", b'{"id": "\xff"}\n', {}, "line 1: it is no "),
    "no gzip at all": ("a.jsonl.gz", b"", {}, "it is empty, and so no gzip file"),
    "no zstd at all": ("a.csv.zst", b"", {}, "it is empty, and so no zstd file"),
    "no bz2 at all": ("a.csv.bz2", b"", {}, "it is empty, and so no bz2 file"),
    "a cut off xz": ("a.jsonl.xz", PACK[".xz"](LINES)[:-9], {}, "is cut off: its xz data ends before its end"),
    "a broken xz": ("a.jsonl.xz", PACK[".xz"](LINES)[:20] + b"\xff" * 50, {}, "its xz data can't be unpacked"),
    "gzip and something else": (
        "a.csv.gz",
        gzip.compress(CSV) + b"something else" * 4,
        {},
        "something else behind the end of its gzip",
    ),
    "no header": ("a.csv", b"", {}, "it is empty, and should begin with a row of names.*header=False"),
    "blank lines for a header": ("a.csv", b"\n\r\n", {}, "it is empty, and should begin with a row of names"),
    "rows that end with a carriage return": ("a.csv", b"id,name\r1,a\r", {}, "a carriage return outside of quotes"),
    "a quote within a name": ("a.csv", b'id,na"me\n1,a\n', {}, "a quote within a field"),
    "a column twice": ("a.csv", b"id,id\n", {}, "two columns are named 'id'"),
    "a column without a name": ("a.csv", b"id,,x\n", {}, "a column has no name.*header=False"),
    "a header in latin-1": ("a.csv", "é,b\n".encode("latin-1"), {}, "is no text in UTF-8"),
    "a header that never ends": ("a.csv", b'id,"name\n1,a\n', {}, "row 1.*a quote that never ends"),
    "csv named parquet": ("a.parquet", CSV, {}, r"is no Parquet file but something else.\n  .*format='csv'"),
    "an empty parquet": ("a.parquet", b"", {}, "it is empty, which no Parquet file is"),
    "parquet named arrow": ("a.arrow", b"PAR1....", {}, "is no Arrow"),
    "text named arrow": ("a.arrow", CSV * 20, {}, "is no Arrow file but something else"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_refused_with_its_name(tmp_path, case):
    name, data, given, said = BROKEN[case]
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(FileError, match=rf"(?s)file '.*{name}'.*{said}") as refused:
        one(path, **given)
    assert str(refused.value).count("\n") <= 3


@pytest.mark.parametrize("end", [b'{"id": 3, "na', b'{"id": 3, "name": }\n'])
def test_a_line_that_is_broken_behind_others_is_no_other_format(tmp_path, end):
    done = run_tap(tap_of(batch_files(put(tmp_path, "a.jsonl", LINES + end))))
    said = str(done.result.errors["orders"])
    assert "a.jsonl', line 3: it is " in said and "another format" not in said
    assert len(done.records("orders")) == 2


def test_a_parquet_that_was_not_written_to_its_end_is_refused(tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-5])
    with pytest.raises(FileError, match=r"a.parquet': it is damaged or broken off.*\n.*written to its end"):
        one(tmp_path / "a.parquet")


def test_a_line_that_never_ends_is_not_read_for_ever(tmp_path):
    path = tmp_path / "a.jsonl"
    with path.open("wb") as out:
        out.truncate(1 << 30)
    before = _read_bytes()
    with pytest.raises(FileError, match="it does not end within 16,777,216 bytes"):
        one(path)
    assert _read_bytes() - before < 20 << 20


def _read_bytes():
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def big(folder, kind):
    """A file of more than 30 MB."""
    path = folder / f"big.{kind}"
    if kind in ("parquet", "arrow"):
        table = pa.table({"id": range(4_000_000)})
        if kind == "parquet":
            pq.write_table(table, path, compression="none", use_dictionary=False)
        else:
            with pa.ipc.new_file(str(path), table.schema) as out:
                out.write_table(table, max_chunksize=100_000)
        return path
    line = b"1234567,abcdefgh\n" if "csv" in kind else b'{"id": 1234567, "name": "abcdefgh"}\n'
    data = (b"id,name\n" if "csv" in kind else b"") + line * (32_000_000 // len(line))
    if kind.endswith(".gz"):  # stored, so that the packed file is big as well
        data = gzip.compress(data, 0)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "jsonl.gz", "csv.gz", "parquet", "arrow"])
def test_a_big_file_is_not_read_to_its_end(tmp_path, kind):
    given = {"columns": ["id", "name"]} if "jsonl" in kind else {}
    names = ["id"] if kind in ("parquet", "arrow") else None
    schema = {"properties": {"id": {"type": "integer"}}} if names else SCHEMA
    path = big(tmp_path, kind)
    tap = tap_of(batch_files(path, **given), schema=schema, key_properties=[])
    run_tap(tap, config_of(tmp_path))  # what is imported for it
    before = _read_bytes()
    assert batches(run_tap(tap, config_of(tmp_path)))[0]["manifest"] == [f"file://{path}"]
    read = _read_bytes() - before
    assert path.stat().st_size > 30_000_000
    assert read < 1_300_000, f"{read:,} bytes were read"
