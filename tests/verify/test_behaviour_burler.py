"""A burler tap keeps all rules of behaviour: nothing is found, and little is left open."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.table import RULES
from burler.verify.behaviour import check_behaviour, check_discovery
from burler.verify.behaviour_seen import Seen
from burler.verify.program import Program, flags_of

TAP = """
import burler

tap = burler.tap("tap-shop", config_spec=["token"])
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "pad": {"type": "string"}}}


def rows(first):
    return [{"id": i, "pad": "x" * 150 + str(i)} for i in range(first, 401)]


@tap.sync("people", key_properties="id", replication_key="id", bookmark_strategy="every_n(50)")
def people(stream):
    yield from rows(stream.bookmark or 1)


@tap.sync("orders", key_properties="id")
def orders():
    yield from rows(1)


tap.schema("people", SCHEMA)
tap.schema("orders", SCHEMA)
"""


def test_a_burler_tap_is_clean(tmp_path: Path):
    app, config = tmp_path / "tap_shop.py", tmp_path / "config.json"
    app.write_text(TAP)
    config.write_text(json.dumps({"token": "n0b0dy-reads-this"}))
    words = (sys.executable, "-m", "burler")
    given = (str(app), "--config", str(config))
    program = Program(
        (*words, "run", *given),
        discover_words=(*words, "discover", *given),
        secrets=("n0b0dy-reads-this",),
        folder=tmp_path,
    )
    findings = Findings(RULES)
    flags = flags_of(program)
    found = check_discovery(program, findings, flags=flags)
    catalog = found.catalog
    for item in catalog["streams"]:
        item["metadata"][0]["metadata"]["selected"] = True
    seen = Seen()
    assert program.run(catalog=catalog, take=seen.take).well
    unchecked = check_behaviour(
        program,
        catalog,
        findings,
        limits=Limits(),
        state=seen.state,
        streams=set(seen.rows),
        first_rows=1.0,
        flags=flags,
    )
    assert list(findings) == []
    assert {**found.unchecked, **unchecked} == {}
