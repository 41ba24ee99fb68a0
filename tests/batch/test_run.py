"""Runs of a tap with BATCH on: which streams, what goes out when something fails."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import burler
from burler.batch import read
from burler.errors import ConfigError
from burler.testing import FakeClock, TapRun, run_tap
from support import cli

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["string", "null"]}}}


def config(folder: Path, **more: Any) -> dict[str, Any]:
    return {"batch_config": {"storage": {"root": str(folder / "files")}, **more}}


def rows_in(run: TapRun, stream: str) -> list[dict[str, Any]]:
    """The rows that a stream's BATCH messages name."""
    rows = []
    for message in run.messages:
        if message["type"] == "BATCH" and message["stream"] == stream:
            for url in message["manifest"]:
                lines = Path(url.removeprefix("file://")).read_text().splitlines()
                assert len(lines) == message["size"]
                rows += [json.loads(line) for line in lines]
    return rows


def one_of(name: str, sync: Any, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync(name, **{"key_properties": "id", "replication_key": "id", **options})(sync)
    tap.schema(name, FIELDS)
    return tap


def two() -> burler.Tap:
    tap = one_of("a", lambda: ({"id": i} for i in range(3)))
    tap.sync("b", key_properties="id", replication_key="id")(lambda: ({"id": i} for i in range(10, 12)))
    tap.schema("b", FIELDS)
    return tap


def catalog_of(**said: Any) -> Any:
    """The catalog of ``two``, all selected, with the users' word on BATCH."""
    return {
        "streams": [
            {
                "tap_stream_id": name,
                "stream": name,
                "schema": FIELDS,
                "metadata": [
                    {
                        "breadcrumb": [],
                        "metadata": {"selected": True, **({"batch-enabled": said[name]} if name in said else {})},
                    }
                ],
            }
            for name in ("a", "b")
        ]
    }


def test_any_tap_sends_files_in_place_of_rows(tmp_path: Path):
    run = run_tap(two(), config(tmp_path))
    assert run.types == ["SCHEMA", "SCHEMA", "BATCH", "BATCH", "STATE"]
    assert rows_in(run, "a") == [{"id": i} for i in range(3)] and rows_in(run, "b") == [{"id": 10}, {"id": 11}]
    assert run.states == run_tap(two()).states[-1:]


def test_a_stream_may_stay_as_it_is(tmp_path: Path):
    tap = two()
    run = run_tap(tap, config(tmp_path), catalog=catalog_of(b=False))
    assert [m["type"] for m in run.messages if m.get("stream") == "b"] == ["SCHEMA", "RECORD", "RECORD"]
    assert rows_in(run, "a") == [{"id": i} for i in range(3)]
    assert run.types[-1] == "STATE" and run.types.count("BATCH") == 1


def test_a_stream_alone_may_be_batched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    tap = two()
    run = run_tap(tap, catalog=catalog_of(b=True))
    assert len(run.records("a")) == 3 and rows_in(run, "b") == [{"id": 10}, {"id": 11}]
    assert [path.parent.name for path in tmp_path.rglob("*.jsonl")] == ["batches"]


def test_off_is_off_whatever_else_says_so(tmp_path: Path):
    tap = two()
    run = run_tap(tap, {**config(tmp_path), "batch": False}, catalog=catalog_of(a=True))
    assert "BATCH" not in run.types and not list(tmp_path.iterdir())


def test_a_look_at_a_few_rows_makes_no_files(tmp_path: Path):
    run = run_tap(two(), config(tmp_path), limit=1)
    assert [m["record"] for m in run.messages if m["type"] == "RECORD"] == [{"id": 0}, {"id": 10}]
    assert not list((tmp_path / "files").glob("*.jsonl"))


def test_rows_before_a_failure_are_in_a_file_and_the_state_says_no_more(tmp_path: Path):
    def rows() -> Any:
        yield [{"id": 1}, {"id": 2}]
        raise RuntimeError("the source is gone")

    tap = one_of("a", rows, order="asc", bookmark_strategy="every_n(1)")
    tap.sync("b", key_properties="id")(lambda: [{"id": 7}])
    tap.schema("b", FIELDS)
    run = run_tap(tap, config(tmp_path))
    assert str(run.result.errors["a"]) == "the source is gone"
    assert rows_in(run, "a") == [{"id": 1}, {"id": 2}] and rows_in(run, "b") == [{"id": 7}]
    assert run.states[-1]["bookmarks"]["a"] == {"id": 2}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_value_that_a_column_can_not_hold_ends_its_stream_alone(tmp_path: Path, form: str):
    tap = one_of("a", lambda: ([{"id": 1}], [{"id": 2**63}], [{"id": 3}]), order="asc", bookmark_strategy="every_n(1)")
    tap.sync("b", key_properties="id", replication_key="id")(lambda: [{"id": 7}])
    tap.schema("b", FIELDS)
    run = run_tap(tap, {**config(tmp_path, encoding={"format": form}), "page_max_rows": 1})
    assert set(run.result.errors) == {"a"}
    error = str(run.result.errors["a"])
    assert error.startswith("stream 'a', row id=9223372036854775808: field 'id': a value can't be held")
    sizes = {m["stream"]: m["size"] for m in run.messages if m["type"] == "BATCH"}
    assert sizes == {"a": 1, "b": 1} == run.result.rows
    assert run.states[-1]["bookmarks"] == {"a": {"id": 1}, "b": {"id": 7}}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rows_before_such_a_value_are_in_the_file_and_counted(tmp_path: Path, form: str):
    rows = [{"id": i} for i in range(70)] + [{"id": 2**63}] + [{"id": i} for i in range(70, 100)]
    run = run_tap(one_of("a", lambda: [rows]), config(tmp_path, encoding={"format": form}, batch_size=50))
    assert [m["size"] for m in run.messages if m["type"] == "BATCH"] == [50, 20]
    assert run.result.rows == {"a": 70} and "id" not in run.states[-1].get("bookmarks", {}).get("a", {})


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_a_schema_without_fields_ends_its_stream_alone(tmp_path: Path, form: str):
    tap = one_of("a", lambda: [{"id": 1}])
    tap.sync("b", key_properties=[])(lambda: [{"x": 7}])
    tap.schema("b", {"type": "object", "properties": {}, "additionalProperties": True})
    run = run_tap(tap, config(tmp_path, encoding={"format": form}))
    assert set(run.result.errors) == {"b"} and "jsonl" in str(run.result.errors["b"])
    assert run.types.count("BATCH") == 1 and run.states[-1]["bookmarks"]["a"] == {"id": 1}


def test_in_a_tail_the_state_that_is_due_ends_the_open_file(tmp_path: Path):
    given = iter(range(100))
    tap = one_of("a", lambda: [{"id": next(given)}], order="asc")
    settings = {
        "tail": True,
        "tail_max_rounds": 4,
        "new_record_polling_interval_ms": 10_000,
        "state_message_min_interval_ms": 15_000,
    }
    run = run_tap(tap, {**config(tmp_path, batch_age_seconds=1000), **settings}, clock=FakeClock())
    assert run.types == ["SCHEMA", "BATCH", "STATE", "BATCH", "STATE"]
    assert rows_in(run, "a") == [{"id": i} for i in range(4)]
    assert [state["bookmarks"]["a"]["id"] for state in run.states] == [1, 3]


def test_several_streams_at_a_time_keep_files_of_their_own(tmp_path: Path):
    tap = burler.tap("tap-t")
    for number in range(8):
        tap.sync(f"s{number}", key_properties="id")(
            lambda number=number: ({"id": i, "name": str(number)} for i in range(2500))
        )
        tap.schema(f"s{number}", FIELDS)
    run = run_tap(tap, {**config(tmp_path, batch_size=1000), "workers": 4})
    for number in range(8):
        assert rows_in(run, f"s{number}") == [{"id": i, "name": str(number)} for i in range(2500)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"encoding": {"format": "xml"}}, "encoding.format must be one of jsonl, csv, parquet, arrow, not 'xml'"),
        ({"encoding": {"compression": "snappy"}}, "encoding.compression must be one of none, gzip, zstd"),
        ({"encoding": {"format": "csv", "format_options": {"sep": ";"}}}, "format_options.sep is unknown"),
        ({"storage": {"bucket": "b"}}, "storage.bucket is unknown. Known: options, prefix, root"),
        ({"batch_size": 0}, "batch_size must be a whole number above 0"),
        ({"batch_size": True}, "batch_size must be a whole number above 0"),
        ({"batch_age_seconds": "soon"}, "batch_age_seconds must be seconds above 0"),
        ({"dialect": "dutch"}, "dialect must be one of both, sip, meltano"),
        ({"presign_seconds": 60}, "presign_seconds needs batch_config.dialect 'sip'"),
        ({"activate_version": "yes"}, "activate_version must be true or false"),
        (
            {"dialect": "meltano", "encoding": {"format": "csv", "format_options": {"null": "NULL"}}},
            "dialect 'meltano' can't say how csv is written",
        ),
        ({"batchsize": 5}, "batch_config.batchsize is unknown"),
        ({"encoding": "jsonl"}, "batch_config.encoding must be a JSON object, not str"),
        ({"encoding": []}, "batch_config.encoding must be a JSON object, not list"),
    ],
)
def test_what_is_wrong_in_a_config_is_named(given: Any, words: str):
    with pytest.raises(ConfigError) as caught:
        run_tap(two(), {"batch_config": given})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "encoding",
    [
        {"format": "csv", "format_options": {"delimiter": '"'}},
        {"format": "jsonl", "compression": "gzip", "compression_options": {"level": 99}},
        {"format": "jsonl", "compression": "zstd", "compression_options": {"level": 99}},
        {"format": "parquet", "compression": "gzip", "compression_options": {"level": 99}},
    ],
)
def test_options_that_can_not_be_show_before_the_first_message(tmp_path: Path, encoding: Any):
    with pytest.raises(ConfigError):
        run_tap(two(), config(tmp_path, encoding=encoding))


@pytest.mark.parametrize("options", [{}, {"line_end": "\r\n"}, {"delimiter": ","}])
def test_the_one_csv_that_needs_no_words_goes_with_every_dialect(tmp_path: Path, options: Any):
    said = {"dialect": "meltano", "encoding": {"format": "csv", "format_options": options}}
    run = run_tap(two(), config(tmp_path, **said))
    assert run.types.count("BATCH") == 2 and not run.result.errors


def test_all_that_is_wrong_comes_at_once():
    with pytest.raises(ConfigError) as caught:
        run_tap(two(), {"batch_config": {"batch_size": -1, "dialect": "x", "storage": {"root": 5}}, "workers": 0})
    for words in ("batch_size", "dialect", "storage.root", "workers"):
        assert words in str(caught.value)


@pytest.mark.parametrize("given", ["jsonl", 5, []])
def test_a_config_that_is_no_object_is_refused(given: Any):
    with pytest.raises(ConfigError, match="batch_config must be a"):
        run_tap(two(), {"batch_config": given})


TAP = """
import burler
tap = burler.tap("tap-cli")

@tap.schema("a")
def schema():
    return {"type": "object", "properties": {"id": {"type": "integer"}}}

@tap.sync("a", key_properties="id", replication_key="id")
def a():
    yield from ({"id": i} for i in range(3))
"""


def command(folder: Path, *args: str, **env: str) -> cli.Ended:
    (folder / "tap_cli.py").write_text(TAP)
    return cli.burler("run", "tap_cli.py", *args, cwd=folder, **env)


def test_one_word_on_the_command_line_is_enough(tmp_path: Path):
    done = command(tmp_path, "--batch")
    lines = [json.loads(line) for line in done.text.splitlines()]
    (batch,) = (line for line in lines if line["type"] == "BATCH")
    path = Path(batch["manifest"][0].removeprefix("file://"))
    assert done.code == 0 and path.parent == tmp_path / "batches"
    assert path.read_text() == '{"id":0}\n{"id":1}\n{"id":2}\n'


def test_the_environment_may_hold_the_config_and_the_command_line_wins(tmp_path: Path):
    said = json.dumps({"storage": {"root": str(tmp_path / "there")}})
    done = command(tmp_path, "--config", "ENV", TAP_CLI_BATCH_CONFIG=said)
    assert done.code == 0, done.stderr
    assert len(list((tmp_path / "there").iterdir())) == 1
    off = command(tmp_path, "--config", "ENV", "--no-batch", TAP_CLI_BATCH_CONFIG=said)
    assert '"BATCH"' not in off.text and off.text.count('"RECORD"') == 3


@pytest.mark.parametrize(
    "said",
    [
        {"encoding": {"format": "csv", "format_options": {"delimiter": '"'}}},
        {"encoding": {"compression": "gzip", "compression_options": {"level": 99}}},
        {"storage": {"root": "tap_cli.py"}},
    ],
)
def test_what_is_wrong_shows_before_the_first_message(tmp_path: Path, said: Any):
    done = command(tmp_path, "--config", "ENV", TAP_CLI_BATCH_CONFIG=json.dumps(said))
    assert (done.code, done.text) == (2, ""), done.stderr
    assert done.stderr.count("CRITICAL") == 1


def test_a_word_that_is_no_truth_is_an_error_before_the_first_message(tmp_path: Path):
    catalog = catalog_of(a="perhaps")
    del catalog["streams"][1]
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    done = command(tmp_path, "--catalog", "catalog.json")
    assert (done.code, done.text) == (2, "") and "stream 'a'" in done.stderr and "'batch-enabled'" in done.stderr


def test_a_look_at_a_few_rows_says_that_no_files_are_made(tmp_path: Path):
    done = command(tmp_path, "--batch", "--limit", "1")
    assert done.text.count('"RECORD"') == 1 and "no files are made" in done.stderr
    assert not (tmp_path / "batches").exists()


def test_files_beside_a_lake_are_told_to_be_of_no_effect(tmp_path: Path):
    done = command(tmp_path, "--batch", "--sink", "lake:lake")
    assert done.code == 0 and "BATCH: without effect" in done.stderr
    assert not (tmp_path / "batches").exists()


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_rows_that_a_round_of_a_tail_brings_again_stand_in_no_second_file(tmp_path: Path, form: str):
    import pyarrow as pa

    tap = one_of("a", lambda: [pa.table({"id": [1, 2], "name": ["x", "y"]})], order="asc")
    tail = {"tail": True, "tail_max_rounds": 3, "new_record_polling_interval_ms": 1000}
    run = run_tap(tap, {**config(tmp_path, encoding={"format": form}), **tail}, clock=FakeClock())
    again = run_tap(tap, tail, clock=FakeClock())
    assert sum(m["size"] for m in run.messages if m["type"] == "BATCH") == len(again.records("a"))
    assert run.result.rows == again.result.rows


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("shape", [iter, list, lambda rows: json.dumps(rows).encode()], ids=["rows", "page", "bytes"])
def test_rows_behind_a_value_that_no_column_holds_come_once_it_is_mended(tmp_path: Path, form: str, shape: Any):
    rounds = iter(range(100))

    def rows() -> Any:
        first = next(rounds) == 0
        return shape([{"id": 10**25 if first and i == 7 else i} for i in range(20)])

    tail = {"tail": True, "tail_max_rounds": 4, "new_record_polling_interval_ms": 500}
    run = run_tap(one_of("a", rows), {**config(tmp_path, encoding={"format": form}), **tail}, clock=FakeClock())
    came = set()
    for message in run.messages:
        for url in message.get("manifest", ()):
            came |= {row["id"] for row in read(message, FIELDS).rows()}
            assert url
    assert came == set(range(20)) and not run.result.errors


def test_a_file_ends_by_age_while_the_source_is_silent(tmp_path: Path):
    seen = []

    def rows() -> Any:
        yield {"id": 1}
        end = time.monotonic() + 30
        while time.monotonic() < end and not seen:
            time.sleep(0.02)
            seen.extend(path.read_text() for path in (tmp_path / "files").glob("tap-t--*"))
        yield {"id": 2}

    run = run_tap(one_of("a", rows), config(tmp_path, batch_age_seconds=0.1))
    assert seen == ['{"id":1}\n'] and [m["size"] for m in run.messages if m["type"] == "BATCH"] == [1, 1]


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_a_hook_sees_the_rows_of_arrow_pages(tmp_path: Path, form: str):
    import pyarrow as pa

    tap = one_of("a", lambda: [pa.table({"id": [1, 2], "name": ["x", "y"]})])

    @tap.post_transform("a")
    def hook(record: Any) -> Any:
        return {**record, "name": record["name"].upper()}

    run = run_tap(tap, config(tmp_path, encoding={"format": form}))
    (message,) = [m for m in run.messages if m["type"] == "BATCH"]
    assert [row["name"] for row in read(message, FIELDS).rows()] == ["X", "Y"]
