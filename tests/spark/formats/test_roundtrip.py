"""Formats that are not burler's own give back what was written, or nothing is published."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from format_samples import INTEGER, NUMBER, TEXT, change, columns

from burler.errors import ExportError
from burler.spark import spark_schema, table
from support.internals import opening

MOMENT = {"type": "string", "format": "date-time"}
COLUMNS = columns(
    k=INTEGER,
    t=TEXT,
    n=NUMBER,
    d={"type": "number", "multipleOf": 1e-9},
    at=MOMENT,
    day={"type": "string", "format": "date"},
    _sdc_extracted_at=MOMENT,
)
UTC = dt.UTC
TEXTS = [
    *(
        "",
        None,
        " a ",
        "  ",
        "\t",
        "\n",
        "\r",
        "a\nb",
        "a\r\nb",
        '"',
        '""',
        'a"b',
        "\\",
        '\\"',
        "a\\",
        "null",
        "NULL",
        "NaN",
    ),
    *("#x", ",", ";", '"a,b"', "\u2028", "\x85", "\ufeffa", "<a>&amp;</a>", "]]>", "</row>", "e\u0301", "\U0001f600"),
    *("x" * 100_000, "${x}", " lead", "trail ", "\xa0", "\u3000", "1e5", "2024-01-01", "-"),
]
ORDINARY = {
    "n": [0.1, 1e308, -5e-324, float("nan"), float("inf")],
    "d": [Decimal("0.000000001"), Decimal("-99999999999999999999999999999.999999999")],
    "at": [dt.datetime(2024, 1, 1, 12, 0, 0, 123456, UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    "day": [dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
}
LONG_AGO = {
    "at": [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
    "day": [dt.date(1, 1, 1), dt.date(1582, 10, 10)],
}


def rows_of(values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    bare = dict.fromkeys(name for name, _ in COLUMNS.fields)
    now = dt.datetime(2024, 1, 1, tzinfo=UTC)
    found = [{**bare, name: value, "_sdc_extracted_at": now} for name, held in values.items() for value in held]
    return [{**row, "k": number} for number, row in enumerate(found)]


def publish(spark: Any, out: Path, kind: str, rows: list[dict[str, Any]], shape: Any = COLUMNS) -> Path:
    place = opening.place_of(kind, str(out), "t", "s", "t", "s")
    target = opening.open_target(kind, place, source="t/s", options={}, spark=lambda: spark)
    target.open()
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], spark_schema(shape))
    target.publish(frame, change("replace", shape))
    return out / "t" / "s"


def found_in(spark: Any, place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(spark, place).toArrow().sort_by("k").to_pylist()
    return found


@pytest.mark.parametrize("kind", ["csv", "json", "orc", "xml"])
def test_values_come_back_as_they_were(spark: Any, tmp_path: Path, kind: str) -> None:
    rows = rows_of({"t": TEXTS, **ORDINARY})
    found = found_in(spark, publish(spark, tmp_path, kind, rows))
    for got, wanted in zip(found, rows, strict=True):
        assert got == wanted or repr(got["n"]) == repr(wanted["n"]) == "nan"


@pytest.mark.parametrize("kind", ["csv", "json", "xml"])
def test_old_times_come_back(spark: Any, tmp_path: Path, kind: str) -> None:
    rows = rows_of(LONG_AGO)
    assert found_in(spark, publish(spark, tmp_path, kind, rows)) == rows


@pytest.mark.parametrize("field", LONG_AGO)
def test_old_times_come_back_from_orc_or_are_refused(spark: Any, tmp_path: Path, field: str) -> None:
    """It takes its own calendar before 1582, and counts fractions of a second the wrong way before 1970."""
    rows = rows_of({field: LONG_AGO[field]})
    try:
        place = publish(spark, tmp_path, "orc", rows)
    except ExportError as error:
        assert f"values of '{field}' don't come back" in str(error)
        assert not (tmp_path / "t").exists()
    else:
        assert found_in(spark, place) == rows


@pytest.mark.parametrize(("kind", "text"), [("csv", "\\N"), ("xml", "\\N")])
def test_a_text_that_would_be_another_is_refused(spark: Any, tmp_path: Path, kind: str, text: str) -> None:
    with pytest.raises(ExportError, match=rf"{kind} can't hold these rows exactly: values of 't'"):
        publish(spark, tmp_path, kind, rows_of({"t": ["a", text]}))
    assert not (tmp_path / "t").exists()


def test_csv_has_no_form_for_bytes(spark: Any, tmp_path: Path) -> None:
    shape = columns(k=INTEGER, b={"type": "string", "contentEncoding": "base64"})
    with pytest.raises(ExportError, match="column 'b' is binary"):
        publish(spark, tmp_path, "csv", [{"k": 1, "b": b"\0"}], shape)
    assert found_in(spark, publish(spark, tmp_path, "json", [{"k": 1, "b": b"\0"}], shape)) == [{"k": 1, "b": b"\0"}]


@pytest.mark.parametrize("name", ["a b", "1x", "$x", "a:b", ""])
def test_what_is_no_name_in_xml_is_named(spark: Any, tmp_path: Path, name: str) -> None:
    shape = columns(**{"k": INTEGER, name: TEXT})
    with pytest.raises(ExportError, match="is no name of an XML element"):
        publish(spark, tmp_path, "xml", [{"k": 1, name: "x"}], shape)


@pytest.mark.parametrize("kind", ["json", "orc"])
def test_maps_are_held_against_each_other_too(spark: Any, tmp_path: Path, kind: str) -> None:
    shape = columns(
        k=INTEGER,
        m={"type": "object", "additionalProperties": TEXT},
        s={"type": "object", "properties": {"at": MOMENT}},
    )
    rows = [{"k": 1, "m": {"a": "1", "b": None}, "s": {"at": ORDINARY["at"][0]}}]
    found = found_in(spark, publish(spark, tmp_path, kind, rows, shape))
    assert found[0]["k"] == 1 and dict(found[0]["m"]) == rows[0]["m"] and found[0]["s"] == rows[0]["s"]
