"""Old taps take ``--catalog`` and look at nothing but ``--properties``: they end with exit code 0, and nothing came."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from burler.verify import Options, Program, ProgramSubject, verify

TAP = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--discover", action="store_true")
for flag in ("--catalog", "--properties", "--state"):
    parser.add_argument(flag)
args = parser.parse_args()
schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
given = GIVEN
if args.discover:
    metadata = [{"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}}]
    stream = {"stream": "a", "tap_stream_id": "a", "schema": schema, "key_properties": ["id"], "metadata": metadata}
    print(json.dumps({"streams": [stream]}))
elif given:
    for stream in json.load(open(given))["streams"]:
        if stream["schema"]["selected"]:
            print(json.dumps({"type": "SCHEMA", "stream": "a", "schema": schema, "key_properties": ["id"]}))
            print(json.dumps({"type": "RECORD", "stream": "a", "record": {"id": 1}}))
"""


@pytest.mark.parametrize(
    ("given", "found"),
    [("args.properties", {"P627"}), ("args.catalog or args.properties", set()), ("args.nothing", {"M226"})],
    ids=["properties-alone", "both", "neither"],
)
def test_a_tap_that_goes_by_properties_alone_is_verified_by_them(tmp_path: Path, given: str, found: set[str]):
    tap = tmp_path / "tap.py"
    tap.write_text(TAP.replace("GIVEN", given.replace("args.nothing", "None")))
    subject = ProgramSubject(Program.of_command(f"{sys.executable} -S -E {tap}", folder=tmp_path))
    verified = verify(subject, Options(behaviour=False))
    assert {one.code for one in verified.findings} == found
    rows = [one.rows for run in verified.runs for one in run.streams.values()]
    assert rows == ([] if given == "args.nothing" else [1])
