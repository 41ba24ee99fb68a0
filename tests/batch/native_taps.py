"""What the tests of files of a source share: the same rows in each format, and a tap that yields files."""

import bz2
import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import burler

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"type": ["null", "number"], "multipleOf": 0.01},
        "at": {"type": ["null", "string"], "format": "date-time"},
    },
}
ROWS = [
    {"id": 1, "name": "a, \"b\"\nc", "price": Decimal("1.50"), "at": "2024-01-01T00:00:00Z"},
    {"id": 2, "name": "", "price": None, "at": "2024-01-02T10:00:00.500000Z"},
    {"id": 3, "name": None, "price": Decimal("12345678901234567.89"), "at": None},
]  # fmt: skip
CSV = (
    b"id,name,price,at\n"
    b'1,"a, ""b""\nc",1.50,2024-01-01T00:00:00Z\n'
    b'2,"",,2024-01-02T10:00:00.500000Z\n'
    b"3,,12345678901234567.89,\n"
)
LINES = b"".join(json.dumps(row, default=str).encode() + b"\n" for row in ROWS).replace(b'"1.50"', b"1.50").replace(
    b'"12345678901234567.89"', b"12345678901234567.89"
)  # fmt: skip
TYPES = pa.schema(
    [("id", pa.int32()), ("name", pa.string()), ("price", pa.decimal128(20, 2)), ("at", pa.timestamp("ms", "UTC"))]
)


def table():
    """``ROWS`` in columns."""
    moments = [None if row["at"] is None else dt.datetime.fromisoformat(row["at"]) for row in ROWS]
    return pa.table(
        [[row[name] for row in ROWS] if name != "at" else moments for name in TYPES.names], schema=TYPES
    )  # fmt: skip


def put(folder, name):
    """A file of ``ROWS``, as its name says."""
    path = folder / name
    if ".parquet" in name:
        pq.write_table(table(), path)
    elif ".arrow" in name:
        with pa.ipc.new_file(str(path), TYPES) as out:
            out.write_table(table())
    else:
        data = CSV if ".csv" in name else LINES
        path.write_bytes({"gz": gzip.compress, "bz2": bz2.compress}.get(name.rpartition(".")[2], bytes)(data))
    return path


def tap_of(*yielded, schema=SCHEMA, **options):
    """A tap of one stream that yields these."""
    tap = burler.tap("tap-exports")

    @tap.sync("orders", **{"key_properties": "id", "schema": schema, "versions": False, **options})
    def orders(stream):
        yield from yielded

    return tap


def batches(run, stream="orders"):
    """The BATCH messages of a stream."""
    return [m for m in run.messages if m["type"] == "BATCH" and m["stream"] == stream]


def rows_in(run, folder):
    """The rows of burler's own files that a run named."""
    found = []
    for message in batches(run):
        for url in message["manifest"]:
            assert url.startswith(f"file://{folder}/batches/"), url
            text = Path(url.removeprefix("file://")).read_bytes()
            found += [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
    return found


def shaped(rows):
    """Rows as they are compared: null and absent are one."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def config_of(folder, **more):
    """A config with BATCH on; rows of burler's own files go below ``batches``."""
    return {"batch_config": {"storage": {"root": str(folder / "batches")}, **more}}
