"""Lake in, tables out: what the tables hold, and what each run reads and writes."""

from __future__ import annotations

import datetime as dt
import gzip

import pytest

from burler.errors import ExportError, LakeError, UsageError
from burler.spark import export, table
from support.internals import export_options

pytestmark = pytest.mark.usefixtures("packages")

INTEGER, TEXT = {"type": ["null", "integer"]}, {"type": ["null", "string"]}
MOMENT = {"type": ["null", "string"], "format": "date-time"}


@pytest.fixture
def run(spark, lake, tmp_path):
    """Export the lake; results by stream."""

    def go(**options):
        results = export(spark, str(lake.root), str(tmp_path / "out"), **options)
        return {result.stream: result for result in results}

    return go


def counts(result):
    return (result.rows_read, result.rows_written, result.version, result.skipped)


@pytest.mark.parametrize("small_rows", [50_000, 0], ids=["small", "spark"])
def test_latest_row_per_key_is_decided_by_sequence_file_and_line_when_all_else_is_equal(
    lake, run, read, monkeypatch, small_rows
):
    monkeypatch.setattr(export_options, "SMALL_ROWS", small_rows)
    same = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    for commit in "ab":
        rows = [{"id": at % 7, "name": f"{commit}{at}"} for at in range(500)]
        lake.commit("users", rows, time=same)

    assert counts(run()["users"]) == (1000, 7, 0, False)
    assert read("users", "id", "name", "_sdc_sequence") == [(key, f"b{max(range(key, 500, 7))}", 2) for key in range(7)]


def test_files_of_one_commit_rank_by_their_names_and_numbers(lake, run, read):
    same = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    for name in "abc":
        lake.commit("users", [{"id": 1, "name": name}], time=same)
    document = lake.manifest("users")
    for stats in document["file_stats"].values():
        stats["sequence"] = 3
    lake.save("users", document)

    run()

    assert read("users", "name", "_sdc_source_file")[0] == ("c", document["files"][-1])


def test_replication_key_beats_time_and_time_beats_sequence(lake, run, read):
    schema = {"properties": {"id": INTEGER, "name": TEXT, "at": MOMENT}}
    late, early = dt.datetime(2024, 6, 2, tzinfo=dt.UTC), dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
    one = [{"id": 1, "name": "newer key", "at": "2024-02-01T00:00:00Z"}]
    two = [{"id": 1, "name": "null key", "at": None}, {"id": 1, "name": "older key", "at": "2024-01-01T00:00:00Z"}]
    lake.commit("users", one, schema=schema, bookmarks=("at",), time=early)
    lake.commit("users", two, schema=schema, bookmarks=("at",), time=late)
    lake.commit("plain", [{"id": 1, "name": "extracted later"}], time=late)
    lake.commit("plain", [{"id": 1, "name": "committed later"}], time=early)

    run()

    assert read("users", "name") == [("newer key",)]
    assert read("plain", "name") == [("extracted later",)]


def test_second_run_reads_nothing_and_needs_no_spark(lake, run, tmp_path):
    lake.commit("users", [{"id": 1, "name": "a"}])
    lake.commit("log", [{"id": 1, "name": "a"}], keys=())
    run()

    results = {one.stream: one for one in export(None, str(lake.root), str(tmp_path / "out"))}

    assert counts(results["users"]) == counts(results["log"]) == (0, 0, 0, True)


def test_an_increment_reads_only_new_files(lake, run, read):
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    lake.commit("log", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], keys=())
    run()
    for old in lake.root.rglob("*.singer.gz"):
        old.write_bytes(b"not read again")
    lake.commit("users", [{"id": 2, "name": "B"}, {"id": 3, "name": "c"}])
    lake.commit("log", [{"id": 2, "name": "B"}], keys=())

    results = run()

    assert counts(results["users"]) == (2, 3, 1, False)
    assert counts(results["log"]) == (1, 1, 1, False)
    assert read("users", "id", "name", "_sdc_sequence") == [(1, "a", 1), (2, "B", 2), (3, "c", 2)]
    assert read("log", "id", "name", "_sdc_sequence") == [(1, "a", 1), (2, "B", 2), (2, "b", 1)]


def test_an_older_row_that_comes_in_an_increment_does_not_win(lake, run, read):
    schema = {"properties": {"id": INTEGER, "at": MOMENT}}
    lake.commit("users", [{"id": 1, "at": "2024-02-01T00:00:00Z"}], schema=schema, bookmarks=("at",))
    run()
    lake.commit("users", [{"id": 1, "at": "2024-01-01T00:00:00Z"}], schema=schema, bookmarks=("at",))
    run()

    assert read("users", "cast(at as string)") == [("2024-02-01 00:00:00",)]


def test_another_generation_other_keys_and_a_lake_set_back_make_the_table_anew(lake, run, read):
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}])
    lake.commit("users", [{"id": 1, "name": "b"}])
    run()

    document = lake.manifest("users") | {"generation": "another"}
    lake.save("users", document)
    assert counts(run()["users"]) == (3, 2, 1, False)

    document["sequence"] = 1  # restored from an older copy
    lake.save("users", document)
    assert counts(run()["users"]) == (3, 2, 2, False)

    lake.commit("users", [{"id": 3, "name": "c"}], keys=("name",))
    assert counts(run()["users"]) == (4, 3, 3, False)
    assert read("users", "id", "name") == [(1, "b"), (2, "a"), (3, "c")]


def test_schemas_are_united_and_text_stays_what_the_tap_wrote(lake, run, read, spark, tmp_path):
    first = {"properties": {"id": INTEGER, "n": {"type": "integer"}, "o": {"properties": {"a": INTEGER}}}}
    second = {"properties": {"id": INTEGER, "n": {"type": "number"}, "o": {"properties": {"b": TEXT}}, "z": TEXT}}
    third = {"properties": {"id": INTEGER, "n": TEXT}}
    lake.commit("s", [{"id": 1, "n": 7, "o": {"a": 5}}], schema=first)
    run()
    lake.commit("s", [b'{"id":2,"n":1.50,"o":{"b":"x"},"z":"new"}'], schema=second)
    assert counts(run()["s"]) == (2, 2, 1, False)
    assert read("s", "id", "n", "z", "o.a", "o.b") == [(1, 7.0, None, 5, None), (2, 1.5, "new", None, "x")]

    lake.commit("s", [{"id": 3, "n": "text"}], schema=third)
    run()

    assert read("s", "id", "n") == [(1, "7"), (2, "1.50"), (3, "text")], "source text, not 1.5"


def test_new_columns_alone_keep_the_rows_that_are_there(lake, run, read):
    lake.commit("log", [{"id": 1, "name": "a"}], keys=())
    lake.commit("users", [{"id": 1, "name": "a"}])
    run()
    wider = {"properties": {"id": INTEGER, "name": TEXT, "age": INTEGER}}
    lake.commit("log", [{"id": 2, "name": "b", "age": 3}], schema=wider, keys=())
    lake.register("users", wider)

    results = run()

    assert results["log"].rows_read == 1
    assert read("log", "id", "name", "age") == [(1, "a", None), (2, "b", 3)]
    assert results["users"].rows_read == 0
    assert read("users", "id", "age") == [(1, None)]


def test_a_schema_that_can_not_be_columns_stops_that_stream_only(lake, run, read):
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}
    schema = {"properties": {"id": INTEGER, "x": {"$ref": "#/definitions/node"}}, "definitions": {"node": node}}
    lake.commit("s", [{"id": 1, "x": {}}], schema=schema)
    lake.commit("users", [{"id": 1, "name": "a"}])

    with pytest.raises(ExportError, match=r"stream 's': its schema v1 is recursive"):
        run()

    assert read("users", "id") == [(1,)]


def test_a_table_goes_on_where_a_manifest_was_made_from_another(lake, run, read):
    """As far as both count the same commits; a table that is ahead of that is made anew."""
    lake.commit("users", [{"id": 1}])
    run()
    lake.commit("users", [{"id": 2}])
    document = lake.manifest("users")
    lake.save("users", {**document, "generation": "rebuilt", "continues": {document["generation"]: 1}})
    assert counts(run()["users"]) == (1, 1, 1, False)
    lake.save("users", {**document, "generation": "again", "continues": {"rebuilt": 1}})
    assert counts(run()["users"]) == (2, 2, 2, False)
    assert read("users", "id") == [(1,), (2,)]


def test_only_the_active_version_counts(lake, run, read):
    lake.commit("users", [{"id": 1, "name": "v1"}, {"id": 2, "name": "v1"}], version=1, activate=1)
    lake.commit("log", [{"id": 1, "name": "v1"}, {"id": 2, "name": "v1"}], version=1, activate=1, keys=())
    lake.commit("log", [{"id": 9, "name": "without"}], keys=())
    run()
    assert len(read("log", "id")) == 3

    lake.commit("users", [{"id": 1, "name": "v2"}], version=2)  # not active yet: upserted
    run()
    assert read("users", "id", "name") == [(1, "v2"), (2, "v1")]

    lake.commit("users", [{"id": 3, "name": "v2"}], version=2, activate=2)
    lake.commit("log", [{"id": 3, "name": "v2"}], version=2, activate=2, keys=())
    results = run()

    assert read("users", "id", "name", "_sdc_version") == [(1, "v2", 2), (3, "v2", 2)]
    assert read("log", "id", "name") == [(3, "v2")]
    assert results["log"].rows_read == 1, "files of older versions are not read"

    lake.commit("users", [{"id": 4, "name": "late v1"}], version=1)
    lake.commit("users", [{"id": 5, "name": "without, after"}])
    run()
    assert read("users", "id") == [(1,), (3,), (5,)]


def test_a_version_without_rows_and_a_stream_without_rows_give_empty_tables(lake, run, spark, tmp_path):
    lake.commit("users", [{"id": 1, "name": "v1"}], version=1, activate=1)
    run()
    lake.commit("users", [], version=2, activate=2)
    lake.register("none", {"properties": {"id": INTEGER, "at": MOMENT}})

    results = run()

    assert results["users"].version == 1
    for stream, columns in (("users", ["id", "name"]), ("none", ["id", "at"])):
        frame = table(spark, tmp_path / "out" / "tap-x" / stream)
        assert frame.collect() == []
        assert frame.columns[:2] == columns
        assert frame.columns[2:] == [
            "_sdc_extracted_at",
            "_sdc_batched_at",
            "_sdc_version",
            "_sdc_sequence",
            "_sdc_source_file",
        ]
    assert all(result.skipped for result in run().values())


def test_a_changed_line_in_a_clean_file_is_fatal_and_publishes_nothing(lake, run, spark, tmp_path, monkeypatch):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    lake.commit("users", [{"id": 1, "name": "a"}])
    run()
    path = lake.commit("users", [{"id": 2, "name": "b"}])
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b'"id": 2', b'"id": [')))

    with pytest.raises(ExportError) as caught:
        run()

    assert "stream 'users': 1 row can't be held" in str(caught.value)
    assert f"{path} line 2" in str(caught.value)
    assert '"id": [' not in str(caught.value), "no values of rows"
    folder = tmp_path / "out" / "tap-x" / "users"
    assert table(spark, folder).count() == 1
    assert len(list(folder.glob("data-*"))) == 1
    assert not list(folder.glob("_[!d]*"))


@pytest.mark.parametrize("clean", [True, False])
def test_damaged_files_are_named(lake, run, monkeypatch, clean):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    cut = lake.commit("cut", [{"id": at, "name": "x" * 50} for at in range(2000)], clean=clean)
    cut.write_bytes(cut.read_bytes()[:-500])
    short = lake.commit("short", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], clean=clean)
    lines = gzip.decompress(short.read_bytes()).splitlines(keepends=True)
    short.write_bytes(gzip.compress(b"".join(lines[:-1])))
    gone = lake.commit("gone", [{"id": 1, "name": "a"}], clean=clean)
    gone.unlink()

    for stream, path, words in (
        ("cut", cut, "truncated"),
        ("short", short, "holds 1 rows, its manifest says 2"),
        ("gone", gone, "missing"),
    ):
        with pytest.raises(LakeError) as caught:
            run(streams=[stream])
        assert f"stream '{stream}'" in str(caught.value)
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert "Restore" in str(caught.value)


@pytest.mark.parametrize("small_rows", [50_000, 0], ids=["small", "spark"])
def test_rows_without_a_key_are_fatal(lake, run, monkeypatch, small_rows):
    monkeypatch.setattr(export_options, "SMALL_ROWS", small_rows)
    schema = {"properties": {"id": INTEGER, "name": TEXT}}
    lake.commit("users", [{"id": None, "name": "a"}, {"name": "b"}, {"id": 1}], schema=schema)

    with pytest.raises(ExportError, match=r"2 rows without a value in the key \(id\)"):
        run()


@pytest.mark.parametrize(
    ("schema", "keys", "words"),
    [
        ({"properties": {"name": TEXT}}, ("id",), "key 'id' is no field"),
        ({"properties": {"id": {"type": "array", "items": INTEGER}}}, ("id",), "a plain value"),
    ],
)
def test_schemas_that_make_no_table_are_refused(lake, tmp_path, schema, keys, words):
    lake.commit("users", [], schema=schema, keys=keys)

    with pytest.raises(ExportError, match="stream 'users'") as caught:
        export(None, str(lake.root), str(tmp_path / "out"))

    assert words in str(caught.value)


def test_several_failed_streams_are_all_named(lake, tmp_path):
    for stream, schema in (("one", {"name": TEXT}), ("two", {"id": {"type": "array", "items": INTEGER}})):
        lake.commit(stream, [], schema={"properties": schema})
    seen = []

    with pytest.raises(ExportError, match=r"stream 'one': .* is no field.*\nstream 'two': .* a plain value"):
        export(None, str(lake.root), str(tmp_path / "out"), on_progress=seen.append)

    assert [(result.stream, type(result.error)) for result in seen] == [("one", ExportError), ("two", ExportError)]


def test_a_cause_that_streams_share_is_told_once_and_whole(lake, tmp_path):
    for stream in ("one", "two"):
        lake.commit(stream, [{"id": 1}], schema={"properties": {"name": TEXT}})

    with pytest.raises(ExportError) as caught:
        export(None, str(lake.root), str(tmp_path / "out"))

    assert str(caught.value).startswith("streams 'one', 'two': its key 'id' is no field")
    assert str(caught.value).count("key_properties") == 1


@pytest.mark.parametrize("options", [{"streams": ["userz"]}, {"taps": ["tap-y"]}])
def test_unknown_names_are_usage_errors(lake, tmp_path, options):
    lake.commit("users", [{"id": 1}])

    with pytest.raises(UsageError, match=r"It has: (users|tap-x)"):
        export(None, str(lake.root), str(tmp_path / "out"), **options)


def test_no_lake_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError):
        export(None, str(tmp_path / "nothing"), str(tmp_path / "out"))


def test_hostile_names_in_lake_stream_and_out(spark, tmp_path, lake, monkeypatch):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    root = tmp_path / "la ke {x}*?=[1]" / "in"
    hostile = type(lake)(root, tap_id="tap=1 *")
    fields = {"properties": {"id": INTEGER, "a.b": TEXT, "c `d`": TEXT, "e,f;{}()=": TEXT}}
    for stream in ("a b", "{x}*?", "x=y", "_hidden"):
        hostile.commit(stream, [{"id": 1, "a.b": stream, "c `d`": "2", "e,f;{}()=": "3"}], schema=fields)
    out = tmp_path / "ou t={1}*"

    results = export(spark, str(root), str(out))
    for stream in ("a b", "{x}*?", "x=y", "_hidden"):
        hostile.commit(stream, [{"id": 2, "a.b": stream, "c `d`": "2", "e,f;{}()=": "3"}], schema=fields)
    results = export(spark, str(root), str(out))

    assert {result.stream for result in results} == {"{x}*?", "_hidden", "a b", "x=y"}
    for result in results:
        rows = table(spark, result.table).select("`a.b`", "`c ``d```", "`e,f;{}()=`").collect()
        assert [tuple(row) for row in rows] == [(result.stream, "2", "3")] * 2


def test_an_out_path_that_deltalake_can_not_take_is_refused(lake, tmp_path):
    lake.commit("users", [{"id": 1}])

    with pytest.raises(ExportError, match="no '%' in a path"):
        export(None, str(lake.root), str(tmp_path / "50%"))


def test_files_whose_rows_all_fall_away_give_empty_tables(lake, run):
    lake.commit("users", [], activate=2)
    lake.commit("users", [{"id": 1, "name": "late"}], version=1)
    lake.commit("log", [], activate=2, keys=())
    lake.commit("log", [{"id": 1, "name": "late"}], version=1, keys=())
    lake.commit("nothing", [])

    results = run()

    assert {name: counts(result) for name, result in results.items()} == {
        "users": (1, 0, 0, False),
        "log": (1, 0, 0, False),
        "nothing": (0, 0, 0, False),
    }


def test_rows_without_a_version_outlive_an_activation_that_the_table_has_seen(lake, run, read):
    """A stream that turns INCREMENTAL: an increment and an export from nothing give the same table."""
    lake.commit("users", [{"id": 1, "name": "v1"}], version=1, activate=1)
    run()
    lake.commit("users", [{"id": 2, "name": "without"}])
    run()
    lake.commit("users", [{"id": 3, "name": "without"}])
    run()
    assert read("users", "id") == [(1,), (2,), (3,)]
    lake.commit("users", [{"id": 4, "name": "v2"}], version=2, activate=2)
    run()
    assert read("users", "id") == [(4,)]


def test_a_version_that_goes_back_drops_the_rows_before_it(lake, run, read):
    """A lost state and a clock that was set back: what the last activation says counts."""
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], version=1000, activate=1000)
    run()
    lake.commit("users", [{"id": 1, "name": "a"}], version=500, activate=500)
    run()
    assert read("users", "id") == [(1,)]


def test_a_value_that_nobody_thought_of_ends_its_own_stream_only(lake, tmp_path, monkeypatch):
    import deltalake

    real = deltalake.DeltaTable.is_deltatable

    def broken(path):
        if path.endswith("/a"):
            raise OverflowError("too large")
        return real(path)

    lake.register("a", {"type": "object", "properties": {"id": {"type": "integer"}}})
    lake.register("b", {"type": "object", "properties": {"id": {"type": "integer"}}})
    monkeypatch.setattr(deltalake.DeltaTable, "is_deltatable", broken)
    ended = []
    with pytest.raises(ExportError, match="stream 'a': OverflowError: too large"):
        export(None, str(lake.root), str(tmp_path / "out"), on_progress=ended.append)
    assert [(one.stream, one.error is None) for one in ended] == [("a", False), ("b", True)]


def test_names_that_export_needs_are_kept_beside_them(lake, run, read):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "_burler_row": {"type": "string"}}}
    lake.commit("users", [{"id": 1, "_burler_row": "mine"}], schema=schema)
    run()
    assert read("users", "_burler_row_2") == [("mine",)]


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ({"type": "number"}, (9007199254740992, 9007199254740993), "from 2\\^53 on"),
        (
            {"type": "string", "format": "date-time"},
            ("2024-01-01T00:00:00.0000001Z", "2024-01-01T00:00:00.0000002Z"),
            "more than six digits",
        ),
    ],
)
@pytest.mark.parametrize("small_rows", [50_000, 0], ids=["small", "spark"])
def test_keys_that_would_become_equal_are_refused(lake, run, monkeypatch, small_rows, field, values, words):
    monkeypatch.setattr(export_options, "SMALL_ROWS", small_rows)
    schema = {"type": "object", "properties": {"id": field}}
    lake.commit("users", [{"id": value} for value in values], schema=schema)
    with pytest.raises(ExportError, match=words):
        run()
