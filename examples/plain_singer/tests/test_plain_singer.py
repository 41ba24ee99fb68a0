"""The old tap as its users run it: a process of its own, since singer-python takes over the root logger."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2]
SAMPLE = EXAMPLES / "plain_singer" / "sample"


@pytest.fixture
def box(tmp_path):
    """A folder with the sample's exports, and the tap to run on it."""
    shutil.copytree(SAMPLE, tmp_path / "sample")

    def run(*args, config=None, **files):
        if config is None:
            config = json.loads((SAMPLE / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(config))
        options = ["--config", "config.json", *args]
        for name, value in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
            options += [f"--{name}", f"{name}.json"]
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "plain_singer", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def messages(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def records(out, stream):
    return [m["record"] for m in out if m["type"] == "RECORD" and m["stream"] == stream]


def test_everything(box):
    out = messages(box())
    assert [m["type"] for m in out] == ["SCHEMA", *["RECORD"] * 5, "STATE", "SCHEMA", *["RECORD"] * 3, "STATE"]
    assert records(out, "orders")[1] == {
        "order_id": 1002,
        "updated_at": "2024-05-17T12:00:00.000000Z",
        "customer_id": 2,
        "total": 250.0,
        "note": "by hand, please",
        "ship_to": {"city": "Köln", "zip": "50667"},
    }
    assert records(out, "customers")[2] == {"customer_id": 3, "name": "Cy", "email": None}
    assert out[-1]["value"] == {"bookmarks": {"orders": {"updated_at": "2024-06-03T10:30:00.000000Z"}}}


def test_it_goes_on_from_its_state(box):
    state = messages(box())[-1]["value"]
    again = messages(box(state=state))
    assert [row["order_id"] for row in records(again, "orders")] == [1004]
    assert again[-1]["value"] == state


def test_discovery(box):
    catalog = json.loads(box("--discover").stdout)
    orders = catalog["streams"][0]
    said = {tuple(e["breadcrumb"]): e["metadata"] for e in orders["metadata"]}
    assert said[()] == {
        "inclusion": "available",
        "table-key-properties": ["order_id"],
        "forced-replication-method": "INCREMENTAL",
        "valid-replication-keys": ["updated_at"],
    }
    assert said["properties", "updated_at"] == said["properties", "order_id"] == {"inclusion": "automatic"}
    assert said["properties", "ship_to", "properties", "zip"] == {"inclusion": "available"}
    assert messages(box(catalog=catalog)) == []  # nothing is selected yet


def test_a_catalog_with_text_booleans_prunes_schema_and_rows(box):
    catalog = json.loads(box("--discover").stdout)
    orders = catalog["streams"][0]
    unwanted = ["ship_to", "properties", "zip"], ["note"], ["order_id"]
    orders["metadata"] = [{"breadcrumb": [], "metadata": {"selected": "true"}}]
    orders["metadata"] += [
        {"breadcrumb": ["properties", *path], "metadata": {"selected": "false"}} for path in unwanted
    ]
    out = messages(box(catalog=catalog))
    assert {m["stream"] for m in out if "stream" in m} == {"orders"}
    properties = out[0]["schema"]["properties"]
    assert list(properties) == ["order_id", "updated_at", "customer_id", "total", "ship_to"]
    assert list(properties["ship_to"]["properties"]) == ["city"]
    assert records(out, "orders")[0] == {
        "order_id": 1001,
        "updated_at": "2024-05-02T08:15:00.000000Z",
        "customer_id": 1,
        "total": 19.9,
        "ship_to": {"city": "Bonn"},
    }


def test_legacy_properties(box):
    catalog = json.loads(box("--discover").stdout)
    customers = catalog["streams"][1]
    del customers["metadata"]
    customers["schema"]["selected"] = True
    customers["schema"]["properties"]["email"]["selected"] = False
    out = messages(box(properties={"streams": [customers]}))
    assert records(out, "customers")[0] == {"customer_id": 1, "name": "Ann"}


def test_a_wrong_config_is_one_line_with_all_that_is_wrong(box):
    done = box(config={"folder": 5, "delimiter": ";"})
    assert done.returncode == 2 and done.stdout == ""
    assert "CRITICAL" in done.stderr and "Traceback" not in done.stderr
    assert "'start_date'" in done.stderr and "'folder' must be text" in done.stderr


def test_a_wrong_catalog_is_one_line(box):
    wrong = {"streams": [{"tap_stream_id": "orders", "schema": {}, "metadata": [{"breadcrumb": []}]}]}
    done = box(catalog=wrong)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "streams[0] ('orders'): 'metadata' must be a list" in done.stderr
