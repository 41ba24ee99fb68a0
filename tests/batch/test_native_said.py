"""What log and report say of a source's files: those that went out as they are, and those that were written anew."""

import json
import logging
import re

import pytest
from native_taps import config_of, put, tap_of

from burler import batch_files
from burler.testing import run_tap
from support.cli import Ended, burler

TAP = """
from burler import batch_files
from native_taps import tap_of

tap = tap_of({yields}, **{options})
"""


def reported(folder, yields, **options) -> tuple[Ended, dict]:
    """A run with BATCH and a report of a tap that yields these, as they stand in its source."""
    (folder / "tap_exports.py").write_text(TAP.format(yields=yields, options=options))
    (folder / "config.json").write_text(json.dumps(config_of(folder)))
    done = burler("run", "tap_exports.py", "--config", "config.json", "--report", "report.json", cwd=folder)
    return done, json.loads((folder / "report.json").read_text())


def table_of(done: Ended) -> list[str]:
    """Stream and rows, as the table at the end of the log has them."""
    (line,) = re.findall(r"^INFO \| (orders .*)$", done.stderr, re.MULTILINE)
    return line.split()[:2]


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
def test_rows_that_nobody_has_counted_are_no_zero(tmp_path, names, given, log, rows, counts):
    paths = [str(put(tmp_path, name)) for name in names]
    more = {"bookmark": "2024-01-02T10:00:00.500000Z", **given}
    done, report = reported(tmp_path, f"batch_files({paths}, **{more})", replication_key="at")
    assert log in done.stderr and " 0 rows" not in done.stderr
    assert ('"metric":"record_count"' in done.stderr) is (rows != "unknown")
    (stream,) = report["streams"]
    counted = {name: count for name, count in stream["counts"].items() if name != "bytes"}
    assert counted == {"passed_files": len(names), **counts}
    assert stream["updated"] is None  # nobody has seen the rows
    assert table_of(done) == ["orders", rows] and "batch" not in report
    burler("run", "tap_exports.py", "--config", "config.json", "--report", "report.html", cwd=tmp_path)
    assert f">{rows}</td>" in (tmp_path / "report.html").read_text()


def test_rows_beside_such_files_are_counted(tmp_path):
    one, other = (str(put(tmp_path, name)) for name in ("a.csv", "b.csv"))
    done, _ = reported(tmp_path, f"batch_files({one!r}), batch_files({other!r}, size=3)")
    assert "3 rows and those of 1 file that nobody has counted of 'orders'" in done.stderr
    assert table_of(done) == ["orders", "3+"]


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


def test_the_report_counts_the_files_that_burler_has_made(tmp_path):
    _, report = reported(tmp_path, f"batch_files({str(put(tmp_path, 'a.jsonl'))!r})")
    (path,) = tmp_path.glob("batches/*")
    assert report["batch"] == {
        "files": 1, "rows": 3, "bytes": path.stat().st_size, "root": f"file://{tmp_path}/batches",
    }  # fmt: skip
    assert report["streams"][0]["counts"]["files"] == 1


FAILING = """
import shutil, burler
tap = burler.tap("tap-exports")

@tap.sync("orders", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
def orders():
    yield {"id": 1}
    shutil.rmtree("state")  # where the latest STATE is to be written before it goes out
"""


def test_a_report_of_a_run_that_fails_has_the_files_that_messages_have_named(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "tap_exports.py").write_text(FAILING)
    asked = ("--batch", "--report", "report.json", "-o", "state/state.json")
    done = burler("run", "tap_exports.py", *asked, cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert done.code != 0 and [message["type"] for message in done.messages] == ["SCHEMA", "BATCH"], done
    assert (report["batch"]["files"], report["status"]) == (1, "failed")
