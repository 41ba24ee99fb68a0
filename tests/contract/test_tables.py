"""A table that c550d9f exported gets what has come into its lake since then, and holds the right rows."""

from __future__ import annotations

import shutil

import pytest
from contract import lakes, tables
from contract.files import CONTRACT, burler, compact, read_json

from burler import spark

OWN = ("_sdc_extracted_at", "_sdc_batched_at", "_sdc_version", "_sdc_sequence", "_sdc_source_file")


@pytest.mark.parametrize("form", tables.FORMATS)
def test_an_increment(form, tmp_path):
    lake = tmp_path / "shop" / "lake"
    shutil.copytree(CONTRACT / "lakes" / "shop", lake.parent)
    before = read_json(CONTRACT / "tables" / f"{form}.json")
    with tables.place(form) as out:
        shutil.copytree(CONTRACT / "tables" / form, out)
        assert {stream: tables.rows(form, out, stream) for stream in tables.STREAMS} == before
        published = {stream: tables.versions(form, out, stream) for stream in tables.STREAMS}

        idle = spark.export(None, str(lake), str(out), format=form)
        assert all(result.skipped and not result.error for result in idle), "the table knows what it holds"
        lakes.go_on("shop", lake)
        done = {result.stream: result for result in spark.export(None, str(lake), str(out), format=form)}
        assert not any(result.error for result in done.values()), done
        assert {name: result.rows_read for name, result in done.items()} == {"orders": 3, "log": 4, "countries": 1}
        for stream in tables.STREAMS:
            assert tables.versions(form, out, stream) > published[stream]
            check_rows(stream, before[stream], tables.rows(form, out, stream), burler("lake", "read", lake).lines())


def check_rows(stream, before, after, messages):
    """The table holds what the lake says, in the columns that it had; rows that did not change are the same."""
    said = [message for message in messages if message["type"] == "RECORD" and message["stream"] == stream]
    if stream == "orders":
        latest = {message["record"]["id"]: message["record"] for message in said}
        assert sorted(row["id"] for row in after) == sorted(latest)
        for row in after:
            record = latest[row["id"]]
            assert row["name"] == record["name"] and row["weight"] == record.get("weight")
            assert row["updated_at"] == record["updated_at"].replace("Z", "+00:00")
            assert (row["total"] and float(row["total"])) == record["total"]
            assert row["customer"] == record.get("customer") and row["tags"] == record.get("tags")
    elif stream == "log":
        whats = [message["record"]["what"] for message in said]
        assert [row["at"] for row in after] == [message["record"]["at"] for message in said]
        assert [row["what"] for row in after] == [text(what) for what in whats]
    else:
        versions = [message["version"] for message in said]
        whole = [message["record"] for message in said if message["version"] == max(versions)]
        assert [{"code": row["code"], "name": row["name"]} for row in after] == whole
        assert {row["_sdc_version"] for row in after} == {max(versions)}
    assert all(list(row) == list(before[0]) for row in after)
    if stream != "countries":  # a whole table takes the place of the one before
        renewed = {compact({**row, "_sdc_batched_at": None}) for row in after if row not in before}
        assert not renewed & {compact({**row, "_sdc_batched_at": None}) for row in before}, (
            "made anew, not gone on with"
        )


def text(what):
    """A column of JSON: text, but null is null."""
    return None if what is None else what if isinstance(what, str) else compact(what)
