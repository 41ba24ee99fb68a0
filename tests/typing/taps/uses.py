"""What is around a tap: sources, tests, lakes, tables, rules. What is known has a type."""

from collections.abc import Iterable
from typing import Any, assert_type

import burler
from burler.lake import LakeReading
from burler.singer import Catalog
from burler.testing import TapRun, run_tap

tap = burler.tap("tap-x")
run = run_tap(tap, {"a": 1}, select="contacts", state={})
assert_type(run, TapRun)
assert_type(run.records("contacts"), list[dict[str, Any]])
assert_type(run.states, list[dict[str, Any]])
assert_type(run.result.exit_code, int)
assert_type(run.result.rows, dict[str, int])
assert_type(run.result.errors, dict[str, BaseException])

client = burler.http.Client("https://api.example.com", token="x", retries=3, requests_per_minute=60.0)
assert_type(client, burler.http.Client)
reply = client.get("/contacts")
assert_type(reply.status_code, int)

reading = burler.lake.read("lake", stream="contacts")
assert_type(reading, LakeReading)

catalog = burler.singer.catalog_from_wire({"streams": []})
assert_type(catalog, Catalog)
assert_type(catalog.to_wire(), dict[str, Any])

config = burler.config.check_config(["a"], {"a": 1}, tap_name="tap-x")
rows: Iterable[dict[str, Any]] = []

found = burler.spec.check_messages([b'{"type":"STATE","value":{}}'])
for finding in found:
    assert_type(finding.code, str)

database = burler.sql.Database("sqlite:///x.db")
schema = burler.inferred("samples/contacts.json")
files = burler.batch_files(["https://example.com/a.parquet"])
