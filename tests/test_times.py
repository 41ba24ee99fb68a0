"""Texts of date-times: each place that reads them holds to its rule (docs/values.md), asked through public doors."""

from __future__ import annotations

import datetime as dt
import json

import pytest

import burler
from burler.errors import ConfigError, UsageError
from burler.lake import LakeWriter, open_store, read
from burler.schema import infer_schema
from burler.singer import Schema
from burler.spec import check_messages
from burler.testing import run_tap
from support.cli import burler as command

pytest.importorskip("pyarrow", reason="extra 'batch'")

MOMENT = {"type": "string", "format": "date-time"}
FIVE, HALF = "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.500000Z"
ONE_HOUR = "2024-01-02T02:04:05Z"
# text: what it is by the rule strict, lenient, lake; None: no date-time.
TEXTS: dict[str, tuple[str | None, str | None, str | None]] = {
    "2024-01-02T03:04:05Z": (FIVE, FIVE, FIVE),
    "2024-01-02t03:04:05z": (FIVE, FIVE, FIVE),
    "2024-01-02 03:04:05Z": (FIVE, FIVE, FIVE),
    "2024-01-02T03:04:05-00:00": (FIVE, FIVE, FIVE),
    "2024-01-02T03:04:05+01:00": (ONE_HOUR, ONE_HOUR, ONE_HOUR),
    "2024-01-02T03:04:05.5Z": (HALF, HALF, HALF),
    "2024-01-02T03:04:05.000Z": (FIVE, FIVE, FIVE),
    "2024-01-02T03:04:05.0000000Z": ("2024-01-02T03:04:05.0000000Z", FIVE, FIVE),
    "2024-01-02T03:04:05.5000001Z": ("2024-01-02T03:04:05.5000001Z", HALF, HALF),
    "2024-01-02T03:04:05.500000900+00:00": ("2024-01-02T03:04:05.500000900Z", HALF, HALF),
    "2024-02-29T00:00:00+23:59": ("2024-02-28T00:01:00Z",) * 3,
    "0001-01-01T00:00:00Z": ("0001-01-01T00:00:00Z",) * 3,
    "9999-12-31T23:59:59.999999Z": ("9999-12-31T23:59:59.999999Z",) * 3,
    "2024-01-02T03:04:05+0100": (None, ONE_HOUR, ONE_HOUR),
    "2024-01-02T03:04:05+01": (None, ONE_HOUR, ONE_HOUR),
    "2024-01-02T03:04:05 Z": (None, FIVE, FIVE),
    "2024-01-02T03:04:05 +01:00": (None, ONE_HOUR, ONE_HOUR),
    "2024-01-02T03:04:05,5Z": (None, HALF, HALF),
    "2024-01-02T03:04:05": (None, FIVE, FIVE),
    "2024-01-02T03:04Z": (None, "2024-01-02T03:04:00Z", None),
    "2024-01-02 03:04": (None, "2024-01-02T03:04:00Z", None),
    "2024-01-02": (None, "2024-01-02T00:00:00Z", None),
    "20240102": (None, "2024-01-02T00:00:00Z", None),
    "20240102T030405Z": (None, FIVE, None),
    " 2024-01-02T03:04:05Z\n": (None, FIVE, None),
    **dict.fromkeys(
        (
            "", "soon", "1704164645", "2024-01-02T03Z", "2024-01-02T03:04:05.Z", "2024-01-02T24:00:00Z",
            "2024-01-02T23:59:60Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-04-31T00:00:00Z",
            "0000-01-02T03:04:05Z", "10000-01-02T03:04:05Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
            "2024-01-02T03:04:05+24:00", "2024-01-02T03:04:05+23:60", "2024-01-02T03:04:05+01:00:30",
            "2024-W01-2T03:04:05Z", "2024-002T03:04:05Z", "2024-01-02_03:04:05Z", "2024-0102T03:04:05Z",
            "\u0662024-01-02T03:04:05Z", "2024-01-02T03:04:05.5 UTC", "Tue, 02 Jan 2024 12:00:00 GMT",
        ),
        (None, None, None),
    ),
}  # fmt: skip
EARLY = dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
STRICT = {text: strict for text, (strict, _, _) in TEXTS.items()}
LENIENT = {text: lenient for text, (_, lenient, _) in TEXTS.items()}
LAKE = {text: lake for text, (_, _, lake) in TEXTS.items()}


def six(text):
    """As ``time_extracted`` has it."""
    return text if text is None or "." in text else f"{text[:-1]}.000000Z"


def moment_of(text):
    """Something that moments are ordered by."""
    return six(STRICT[text])[:-1].ljust(29, "0")


def run(rows, config=None, state=None, **options):
    tap = burler.tap("tap-x")
    tap.sync("a", schema={"properties": {"id": {"type": "integer"}, "at": MOMENT}}, **options)(lambda: rows)
    return run_tap(tap, config, state=state)


# ---- strict ----------------------------------------------------------------------------------------------------------


def test_values_of_records():
    rows = [{"id": at, "at": text} for at, text in enumerate(TEXTS)]
    rows += [{"id": -1, "at": dt.datetime(2024, 1, 1)}, {"id": -2, "at": EARLY}]  # noqa: DTZ001
    alone = run(rows, {"max_bad_records": len(rows)}, on_bad_record="skip")
    values = {row["id"]: row["at"] for row in alone.records("a")}
    assert {text: values.get(at) for at, text in enumerate(TEXTS)} == STRICT
    assert min(values) == 0


def test_what_inference_calls_a_date_time():
    found = {text: infer_schema([{"x": text}])["properties"]["x"].get("format") == "date-time" for text in TEXTS}
    assert found == {text: moment is not None for text, moment in STRICT.items()}


def test_start_dates_and_date_times_of_a_config():
    for name in ("start_date", "from"):
        tap = burler.tap("tap-x", config_spec={"properties": {"from": MOMENT}})
        tap.sync("a", schema={"properties": {}})(lambda: [])
        for text, moment in STRICT.items():
            try:
                run_tap(tap, {name: text})
            except ConfigError:
                assert moment is None, (name, text)
            else:
                assert moment is not None, (name, text)


def test_bookmarks():
    for text, moment in STRICT.items():
        out = run(
            [{"id": 1, "at": "9998-01-01T00:00:00Z"}], state={"bookmarks": {"a": {"at": text}}}, replication_key="at"
        )
        assert (not out.result.errors) == (moment is not None), text
    moments = [text for text, moment in STRICT.items() if moment is not None]
    for one in moments:  # by the moment, whatever the spelling
        for other in moments:
            out = run([{"id": 1, "at": other}], state={"bookmarks": {"a": {"at": one}}}, replication_key="at")
            saved = out.states[-1]["bookmarks"]["a"]["at"]
            assert moment_of(saved) == max(moment_of(one), moment_of(other)), (one, other)


# ---- lenient ---------------------------------------------------------------------------------------------------------


def packed(folder, record, **more):
    """A RECORD as a file of columns: its rows, and the BATCH message; None where it is refused."""
    import pyarrow as pa

    said = {"type": "SCHEMA", "stream": "a", "schema": {"properties": {"at": MOMENT}}, "key_properties": []}
    line = json.dumps({"type": "RECORD", "stream": "a", "record": record, **more})
    done = command("batch", "pack", "--format", "arrow", cwd=folder, stdin=f"{json.dumps(said)}\n{line}\n".encode())
    batches = [message for message in done.messages if message["type"] == "BATCH"]
    if done.code:
        return None
    (file,) = batches[0]["manifest"]
    return pa.ipc.open_file(file.removeprefix("file://")).read_all().to_pylist(), batches[0]


def test_columns_of_tables_and_batch_files(tmp_path):
    for text, moment in LENIENT.items():
        found = packed(tmp_path, {"at": text})
        shown = found and f"{found[0][0]['at'].isoformat().removesuffix('+00:00')}Z"
        assert shown == moment, text


def test_time_extracted_of_a_batch(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    files = {"format": {"name": "jsonl"}, "manifest": [(tmp_path / "a.jsonl").as_uri()]}
    said = {"type": "SCHEMA", "stream": "a", "schema": {}, "key_properties": []}
    for text, moment in LENIENT.items():
        message = {"type": "BATCH", "stream": "a", "time_extracted": text, **files}
        stdin = f"{json.dumps(said)}\n{json.dumps(message)}\n".encode()
        done = command("batch", "expand", cwd=tmp_path, stdin=stdin)
        rows = [one for one in done.messages if one["type"] == "RECORD"]
        assert (rows[0]["time_extracted"] if rows else None) == six(moment), (text, done.stderr)


# ---- lake ------------------------------------------------------------------------------------------------------------


def test_time_extracted_of_records(tmp_path):
    for text, moment in LAKE.items():
        found = packed(tmp_path, {}, time_extracted=text)
        assert (found and found[1]["time_extracted"]) == six(moment), text


def test_time_extracted_that_verify_accepts():
    for text, moment in LAKE.items():
        said = {"type": "SCHEMA", "stream": "a", "schema": {"properties": {}}, "key_properties": []}
        record = {"type": "RECORD", "stream": "a", "record": {}, "time_extracted": text}
        lines = [json.dumps(one).encode() + b"\n" for one in (said, record)]
        odd = [one.message for one in check_messages(lines) if one.code == "M210"]
        if moment is None:
            assert "is no RFC 3339" in odd[0] or "leaves the years" in odd[0], text
        else:
            assert bool(odd) == (text == "2024-01-02T03:04:05"), (text, odd)  # without a zone


def test_bounds_of_a_lake(tmp_path):
    store = open_store(str(tmp_path))
    with LakeWriter(store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("a", {"properties": {}}))
    for text, moment in LAKE.items():
        try:
            list(read(store, since=text).pages())
        except UsageError as error:
            refused = "since: " in str(error)
        else:
            refused = False
        assert refused == (moment is None and text.strip() not in ("2024-01-02", FIVE)), text
