"""Files of the source are passed on untouched, or read as rows: what decides, and what goes out."""

import bz2
import contextlib
import gzip
import logging
import lzma
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from native_taps import CSV, LINES, ROWS, SCHEMA, batches, config_of, put, rows_in, shaped, table, tap_of

import burler
from burler import batch_files
from burler.batch import read
from burler.testing import FakeClock, canary, run_tap

zstandard = pytest.importorskip("zstandard")

PACKERS = {
    "gz": gzip.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
NAMES = ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow"]


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_what_the_schema_says_pass_untouched(tmp_path, name):
    path = put(tmp_path, name)
    before = path.read_bytes()
    given = {"columns": SCHEMA["properties"]} if "jsonl" in name else {}
    run = run_tap(tap_of(batch_files(path, size=3, **given)), config_of(tmp_path))
    assert run.types == ["SCHEMA", "BATCH", "STATE"]
    (message,) = batches(run)
    assert message["manifest"] == [f"file://{path}"]
    assert message["format"]["name"] == name.split(".")[1]
    assert message["compression"]["name"] == ("gzip" if name.endswith(".gz") else None)
    assert message["size"] == 3
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("batches/*"))
    counted = {"records": 3} if name == "a.parquet" else {}
    assert message["file_stats"] == [{**counted, "bytes": path.stat().st_size}]


@pytest.mark.parametrize("name", [*NAMES, "a.jsonl.bz2"])
def test_without_batch_the_same_files_come_as_records(tmp_path, name):
    run = run_tap(tap_of(batch_files(put(tmp_path, name))))
    assert shaped(run.records("orders")) == shaped(_as_floats(ROWS))
    assert set(run.types) == {"SCHEMA", "RECORD", "STATE"}


def _as_floats(rows):
    return [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()} for row in rows
    ]


def test_csv_options_stand_in_the_message(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id;name;price;at\r\n1;'x';\\N;\\N\r\n")
    run = run_tap(tap_of(batch_files(path, delimiter=";", quote_char="'", null="\\N")), config_of(tmp_path))
    assert batches(run)[0]["format"] == {
        "name": "csv",
        "options": {"delimiter": ";", "quote_char": "'", "header": True, "null": "\\N", "line_end": "\r\n"},
    }


def test_each_file_has_a_message_of_its_own_and_empty_ones_have_none(tmp_path):
    first, second, empty = put(tmp_path, "a.jsonl"), put(tmp_path, "b.jsonl"), tmp_path / "c.jsonl"
    empty.write_bytes(b"")
    files = batch_files([first, empty, second], size=[3, 0, 4], columns=SCHEMA["properties"])
    run = run_tap(tap_of(files), config_of(tmp_path))
    assert [(m["manifest"], m["size"]) for m in batches(run)] == [([f"file://{first}"], 3), ([f"file://{second}"], 4)]


def test_without_a_header_the_order_must_be_that_of_the_schema(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.partition(b"\n")[2])
    run = run_tap(tap_of(batch_files(path, header=False, columns=list(SCHEMA["properties"]))), config_of(tmp_path))
    assert batches(run)[0]["manifest"] == [f"file://{path}"]
    path.write_bytes(b"x,5,,\n")
    files = batch_files(path, header=False, columns=["name", "id", "price", "at"])
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(files), config_of(tmp_path))
    assert "it has no header, and its columns stand in another order than the schema's" in caplog.text
    assert shaped(rows_in(run, tmp_path)) == [{"id": 5, "name": "x"}]


@pytest.mark.parametrize("batch", [True, False])
def test_files_without_rows_give_no_records_and_move_no_bookmark(tmp_path, batch):
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl").write_bytes(b"\n")
    pq.write_table(table().slice(0, 0), tmp_path / "c.parquet")
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    given = {"bookmark": "2024-01-02T00:00:00Z"}
    tap = incremental(batch_files(paths, columns=SCHEMA["properties"], **given))
    run = run_tap(tap, config_of(tmp_path) if batch else {})
    assert run.types == ["SCHEMA", "STATE"]
    assert "at" not in run.states[-1].get("bookmarks", {}).get("orders", {})
    run = run_tap(incremental(batch_files(tmp_path / "c.parquet", **given)), config_of(tmp_path) if batch else {})
    assert "at" not in run.states[-1].get("bookmarks", {}).get("orders", {})


@pytest.mark.parametrize("batch", [True, False])
def test_a_header_alone_gives_no_records_and_no_message(tmp_path, batch):
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.partition(b"\n")[0] + b"\n")
    tap = incremental(batch_files(path, bookmark="2024-01-02T00:00:00Z"))
    run = run_tap(tap, config_of(tmp_path) if batch else {})
    assert run.types == ["SCHEMA", "STATE"]
    assert "at" not in run.states[-1].get("bookmarks", {}).get("orders", {})


ODD_PARTS = {
    "an empty part first": lambda pack, data: pack(b"") + pack(data),
    "a part that ends within the first line": lambda pack, data: pack(data[:5]) + pack(data[5:]),
    "an empty part between": lambda pack, data: pack(data[:30]) + pack(b"") + pack(data[30:]),
}


@pytest.mark.parametrize("parts", ODD_PARTS)
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.csv.zst", "a.jsonl.zst", "a.csv.bz2", "a.jsonl.xz"])
def test_files_packed_in_parts_give_all_their_rows(tmp_path, name, parts):
    pack = PACKERS[name.rpartition(".")[2]]
    path = tmp_path / name
    data = ODD_PARTS[parts](pack, CSV if "csv" in name else LINES)
    path.write_bytes(data)
    given = {"columns": SCHEMA["properties"]} if "jsonl" in name else {}
    assert shaped(run_tap(tap_of(batch_files(path, **given))).records("orders")) == shaped(_as_floats(ROWS))
    run = run_tap(tap_of(batch_files(path, **given)), config_of(tmp_path))
    assert len([row for message in batches(run) for row in read(message, SCHEMA).rows()]) == 3
    assert path.read_bytes() == data


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.csv.zst", "a.csv"])
@pytest.mark.parametrize(("batch", "check"), [(True, True), (False, True), (False, False)])
def test_a_file_of_no_bytes_that_needs_some_ends_its_stream(tmp_path, name, batch, check):
    path = tmp_path / name
    path.write_bytes(b"")
    run = run_tap(
        incremental(batch_files(path, bookmark="2024-01-02T00:00:00Z", check=check, columns=SCHEMA["properties"])),
        config_of(tmp_path) if batch else {},
    )
    assert run.result.exit_code == 1 and "it is empty" in str(run.result.errors["orders"])


@pytest.mark.parametrize("given", [{}, {"format": "csv", "delimiter": "|", "compression": "gzip"}, {"format": "arrow"}])
def test_no_files_are_no_messages(tmp_path, given):
    for config in (config_of(tmp_path), {}):
        assert run_tap(tap_of(batch_files([], **given)), config).types == ["SCHEMA", "STATE"]


# ---- what is read and written anew -------------------------------------------------------------------------


def deselected(*fields):
    entry = {"tap_stream_id": "orders", "stream": "orders", "schema": SCHEMA, "key_properties": ["id"]}
    entry["metadata"] = [{"breadcrumb": [], "metadata": {"selected": True}}]
    entry["metadata"] += [{"breadcrumb": ["properties", name], "metadata": {"selected": False}} for name in fields]
    return {"streams": [entry]}


def test_a_column_that_is_not_selected_never_goes_out(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(put(tmp_path, "a.csv"))), config_of(tmp_path), catalog=deselected("price"))
    assert "its files are read and written anew: '" in caplog.text
    assert "it has 'price', which the selected schema does not" in caplog.text
    rows = rows_in(run, tmp_path)
    assert [row["id"] for row in rows] == [1, 2, 3] and not any("price" in row for row in rows)


def test_a_column_that_is_missing_is_told(tmp_path, caplog):
    (tmp_path / "a.csv").write_bytes(b"id,name,at\n1,x,\n")
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(tmp_path / "a.csv")), config_of(tmp_path))
    assert "it lacks 'price'" in caplog.text
    assert shaped(rows_in(run, tmp_path)) == [{"id": 1, "name": "x"}]


def test_a_hook_sees_all_rows(tmp_path, caplog):
    tap = tap_of(batch_files(put(tmp_path, "a.csv")))

    @tap.post_transform("orders")
    def loud(record):
        record["name"] = (record["name"] or "").upper()
        return record

    with caplog.at_level(logging.INFO):
        run = run_tap(tap, config_of(tmp_path))
    assert [row["name"] for row in rows_in(run, tmp_path)] == ['A, "B"\nC', "", ""]
    assert "its files are read and written anew: a hook" in caplog.text


def test_the_reason_is_said_once_a_stream(tmp_path, caplog):
    files = [batch_files(put(tmp_path, f"{name}.jsonl")) for name in "abc"]
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(*files), config_of(tmp_path))
    assert caplog.text.count("read and written anew") == 1
    assert len(rows_in(run, tmp_path)) == 9


ANEW = {
    "nobody says the fields": ("a.jsonl", {}, {}, "jsonl does not say which fields its rows have"),
    "the first row has more": (
        "a.jsonl", {"columns": ["id", "name", "price", "at"]}, {}, "its first row has 'extra', which columns= does not",
    ),
    "the author's word is not the schema": ("a.jsonl", {"columns": ["id"]}, {}, "it lacks 'name', 'price', 'at'"),
    "the header is not the author's word": ("a.csv", {"columns": ["id"]}, {}, "its columns are not those of columns="),
    "another format was asked for": (
        "a.csv", {}, {"encoding": {"format": "jsonl"}}, "batch_config asks for jsonl, and they are csv",
    ),
    "another compression was asked for": (
        "a.csv.gz", {}, {"encoding": {"format": "csv", "compression": "none"}}, "asks for csv not packed, and they are",
    ),
    "other csv was asked for": (
        "a.csv", {}, {"encoding": {"format": "csv", "format_options": {"delimiter": ";"}}}, "csv with delimiter ';'",
    ),
    "a byte order mark": ("bom.csv", {}, {}, "it begins with a byte order mark"),
    "a packing that no message says": ("a.csv.bz2", {}, {}, "no BATCH message can say 'bz2'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ANEW)
def test_what_does_not_pass_is_written_anew_and_the_log_says_why(tmp_path, caplog, case):
    name, given, config, said = ANEW[case]
    path = put(tmp_path, name)
    if "bom" in name:
        path.write_bytes(b"\xef\xbb\xbf" + CSV)
    if "more" in case:
        path.write_bytes(LINES.replace(b'{"id": 1', b'{"extra": 0, "id": 1'))
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(path, **given)), config_of(tmp_path, **config))
    assert said in caplog.text
    assert f"file://{path}" not in [url for message in batches(run) for url in message["manifest"]]
    if "encoding" not in config:
        assert shaped(rows_in(run, tmp_path)) == shaped(ROWS)
    assert len(batches(run)) == 1 and batches(run)[0]["size"] == 3


@pytest.mark.parametrize(
    ("config", "name", "given", "passed"),
    [
        ({"encoding": {"format": "csv", "compression": "gzip"}}, "a.csv.gz", {}, True),
        ({"encoding": {"format": "parquet", "compression": "zstd"}}, "a.parquet", {}, True),
        ({"dialect": "meltano"}, "a.csv", {}, True),
        ({"dialect": "meltano"}, "b.csv", {"delimiter": ";"}, False),
    ],
)
def test_what_the_operator_says_counts(tmp_path, config, name, given, passed):
    path = put(tmp_path, name)
    if "delimiter" in given:
        path.write_bytes(b"id;name;price;at\n1;x;;\n")
    run = run_tap(tap_of(batch_files(path, **given)), config_of(tmp_path, **config))
    assert (batches(run)[0]["manifest"] == [f"file://{path}"]) is passed


def test_a_field_within_a_field_that_is_not_selected_never_goes_out(tmp_path, caplog):
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "who": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        },
    }
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "who": {"a": "x", "b": "y"}}\n')
    catalog = deselected()
    catalog["streams"][0]["schema"] = schema
    off = {"breadcrumb": ["properties", "who", "properties", "b"], "metadata": {"selected": False}}
    catalog["streams"][0]["metadata"].append(off)
    given = tap_of(batch_files(path, columns=["id", "who"]), schema=schema)
    assert batches(run_tap(given, config_of(tmp_path)))[0]["manifest"] == [f"file://{path}"]
    with caplog.at_level(logging.INFO):
        run = run_tap(
            tap_of(batch_files(path, columns=["id", "who"]), schema=schema), config_of(tmp_path), catalog=catalog
        )
    assert "field 'who.b' is not selected" in caplog.text
    assert rows_in(run, tmp_path) == [{"id": 1, "who": {"a": "x"}}]


def test_a_substream_needs_the_rows(tmp_path):
    tap = tap_of(batch_files(put(tmp_path, "a.csv")))

    @tap.sync("lines", parent="orders", key_properties="order", schema={"properties": {"order": {"type": "integer"}}})
    def lines(parent):
        yield {"order": parent["id"]}

    run = run_tap(tap, config_of(tmp_path))
    assert [row["id"] for row in rows_in(run, tmp_path)] == [1, 2, 3]
    assert [message["size"] for message in batches(run, "lines")] == [3]


# ---- bookmarks, temporary files, what goes wrong ---------------------------------------------------------------


def incremental(*files):
    return tap_of(*files, replication_key="at")


def test_the_bookmark_is_the_authors_word(tmp_path):
    path = put(tmp_path, "a.csv")
    run = run_tap(incremental(batch_files(path, bookmark="2024-01-02T10:00:00.500000Z")), config_of(tmp_path))
    assert run.states[-1]["bookmarks"]["orders"]["at"] == "2024-01-02T10:00:00.500000Z"
    assert batches(run)[0]["manifest"] == [f"file://{path}"]


@pytest.mark.parametrize("batch", [True, False])
def test_a_stream_that_saves_its_bookmarks_itself_has_that_of_its_files(tmp_path, batch):
    path = put(tmp_path, "a.csv")
    tap = tap_of(batch_files(path, bookmark="2024-02-02T00:00:00Z"), replication_key="at", bookmark_strategy="manual")
    run = run_tap(tap, config_of(tmp_path) if batch else {})
    assert run.states[-1]["bookmarks"]["orders"]["at"] == "2024-02-02T00:00:00Z"


@pytest.mark.parametrize("batch", [True, False])
def test_a_bookmark_that_no_state_would_hold_ends_its_stream(tmp_path, batch):
    tap = tap_of(batch_files(put(tmp_path, "a.csv"), bookmark="2024-01-02T00:00:00Z"))
    run = run_tap(tap, config_of(tmp_path) if batch else {})
    said = str(run.result.errors["orders"])
    assert said.startswith("stream 'orders' (") and "native_taps.py:" in said
    assert "batch_files(bookmark=...) needs a stream with a replication_key, and this one has none" in said
    assert said.endswith("Declare the replication_key, or leave bookmark= out.")
    assert set(run.types) <= {"SCHEMA", "STATE"} and run.result.exit_code == 1


def test_a_bookmark_of_a_stream_that_a_catalog_reads_whole_plays_no_part(tmp_path):
    root = {"breadcrumb": [], "metadata": {"valid-replication-keys": ["at"]}}
    entry = {"tap_stream_id": "orders", "stream": "orders", "schema": SCHEMA, "metadata": [root]}
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"streams": [entry]})
    tap.sync("*")(lambda: iter([batch_files(put(tmp_path, "a.csv"), bookmark="2024-01-02T10:00:00.500000Z")]))
    for method, bookmark in (("FULL_TABLE", None), ("INCREMENTAL", "2024-01-02T10:00:00.500000Z")):
        given = {
            **entry,
            "replication_method": method,
            "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}],
        }
        given |= {} if bookmark is None else {"replication_key": "at"}
        run = run_tap(tap, config_of(tmp_path), catalog={"streams": [given]})
        assert batches(run) and not run.result.errors
        assert run.states[-1].get("bookmarks", {}).get("orders", {}).get("at") == bookmark


def test_without_it_files_that_pass_move_nothing(tmp_path):
    run = run_tap(incremental(batch_files(put(tmp_path, "a.csv"))), config_of(tmp_path))
    assert batches(run)
    assert "at" not in run.states[-1].get("bookmarks", {}).get("orders", {})


def test_rows_that_are_read_move_the_bookmark_themselves(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,name,price,at\n1,x,,2024-01-01T00:00:00Z\n2,y,,2024-01-03T00:00:00Z\n")
    run = run_tap(incremental(batch_files(path, bookmark="2024-01-03T00:00:00Z")))
    assert run.states[-1]["bookmarks"]["orders"]["at"] == "2024-01-03T00:00:00Z"


def test_temporary_files_go_once_they_are_read_and_stay_where_they_are_passed_on(tmp_path):
    read, passed = put(tmp_path, "a.csv"), put(tmp_path, "b.csv")
    assert len(run_tap(tap_of(batch_files(read, temporary=True))).records("orders")) == 3
    assert not read.exists()
    assert batches(run_tap(tap_of(batch_files(passed, temporary=True)), config_of(tmp_path)))
    assert passed.exists()


def test_temporary_files_go_where_the_run_fails_too(tmp_path):
    good, bad = put(tmp_path, "a.csv"), tmp_path / "b.csv"
    bad.write_bytes(b"id,name,price,at\n1,x,no number,\n")
    run = run_tap(tap_of(batch_files([bad, good], temporary=True)))
    assert run.result.exit_code == 1
    assert not good.exists() and not bad.exists()


@pytest.mark.parametrize("batch", [True, False])
def test_a_broken_file_ends_its_stream_before_any_of_its_rows_is_out(tmp_path, batch):
    good, bad = put(tmp_path, "a.csv"), tmp_path / "b.csv"
    bad.write_bytes(b"id,id\n1,2\n")
    tap = tap_of(batch_files([good, bad]))

    @tap.sync("others", key_properties="id", schema=SCHEMA, versions=False)
    def others():
        yield batch_files(good)

    run = run_tap(tap, config_of(tmp_path) if batch else {})
    assert run.result.exit_code == 1
    assert not [m for m in run.messages if m["type"] in ("RECORD", "BATCH") and m["stream"] == "orders"]
    assert [m for m in run.messages if m["type"] in ("RECORD", "BATCH") and m["stream"] == "others"]


def test_files_of_another_stream(tmp_path):
    tap = burler.tap("tap-exports")
    tap.stream("orders", emitted_by="all", key_properties="id", schema=SCHEMA)

    @tap.sync("all", key_properties="id", schema=SCHEMA, versions=False)
    def everything():
        yield "orders", batch_files(put(tmp_path, "a.csv"))

    run = run_tap(tap, config_of(tmp_path))
    assert batches(run)[0]["manifest"] == [f"file://{tmp_path}/a.csv"]
    assert len(run_tap(tap).records("orders")) == 3


def test_a_signed_url_goes_into_messages_of_the_proposal_alone(tmp_path, caplog):
    url = "https://127.0.0.1:9/a.csv?sig=abc"
    given = {"check": False, "columns": SCHEMA["properties"], "size": 3}
    run = run_tap(tap_of(batch_files(url, **given)), config_of(tmp_path, dialect="sip"))
    assert batches(run)[0]["manifest"] == [url] and batches(run)[0]["size"] == 3
    signature = canary("signature")
    url = url.replace("abc", signature)
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(url, **given)), config_of(tmp_path))
    assert "their URLs have a query, which targets of dialect 'both' cut off" in caplog.text
    assert run.result.exit_code == 1 and not batches(run)
    assert "https://127.0.0.1:9/a.csv" in str(run.result.errors["orders"])
    assert signature not in caplog.text + str(run.result.errors["orders"])


@pytest.mark.parametrize("name", NAMES)
def test_files_are_closed_where_nobody_wants_the_rest_of_them(tmp_path, name):
    path = put(tmp_path, name)
    rows = iter(batch_files(path))
    next(rows)
    assert str(path) in _open_files()
    rows.close()
    assert str(path) not in _open_files()


def _open_files():
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(one.readlink()))
    return found


def test_a_row_of_csv_that_does_not_fit_is_a_bad_record_like_any_other(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,name,price,at\n1,x,,2024-01-01T00:00:00Z\n1.5,y,,\n3,z,,yesterday\n4,w,,\n")
    run = run_tap(tap_of(batch_files(path), on_bad_record="skip"))
    assert [row["id"] for row in run.records("orders")] == [1, 4]


def test_in_a_tail_files_that_nobody_has_counted_or_measured_make_a_state_due(tmp_path):
    path, numbers = put(tmp_path, "a.csv"), iter(range(1, 100))
    tap = burler.tap("tap-exports")

    @tap.sync("orders", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
    def orders():
        yield batch_files(path, check=False, columns=list(SCHEMA["properties"]), bookmark=next(numbers))

    settings = {
        "tail": True,
        "tail_max_rounds": 4,
        "new_record_polling_interval_ms": 10_000,
        "state_message_min_interval_ms": 15_000,
    }
    run = run_tap(tap, {**config_of(tmp_path), **settings}, clock=FakeClock())
    assert run.types == ["SCHEMA", "BATCH", "BATCH", "STATE", "BATCH", "BATCH", "STATE"]
    assert [state["bookmarks"]["orders"]["id"] for state in run.states] == [2, 4]


def test_a_state_that_is_due_behind_such_files_waits_no_longer_than_a_minute(tmp_path):
    path, clock, tap = put(tmp_path, "a.csv"), FakeClock(), burler.tap("tap-exports")

    @tap.sync("orders", key_properties="id", replication_key="id", bookmark_strategy="on_page", schema=SCHEMA)
    def orders():
        for number in range(1, 5):
            yield batch_files(path, check=False, columns=list(SCHEMA["properties"]), bookmark=number)
            clock.advance(40)

    run = run_tap(tap, config_of(tmp_path), clock=clock)
    assert [state["bookmarks"]["orders"]["id"] for state in run.states] == [1, 3, 4, 4]
