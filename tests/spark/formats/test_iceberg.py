"""Iceberg's catalogs: SQLite, PostgreSQL, REST; and what one commit holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_names import ALL
from format_samples import BASE, INTEGER, TEXT, arrow, change, columns, frame, read, row

from burler.errors import ExportError
from support.internals import opening

OBJECT = {"type": "object", "properties": {"b": INTEGER}}
assert "rest" in ALL  # the contract's tests run against a REST catalog as well


def iceberg(out: Path, **options: str) -> Any:
    place = opening.place_of("iceberg", str(out), "tap-x", "things", "tap-x", "things")
    return opening.open_target("iceberg", place, source="tap-x/things", options=options, spark=lambda: None)


def test_rows_and_numbers_are_one_commit(spark: Any, tmp_path: Path) -> None:
    """Judged by pyiceberg: one metadata version a publication, numbers in its properties and its snapshot."""
    from pyiceberg.catalog.sql import SqlCatalog

    for number in (1, 2, 3):
        target = iceberg(tmp_path)
        target.open()
        target.publish(
            frame(spark, [row(number, "r")]), change("replace" if number < 3 else "append", numbers={"n": number})
        )
    with SqlCatalog("burler", uri=f"sqlite:///{tmp_path}/catalog.db") as catalog:
        table = catalog.load_table("tap-x.things")
        assert len(list((tmp_path / "tap-x" / "things" / "metadata").glob("*.metadata.json"))) == 3
        assert json.loads(table.properties["burler.numbers"]) == {"n": 3}
        assert json.loads(table.current_snapshot().summary["burler.numbers"]) == {"n": 3}
        assert sorted(table.scan(row_filter="id > 0").to_arrow().column("id").to_pylist()) == [2, 3]
        first = table.metadata.snapshots[0]
        assert table.scan(snapshot_id=first.snapshot_id).to_arrow().column("id").to_pylist() == [1]
        assert table.properties["commit.retry.num-retries"] == "0"


def test_catalog_in_postgresql(server: Any, database: str, tmp_path: Path) -> None:
    """Tables of several taps in one namespace of one's own; the password shows nowhere."""
    from support import postgres

    options = {
        "type": "sql",
        "uri": f"postgresql+psycopg://burler:{postgres.PASSWORD}@127.0.0.1:{server.port}/{database}",
        "warehouse": f"file://{tmp_path}/warehouse",
        "namespace": "raw",
        "catalog": "shared",
    }
    for number in (1, 2):
        target = iceberg(tmp_path / "out", **options)
        assert dict(target.open().numbers) == ({} if number == 1 else {"n": 1})
        target.publish(arrow([row(number)]), change("append", numbers={"n": number}))
    assert target.place == "shared.raw.things"
    assert postgres.PASSWORD not in repr(target)
    assert server.ask("select table_namespace, table_name from iceberg_tables", database) == [("raw", "things")]
    wrong = iceberg(tmp_path / "out", **{**options, "uri": options["uri"].replace("burler:", "nobody:")})
    with pytest.raises(ExportError, match="can't be") as caught:
        wrong.open()
    assert postgres.PASSWORD not in str(caught.value)


def test_token_that_the_server_refuses(tmp_path: Path, packages: None) -> None:
    from iceberg_rest import rest_catalog

    with rest_catalog(f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}", "right-token-1") as url:
        target = iceberg(tmp_path, type="rest", uri=url, token="wrong-token-1")
        with pytest.raises(ExportError, match="no such token") as caught:
            target.open()
    assert "wrong-token-1" not in str(caught.value) + repr(target)


def test_warehouse_in_an_object_store(tmp_path: Path, packages: None) -> None:
    target = iceberg(tmp_path, type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse="s3://bucket/x")
    target.open()
    with pytest.raises(ExportError, match="mounted file systems only"):
        target.publish(arrow([row(1)]), change("replace"))


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("a.b", OBJECT),
        ("a.element", {"type": "array", "items": TEXT}),
        ("a.element.b", {"type": "array", "items": OBJECT}),
        ("a.key", {"type": "object", "additionalProperties": INTEGER}),
        ("a.value", {"type": "object", "additionalProperties": INTEGER}),
    ],
)
def test_a_name_that_is_the_path_of_another_field(tmp_path: Path, packages: None, named: str, other: Any) -> None:
    both = columns(**BASE, **{"a": other, named: TEXT})
    target = iceberg(tmp_path)
    target.open()

    with pytest.raises(ExportError, match=f"'{named}' is the name of a field and the path") as caught:
        target.publish(arrow([row(1)], both), change("replace", both))

    assert "Rename or deselect" in str(caught.value)
    apart = columns(**BASE, **{"a": other, f"{named}_": TEXT})
    assert target.publish(arrow([row(1)], apart), change("replace", apart)).rows_written == 1


def test_table_of_others(tmp_path: Path, packages: None) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    with SqlCatalog("burler", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("tap-x")
        catalog.create_table("tap-x.things", arrow([]).schema)
    with pytest.raises(ExportError, match="untouched"):
        iceberg(tmp_path).open()


def test_columns_changed_by_somebody_else(tmp_path: Path, spark: Any) -> None:
    """Nothing goes on from there: the export makes the table anew."""
    from pyiceberg.catalog.sql import SqlCatalog

    target = iceberg(tmp_path)
    target.open()
    target.publish(arrow([row(1, "a")]), change("replace"))
    with (
        SqlCatalog("burler", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}") as catalog,
        catalog.load_table("tap-x.things").update_schema() as update,
    ):
        update.rename_column("text", "words")
    target = iceberg(tmp_path)
    assert dict(target.open().numbers) == {}
    target.publish(arrow([row(2, "b")]), change("replace", numbers={"n": 5}))
    target = iceberg(tmp_path)
    assert dict(target.open().numbers) == {"n": 5}
    assert read(target.rows(spark)) == [row(2, "b")]
