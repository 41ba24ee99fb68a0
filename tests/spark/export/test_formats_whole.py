"""Whole exports to other formats than Delta: made, added to, made anew; what each can do alone is in ``formats``."""

from __future__ import annotations

import pytest

from burler.errors import UsageError
from burler.spark import export, table
from support.internals import export_options

pytestmark = pytest.mark.usefixtures("packages")

INTEGER, TEXT = {"type": ["null", "integer"]}, {"type": ["null", "string"]}
WIDER = {"properties": {"id": INTEGER, "name": TEXT, "age": INTEGER}}


@pytest.fixture
def content(spark, tmp_path):
    """The rows of a table, by another program where one reads the format."""

    def rows(kind, stream, *columns, out="out"):
        place = tmp_path / out / "tap-x" / stream
        if kind == "iceberg":
            from pyiceberg.catalog.sql import SqlCatalog

            with SqlCatalog("burler", uri=f"sqlite:///{tmp_path / out}/catalog.db") as catalog:
                found = catalog.load_table(("tap-x", stream)).scan().to_arrow().to_pylist()
        else:
            found = table(spark, place).toArrow().to_pylist()
        return sorted((tuple(row[name] for name in columns) for row in found), key=repr)

    return rows


@pytest.mark.parametrize(("way", "kind"), [("spark", "parquet"), ("small", "iceberg")])
def test_a_table_is_made_added_to_and_made_anew(lake, run, content, monkeypatch, way, kind):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0 if way == "spark" else 50_000)
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    lake.commit("log", [{"id": 1, "name": "a"}], keys=())
    run(format=kind)
    lake.commit("users", [{"id": 2, "name": "B", "age": 7}], schema=WIDER)
    lake.commit("log", [{"id": 1, "name": "b"}], keys=())
    results = run(format=kind)

    assert [results[name].rows_read for name in ("users", "log")] == [1, 1], "increments"
    assert content(kind, "users", "id", "name", "age") == [(1, "a", None), (2, "B", 7)]
    assert content(kind, "log", "id", "name") == [(1, "a"), (1, "b")]
    assert all(one.skipped for one in run(format=kind).values())
    run(format=kind, mode="append", streams=["users"])
    assert content(kind, "users", "id", "name") == [(1, "a"), (2, "B"), (2, "b")]


NIGHTLY = pytest.mark.nightly


@pytest.mark.parametrize(
    "kind", ["delta", pytest.param("parquet", marks=NIGHTLY), pytest.param("iceberg", marks=NIGHTLY)]
)
def test_a_small_full_table_needs_no_spark_in_any_run(lake, run, content, tmp_path, monkeypatch, kind):
    """Each night all rows come under a new version. Spark makes the same table of the same lake.

    That no format starts Spark for them is seen in ``test_without_spark.py``; the tables of all are held against those
    of Spark at night.
    """
    columns = ("id", "name", "_sdc_extracted_at", "_sdc_version", "_sdc_sequence", "_sdc_source_file")
    nights = [
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 2, "name": "c"}],
        [],
        [{"id": 2, "name": "B"}, {"id": 4, "name": "e"}],
    ]
    for version, rows in enumerate(nights, 1):
        schema = WIDER if version > 1 else {"properties": {"id": INTEGER, "name": TEXT}}
        more = ("age",) if version > 1 else ()
        for stream, keys in (("users", ("id",)), ("log", ())):
            lake.commit(stream, rows, schema=schema, keys=keys, version=version, activate=version)
        with monkeypatch.context() as by_spark:
            by_spark.setattr(export_options, "SMALL_ROWS", 0)
            run(out="spark", format=kind)
        export(None, str(lake.root), str(tmp_path / "out"), format=kind)
        for stream in ("users", "log"):
            made = content(kind, stream, *columns, *more)
            assert made == content(kind, stream, *columns, *more, out="spark"), (stream, version)
            assert {row[3] for row in made} <= {version}


def test_a_folder_format_takes_no_database(lake):
    lake.commit("users", [{"id": 1, "name": "a"}])
    with pytest.raises(UsageError, match="writes to a folder") as caught:
        export(None, str(lake.root), "postgresql://me:secret@db/x")
    assert "secret" not in str(caught.value)
