"""What log and report say of a source's files: those that went out as they are, and those that were written anew."""

import logging

import pytest
from native_taps import config_of, put, tap_of

from burler import batch_files
from burler.errors import StorageError
from burler.singer.messages import State
from burler.testing import run_tap
from support.internals import memory_sink, run_report, runtime_run, sinks_open


def reported(tap, config):
    """A run with a report."""
    report, sink = run_report.Report(), memory_sink.MemorySink()
    session, settings = runtime_run.prepare(tap, config)
    runtime_run.run_session(session, settings, sinks_open.with_batches(sink, settings, tap=tap.name), report=report)
    return report


@pytest.mark.parametrize(
    ("names", "given", "log", "rows", "counts"),
    [
        (["a.csv"], {}, "the rows of 1 file that nobody has counted of 'orders'", "unknown", {"uncounted_files": 1}),
        (["a.csv", "b.csv"], {}, "the rows of 2 files that nobody has counted of", "unknown", {"uncounted_files": 2}),
        (["a.csv", "b.csv"], {"size": [3, 3]}, ", 6 rows of 'orders'", "6", {}),
        (["a.parquet"], {}, ", 3 rows of 'orders'", "3", {}),
    ],
    ids=["one", "two", "counted", "parquet"],
)
def test_rows_that_nobody_has_counted_are_no_zero(tmp_path, caplog, names, given, log, rows, counts):
    files = batch_files([put(tmp_path, name) for name in names], bookmark="2024-01-02T10:00:00.500000Z", **given)
    with caplog.at_level(logging.INFO):
        report = reported(tap_of(files, replication_key="at"), config_of(tmp_path))
    assert log in caplog.text and " 0 rows" not in caplog.text
    assert ('"metric":"record_count"' in caplog.text) is (rows != "unknown")
    (stream,) = report.to_json()["streams"]
    counted = {name: count for name, count in stream["counts"].items() if name != "bytes"}
    assert counted == {"passed_files": len(names), **counts}
    assert stream["updated"] is None  # nobody has seen the rows
    assert report.summary().splitlines()[2].split()[:2] == ["orders", rows]
    assert f'<td class="number" data-value="{stream["rows"]}">{rows}</td>' in report.to_html()


def test_rows_beside_such_files_are_counted(tmp_path, caplog):
    given = [batch_files(put(tmp_path, "a.csv")), batch_files(put(tmp_path, "b.csv"), size=3)]
    with caplog.at_level(logging.INFO):
        report = reported(tap_of(*given), config_of(tmp_path))
    assert "3 rows and those of 1 file that nobody has counted of 'orders'" in caplog.text
    assert report.summary().splitlines()[2].split()[:2] == ["orders", "3+"]


@pytest.mark.parametrize(
    ("name", "encoding", "said"),
    [
        ("a.csv", {"format": "parquet"}, "batch_config asks for parquet, and they are csv."),
        ("a.csv.gz", {"format": "csv"}, "batch_config asks for csv not packed, and they are packed with gzip."),
        ("a.csv", {"format": "csv", "compression": "zstd"}, "asks for csv packed with zstd, and they are not packed."),
    ],
)
def test_another_encoding_is_said_as_people_ask_for_it(tmp_path, caplog, name, encoding, said):
    with caplog.at_level(logging.INFO):
        run_tap(tap_of(batch_files(put(tmp_path, name))), config_of(tmp_path, encoding=encoding))
    assert said in caplog.text


def test_the_report_counts_the_files_that_burler_has_made_alone(tmp_path):
    read = reported(tap_of(batch_files(put(tmp_path, "a.jsonl"))), config_of(tmp_path))
    (path,) = tmp_path.glob("batches/*")
    made = {"files": 1, "rows": 3, "bytes": path.stat().st_size, "root": f"file://{tmp_path}/batches"}
    assert read.to_json()["batch"] == made
    assert read.to_json()["streams"][0]["counts"]["files"] == 1
    passed = reported(tap_of(batch_files(put(tmp_path, "a.csv"))), config_of(tmp_path))
    assert "batch" not in passed.to_json()


def test_a_report_of_a_run_that_fails_has_the_files_that_messages_have_named(tmp_path):
    class Full(memory_sink.MemorySink):
        def write(self, message):
            if isinstance(message, State):
                raise StorageError("no room")
            super().write(message)

    report = run_report.Report()
    session, settings = runtime_run.prepare(tap_of({"id": 1}), config_of(tmp_path))
    with pytest.raises(StorageError):
        runtime_run.run_session(
            session, settings, sinks_open.with_batches(Full(), settings, tap="tap-x"), report=report
        )
    assert (report.to_json()["batch"]["files"], report.to_json()["status"]) == (1, "failed")
