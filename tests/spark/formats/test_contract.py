"""What ``base.Target`` promises, asked of every format in the same words."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from format_names import ALL, FILES, LOCAL, PARTITIONED, WITH_ARROW, at_night
from format_readers import reader
from format_samples import BASE, FULL_ROW, NOON, NUMBER, TEXT, WIDE, arrow, change, columns, frame, read, row

from burler.errors import ExportError

every = pytest.mark.parametrize("format", at_night(ALL, "orc", "rest"), indirect=True)
without_spark = pytest.mark.parametrize("format", LOCAL, indirect=True)
GROWN = columns(**BASE, **{"new one": TEXT})


def test_names_stand_for_every_format_once() -> None:
    assert set(FILES) | set(PARTITIONED) <= set(LOCAL) < set(WITH_ARROW) < set(ALL)


@every
def test_append_and_replace(format: Any, spark: Any) -> None:
    first = format.target(spark)
    state = first.open()
    assert (state.version, state.schema, dict(state.numbers)) == (None, None, {})
    made = first.publish(frame(spark, [row(1, "a"), row(2, None), row(3, "")]), change("replace", numbers={"n": 1}))
    assert made.rows_written == 3

    second = format.target(spark)
    state = second.open()
    assert state.version == made.version
    assert dict(state.numbers) == {"n": 1}
    assert [one["name"] for one in state.schema["fields"]] == ["id", "at", "text"]
    assert read(second.rows(spark)) == [row(1, "a"), row(2, None), row(3, "")]
    grown = row(4, "d", **{"new one": "x"})
    second.publish(frame(spark, [grown], GROWN), change("append", GROWN, numbers={"n": 2, "m": 5}))

    third = format.target(spark)
    state = third.open()
    assert state.version > made.version
    assert dict(state.numbers) == {"n": 2, "m": 5}
    old = [{**one, "new one": None} for one in (row(1, "a"), row(2, None), row(3, ""))]
    assert read(third.rows(spark)) == [*old, grown]
    third.publish(frame(spark, [row(9)]), change("replace", numbers={"n": 3}))

    last = format.target(spark)
    assert dict(last.open().numbers) == {"n": 3}
    assert read(last.rows(spark)) == [row(9)]


@pytest.mark.parametrize("format", at_night([name for name in ALL if name != "rest"], "json"), indirect=True)
def test_every_type_at_its_extremes(format: Any, spark: Any) -> None:
    empty = dict.fromkeys(FULL_ROW) | {"id": -(2**63)}
    format_target = format.target(spark)
    format_target.open()
    format_target.publish(frame(spark, [FULL_ROW, empty], WIDE), change("replace", WIDE))
    again = format.target(spark)
    again.open()
    assert read(again.rows(spark)) == [empty, FULL_ROW]
    if not again.appends_arrow:
        return
    again.publish(arrow([{**FULL_ROW, "id": 5}], WIDE), change("append", WIDE))
    last = format.target(spark)
    last.open()
    assert read(last.rows(spark)) == [empty, {**FULL_ROW, "id": 5}, FULL_ROW]


@without_spark
def test_merge_keeps_the_newer_row_of_each_key(format: Any, spark: Any) -> None:
    """Null is oldest; where all are equal the given row wins; rows of other keys stay."""
    target = format.target(spark)
    target.open()
    before = [row(1, "old"), row(2, "newer"), row(3, "untimed", None), row(4, "timed"), row(5, "other")]
    target.publish(arrow(before), change("replace"))
    target = format.target(spark)
    target.open()
    assert target.merges_arrow
    given = [row(1, "same time"), row(2, "older", NOON - dt.timedelta(days=1)), row(3, "now timed")]
    given += [row(4, "untimed", None), row(6, "new")]
    target.publish(arrow([{**one, "new one": "x"} for one in given], GROWN), change("merge", GROWN, numbers={"n": 7}))
    target = format.target(spark)
    assert dict(target.open().numbers) == {"n": 7}
    assert [(one["id"], one["text"], one["new one"]) for one in read(target.rows(spark))] == [
        (1, "same time", "x"),
        (2, "newer", None),
        (3, "now timed", "x"),
        (4, "timed", None),
        (5, "other", None),
        (6, "new", "x"),
    ]
    assert target.publish(None, change("merge", GROWN, numbers={"n": 8})).rows_written == 0
    target = format.target(spark)
    assert dict(target.open().numbers) == {"n": 8}
    assert len(read(target.rows(spark))) == 6


@without_spark
def test_keys_of_zeros_are_one(format: Any, spark: Any) -> None:
    """0.0 and -0.0 are equal, in Spark as in SQL."""
    twins = columns(n=NUMBER, text=TEXT)
    for kind, number, text in (("replace", 0.0, "a"), ("merge", -0.0, "b")):
        target = format.target(spark)
        target.open()
        rows = arrow([{"n": number, "text": text}, {"n": 1.5, "text": text}], twins)
        more = {"keys": ("n",), "newer": ()} if kind == "merge" else {}
        target.publish(rows, change(kind, twins, **more))
    target = format.target(spark)
    target.open()
    assert [one.text for one in target.rows(spark).collect()] == ["b", "b"]


@without_spark
def test_merge_into_a_table_that_is_not_there(format: Any, spark: Any) -> None:
    target = format.target(spark)
    target.open()
    target.publish(arrow([row(1, "a")]), change("merge"))
    target = format.target(spark)
    target.open()
    assert read(target.rows(spark)) == [row(1, "a")]


@pytest.mark.parametrize("format", WITH_ARROW, indirect=True)
@pytest.mark.parametrize("kind", ["append", "replace", "merge"])
def test_second_publisher_is_refused(format: Any, kind: str, packages: None) -> None:
    """Two begin from one version; also where there was no table yet."""
    for before in (0, 1):
        one, other = format.target(), format.target()
        assert one.open() == other.open()
        one.publish(arrow([row(10 + before, "first")]), change(kind, numbers={"n": 1}))
        with pytest.raises(ExportError, match="another export of this table was faster"):
            other.publish(arrow([row(99, "second")]), change(kind, numbers={"n": 2}))
    assert dict(format.target().open().numbers) == {"n": 1}
    if format.options.get("type") != "rest":
        assert {text for _, text in reader(format)()} == {"first"}


@without_spark
def test_failed_check_leaves_nothing(format: Any, packages: None) -> None:
    def fail() -> None:
        raise ExportError("rows are missing")

    target = format.target()
    target.open()
    with pytest.raises(ExportError, match="rows are missing"):
        target.publish(arrow([row(1)]), change("replace", check=fail))
    assert format.target().open().version is None
    assert not list(format.folder.rglob("*.parquet"))
    assert not list(format.folder.rglob("_pending*"))

    target = format.target()
    target.open()
    target.publish(arrow([row(1)]), change("replace"))
    files = set(format.folder.rglob("*"))
    target = format.target()
    state = target.open()
    with pytest.raises(ExportError, match="rows are missing"):
        target.publish(arrow([row(2)]), change("append", check=fail))
    again = format.target()
    assert again.open() == state
    assert reader(format)() == [(1, None)]
    assert set(format.folder.rglob("*")) == files
    if format.ask:
        assert format.ask("select tablename from pg_tables where tablename like '%stage%'") == []


@pytest.mark.parametrize("format", WITH_ARROW, indirect=True)
def test_table_of_another_stream_stays_untouched(format: Any, packages: None) -> None:
    target = format.target()
    target.open()
    target.publish(arrow([row(1)]), change("replace"))
    stranger = format.target(source="tap-x/other")
    with pytest.raises(ExportError, match="untouched"):
        stranger.open()


@without_spark
def test_a_table_without_rows(format: Any, spark: Any) -> None:
    target = format.target(spark)
    target.open()
    target.publish(None, change("replace", numbers={"n": 1}))
    target = format.target(spark)
    assert dict(target.open().numbers) == {"n": 1}
    assert read(target.rows(spark)) == []
    target.publish(None, change("append", GROWN, numbers={"n": 2}))
    target = format.target(spark)
    state = target.open()
    assert [one["name"] for one in state.schema["fields"]] == ["id", "at", "text", "new one"]
    target.publish(arrow([row(1, "a")], GROWN), change("append", GROWN))
    target = format.target(spark)
    target.open()
    assert read(target.rows(spark)) == [{**row(1, "a"), "new one": None}]


@pytest.mark.parametrize("format", PARTITIONED, indirect=True)
def test_partitions_with_odd_values(format: Any, spark: Any) -> None:
    """Null, slashes, equals signs, a percent sign, what Spark takes for null, more than a file name holds."""
    texts = ["a/b", "c=d", "50 %", "é+ü", "x" * 300, ".", None]
    if format.kind != "delta":
        texts += ["", "__HIVE_DEFAULT_PARTITION__"]
    rows = [row(at, text) for at, text in enumerate(texts)]
    target = format.target(spark)
    target.open()
    target.publish(frame(spark, rows[:4]), change("replace", partition_by=("text", "at")))
    target = format.target(spark)
    assert target.open().partition_by == ("text", "at")
    target.publish(arrow(rows[4:]), change("append"))
    target = format.target(spark)
    target.open()
    assert read(target.rows(spark)) == rows
    target.publish(arrow([row(0, "a/b"), row(77, "c=d")]), change("merge"))
    target = format.target(spark)
    target.open()
    assert read(target.rows(spark)) == [*rows, row(77, "c=d")]
    assert read(target.rows(spark).where("text = '50 %'")) == [row(2, "50 %")]
    target.publish(frame(spark, rows), change("replace", partition_by=("id",)))
    target = format.target(spark)
    assert target.open().partition_by == ("id",)
    assert read(target.rows(spark)) == rows


@pytest.mark.parametrize("format", ["delta"], indirect=True)
@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_delta_has_no_text_in_partitions_that_is_read_as_null(format: Any, spark: Any, text: str) -> None:
    target = format.target(spark)
    target.open()
    with pytest.raises(ExportError, match="can't tell from null"):
        target.publish(arrow([row(1, text)]), change("replace", partition_by=("text",)))
    assert not format.folder.exists()
    target = format.target(spark)
    target.open()
    target.publish(arrow([row(1, "a")]), change("replace", partition_by=("text",)))
    for kind in ("merge", "append"):
        target = format.target(spark)
        target.open()
        with pytest.raises(ExportError, match="can't tell from null"):
            target.publish(arrow([row(2, "b"), row(1, text)]), change(kind))
        assert read(target.rows(spark)) == [row(1, "a")]


@pytest.mark.parametrize("format", PARTITIONED, indirect=True)
def test_partitions_that_can_not_be(format: Any, packages: None) -> None:
    for name, said in (("nope", "no column 'nope'"), ("share", r"'share' \(double\)"), ("tags", "list, map or object")):
        target = format.target()
        target.open()
        with pytest.raises(ExportError, match=said):
            target.publish(arrow([FULL_ROW], WIDE), change("replace", WIDE, partition_by=(name,)))


@pytest.mark.parametrize("format", ["delta", "parquet", "iceberg"], indirect=True)
def test_one_file_where_one_is_asked_for(format: Any, spark: Any) -> None:
    rows = frame(spark, [row(at) for at in range(100)]).repartition(4)
    target = format.target(spark)
    target.open()
    target.publish(rows, change("replace", file_count=1))
    assert len(list(format.folder.rglob("part-*.parquet"))) == 1
