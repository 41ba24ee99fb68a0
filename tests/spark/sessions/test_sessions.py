"""A session that is there: used as it is, and left as it was."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from burler.errors import LakeError, UsageError
from burler.spark import Capabilities, capabilities, export
from burler.spark import session as get_session
from support.cli import burler
from support.internals import export_options

NEEDED = [
    "spark.sql.session.timeZone",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.json.enablePartialResults",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism",
]
"""What an export sets while its job runs (docs/spark.md)."""
ODD = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.files.ignoreCorruptFiles": "true",
}


@pytest.fixture
def odd(spark, monkeypatch):
    """The session as somebody else has set it up. Spark is to do whatever there is."""
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    before = told(spark)
    for key, value in ODD.items():
        spark.conf.set(key, value)
    spark.conf.unset("spark.sql.legacy.timeParserPolicy")
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)


def told(spark):
    return {key: spark.conf.get(key, None) for key in NEEDED}


def test_somebodys_session_is_used_as_it_is_and_has_its_confs_back(odd, lake, tmp_path):
    """After an export, after several at once, and after one that failed."""
    import deltalake

    before = told(odd)
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    results, threads = [], []
    for number in range(2):
        given = (odd, str(lake.root), str(tmp_path / f"out{number}"))
        threads.append(threading.Thread(target=lambda given=given: results.extend(export(*given))))
        threads[-1].start()
    for thread in threads:
        thread.join()

    assert [result.rows_written for result in results] == [2, 2]
    assert told(odd) == before and before.items() >= ODD.items()
    row = deltalake.DeltaTable(str(tmp_path / "out0" / "tap-x" / "users")).to_pyarrow_table().to_pylist()[0]
    assert row["_sdc_extracted_at"].isoformat() == "2024-01-01T00:01:00+00:00"

    lake.commit("users", [{"id": 3}]).unlink()
    with pytest.raises(LakeError, match="missing"):
        export(odd, str(lake.root), str(tmp_path / "out0"))
    assert told(odd) == before
    assert odd.range(3).count() == 3, "it is not stopped"


class Shut:
    """A session whose service lets no conf be set, as serverless ones do."""

    def __init__(self, spark):
        self.spark, self.conf = spark, self

    def __getattr__(self, name):
        return getattr(self.spark, name)

    def get(self, *key):
        return self.spark.conf.get(*key)

    def set(self, key, value):
        raise ValueError("[CONFIG_NOT_AVAILABLE] no")

    unset = set


def test_a_session_that_lets_nothing_be_set_serves_where_it_is_right_already(spark, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    lake.commit("users", [{"id": 1, "name": "a"}])

    (result,) = export(Shut(spark), str(lake.root), str(tmp_path / "out"))
    assert result.rows_written == 1

    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with pytest.raises(UsageError, match=r"timeZone=Asia/Tokyo.*CONFIG_NOT_AVAILABLE.*UTC"):
            export(Shut(spark), str(lake.root), str(tmp_path / "again"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_another_kind_of_session_is_refused_while_there_is_one(spark):
    for remote in ("sail", "sc://127.0.0.1:1"):
        with pytest.raises(UsageError, match="classic Spark session already"):
            get_session(remote=remote)
    assert get_session("other", master="local[1]") is spark or get_session().sparkContext is spark.sparkContext


def test_what_a_session_can_do(spark):
    can = capabilities(spark)

    assert (can.kind, can.is_local, can.has_observe, can.has_metadata, can.runs_python) == ("classic", *[True] * 4)
    assert ".".join(map(str, can.version)) == spark.version
    for version, features in (
        ((4, 0, 1), (False, False, False)),
        ((4, 1, 0), (True, True, False)),
        ((4, 2, 3), (True, True, True)),
    ):
        can = Capabilities("connect", version, True, True, True, True, True)
        assert (can.has_filter_pushdown, can.has_pipelines, can.has_admission_control) == features


def test_the_first_lines_of_the_page_run(spark):
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    scope = {}

    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], scope)

    assert scope["session"].range(2).count() == 2


def test_the_jvm_of_these_tests_maps_the_archive_that_ci_has_trained(spark):
    """Where there is none, the tests of the night make one."""
    given = {name: os.environ[name] for name in ("BURLER_SPARK_ARCHIVE", "PATH", "HOME")}
    status = burler("spark", "archive", **given).text.split()
    if status[0] == "ready":
        maps = Path(f"/proc/{spark.sparkContext._jvm.ProcessHandle.current().pid()}/maps")
        assert status[1] in maps.read_text()
