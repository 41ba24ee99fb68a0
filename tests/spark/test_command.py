"""``burler export`` as a command: what it prints, what it ends with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from burler import spark as burler_spark
from support.cli import Ended
from support.cli import burler as command

pytestmark = pytest.mark.usefixtures("packages")

SCHEMA = (
    '{"type":"SCHEMA","stream":"s","schema":{"type":"object","properties":{"id":{"type":"integer"}}},'
    '"key_properties":["id"]}'
)
ROW = '{"type":"RECORD","stream":"s","record":{"id":%d},"time_extracted":"2024-01-01T00:00:00Z"}'


def burler(*arguments: str, cwd: Path, stdin: str = "") -> Ended:
    return command(*arguments, cwd=cwd, stdin=stdin.encode())


def fill(cwd: Path, rows: int) -> Path:
    lines = [SCHEMA, *(ROW % n for n in range(rows)), '{"type":"STATE","value":{}}']
    done = burler("lake", "write", "lake", "--tap-id", "t", cwd=cwd, stdin="\n".join(lines) + "\n")
    assert done.code == 0, done.stderr
    return next((cwd / "lake").rglob("*.singer.gz"))


def test_rows_and_seconds_of_each_stream_then_up_to_date(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert done.code == 0
    assert done.stderr == "", "so few rows need no Spark"
    assert re.fullmatch(r"t/s +5 read +5 written +\d+\.\d s +\S*tables/t/s\n", done.text), done.text
    again = burler("export", "lake", "tables", cwd=tmp_path)
    assert again.code == 0 and re.fullmatch(r"t/s +up to date +\d+\.\d s +\S*tables/t/s\n", again.text)


def test_a_damaged_lake_file_is_one_clear_error(tmp_path: Path) -> None:
    file = fill(tmp_path, 2000)
    file.write_bytes(file.read_bytes()[:-20])
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert done.code == 1
    told = done.one_critical()
    assert file.name in told and "Restore it" in told
    assert not list((tmp_path / "tables").rglob("*.parquet"))


def test_an_error_of_spark_is_told_once_and_pyspark_prints_no_json_besides(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    def export(*_arguments: Any, **_options: Any) -> None:
        with pytest.raises(AnalysisException):  # told in the way of DataFrames, the other in that of SQL
            spark.range(1).select(functions.col("nope"))
        spark.sql("select nope")

    monkeypatch.setattr(burler_spark, "export", export)
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert done.code == 1, done.stderr
    assert "QueryContextLogger" not in done.stderr and "{" not in {line[:1] for line in done.stderr.splitlines()}
    assert done.stderr.count("UNRESOLVED_COLUMN") == 1, done.stderr


def test_a_reader_that_goes_ends_it_with_its_own_code_and_whole_tables(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    command = [sys.executable, "-m", "burler", "export", "lake", "tables"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 4, errors
    done = burler("export", "lake", "tables", cwd=tmp_path)
    assert "up to date" in done.text


def test_messages_in_place_of_a_lake_and_rows_in_quarantine(tmp_path: Path) -> None:
    odd = '{"type":"RECORD","stream":"s","record":{"id":"x"}}'
    (tmp_path / "shop.jsonl").write_text("\n".join([SCHEMA, ROW % 1, odd]) + "\n")
    done = burler("export", "shop.jsonl", "tables", cwd=tmp_path)
    assert done.code == 1 and "--max-bad-rows 1" in done.stderr
    done = burler("export", "shop.jsonl", "tables", "--max-bad-rows", "1", cwd=tmp_path)
    assert done.code == 0, done.stderr
    told = done.text.splitlines()
    assert re.fullmatch(r"shop/s +2 read +1 written .*tables/shop/s", told[0])
    assert re.fullmatch(r"  1 row in quarantine: \S*tables/_quarantine/shop/s/\w+\.jsonl", told[1])
