"""Values of rows: neither in the log nor in a report of a run, unless ``log_values`` asks for them; keys are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tapprocess import write_tap

from support.cli import burler as run_burler

VALUE = "ann-qzxj@example.com"

START = """
import burler, burler.files, pathlib
tap = burler.tap("tap-x")
STREAM = dict(key_properties="id", schema=SCHEMA)
VALUE = "ann-qzxj@example.com"
"""

FORMS = {
    "a field that no schema knows": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield {"id": 1, "email": VALUE, "more": {"email": [VALUE]}}
        """,
    "a value that does not fit": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield {"id": 2, "text": None, "n": VALUE}
        STREAM["schema"]["properties"]["n"] = {"type": "integer"}
        """,
    "rows left out": """
        @tap.sync("rows", on_bad_record="skip", **STREAM)
        def rows():
            yield {"id": 2, "n": VALUE}
        STREAM["schema"]["properties"]["n"] = {"type": "integer"}
        """,
    "fields set to null": """
        @tap.sync("rows", on_bad_record="null", **STREAM)
        def rows():
            yield {"id": 2, "n": VALUE}
        STREAM["schema"]["properties"]["n"] = {"type": ["null", "integer"]}
        """,
    "a constraint": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield {"id": 2, "n": VALUE}
        STREAM["schema"]["properties"]["n"] = {"type": "string", "maxLength": 5}
        """,
    "an Arrow table": """
        @tap.sync("rows", **STREAM)
        def rows():
            import pyarrow
            yield pyarrow.table({"id": [2], "n": [VALUE]})
        STREAM["schema"]["properties"]["n"] = {"type": "integer"}
        """,
    "bytes of JSON": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield b'[{"id": 2, "n": "' + VALUE.encode() + b'"}]'
        STREAM["schema"]["properties"]["n"] = {"type": "integer"}
        """,
    "a page that breaks off": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield b'[{"id": 2, "text": "' + VALUE.encode()
        """,
    "text in place of a row": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield VALUE
        """,
    "a pair of texts in place of a row": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield from {VALUE: VALUE}.items()
        """,
    "a stray quote in a CSV file": """
        @tap.sync("rows", **STREAM)
        def rows():
            path = pathlib.Path("rows.csv")
            path.write_text(f'id,text\\n1,"a"{VALUE}"\\n')
            yield from burler.files.read(path)
        """,
    "a parent without a key, of which a child fails": """
        @tap.sync("parents", schema={"properties": {"email": {"type": "string"}}})
        def parents():
            yield {"email": VALUE}
        @tap.sync("rows", parent="parents", **STREAM)
        def rows(parent):
            raise ValueError("no")
        """,
    "what post_transform gave": """
        @tap.sync("rows", **STREAM)
        def rows():
            yield {"id": 1, "text": VALUE}
        @tap.post_transform("rows")
        def changed(record):
            return record["text"]
        """,
    "a partition that is none": """
        @tap.partitions("rows")
        def parts():
            yield VALUE
        @tap.sync("rows", **STREAM)
        def rows(partition):
            yield {"id": 1}
        """,
    "a broken file of CSV": """
        @tap.sync("rows", **STREAM)
        def rows():
            pathlib.Path("a.csv").write_text(f"id,text\\n1,{VALUE}\\n2,{VALUE},3\\n")
            yield from burler.files.read("a.csv")
        """,
    "a broken file of JSON lines": """
        @tap.sync("rows", **STREAM)
        def rows():
            pathlib.Path("a.jsonl").write_text('{"id": 1}\\n{"text": "' + VALUE + '"')
            yield from burler.files.read("a.jsonl")
        """,
    "a substream's row": """
        @tap.sync("parents", **STREAM)
        def parents():
            yield {"id": 1}
        @tap.sync("rows", parent="parents", key_properties="id", schema={"properties": {"id": {"type": "integer"},
            "n": {"type": "integer"}}})
        def rows(parent):
            yield {"id": 2, "n": VALUE}
        """,
}


def texts(folder: Path, form: str, *options: str, level: str) -> str:
    """All that a run tells: its log, its report as JSON and as a page."""
    tap = write_tap(folder, START + FORMS[form].replace("\n        ", "\n"))
    told = ""
    for name in ("report.json", "report.html"):
        ended = run_burler("run", tap, "--report", name, *options, cwd=folder, BURLER_LOG_LEVEL=level)
        assert "stream 'rows'" in ended.stderr, ended.stderr
        told += ended.stderr + (folder / name).read_text()
    return told


@pytest.mark.parametrize("form", FORMS)
def test_no_value_of_a_row_is_told_unless_it_is_asked_for(tmp_path: Path, form: str):
    told = texts(tmp_path, form, level="INFO")
    assert VALUE not in told and "qzxj" not in told
    assert "qzxj" in texts(tmp_path, form, "--log-values", level="INFO")


@pytest.mark.parametrize("form", FORMS)
def test_nor_in_the_tracebacks(tmp_path: Path, form: str):
    assert "qzxj" not in texts(tmp_path, form, level="DEBUG")


def test_keys_are_told(tmp_path: Path):
    told = texts(tmp_path, "a value that does not fit", level="INFO")
    assert "row id=2: field 'n' is a string; the schema wants integer" in told


def test_what_a_reader_of_messages_says_of_a_line_holds_no_row(tmp_path: Path):
    schema = {"type": "SCHEMA", "stream": "rows", "schema": {"properties": {}}, "key_properties": []}
    whole = json.dumps({"type": "RECORD", "stream": "rows", "record": {"text": VALUE}})
    for line, said in [
        (whole[:-5], 'It begins: {"type": "RECORD", "stream": "rows"'),
        (whole[30:], "it is no JSON"),
        (json.dumps({"text": VALUE}), "it is no Singer message"),
        ("starting the sync of rows", "It begins: starting the sync of rows"),
    ]:
        ended = run_burler(
            "lake", "write", "lake", "--tap-id", "x", cwd=tmp_path, stdin=f"{json.dumps(schema)}\n{line}\n".encode()
        )
        assert ended.code == 1 and said in ended.stderr and "line 2: " in ended.stderr, ended.stderr
        assert "qzxj" not in ended.stderr
