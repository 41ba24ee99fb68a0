"""The same for what a run may be: a tail, several workers, stopped in the middle, with some streams batched alone."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from batch_plain import exact, path_of, rows_in, same
from batch_same import FORMATS, Pair, both, check, check_messages, never_ahead, states
from batch_taps import ITEM, family, item, parted, polled, several, strategy

import burler
from burler.singer import merge_states
from burler.testing import FakeClock, run_tap
from support.cli import burler as command

formats = pytest.mark.parametrize("encoding", FORMATS, ids="-".join)


def batches(pair: Any, stream: str) -> list[dict[str, Any]]:
    return [m for m in pair.batches if m["type"] == "BATCH" and m["stream"] == stream]


@formats
def test_a_tail_gives_the_same_rows_and_states_at_the_same_times(tmp_path, encoding):
    """A STATE that is due closes the files before it, however small they are."""
    config = {"tail": True, "tail_max_rounds": 5}
    pair = check(both(polled, encoding, tmp_path, config, batch_size=1000))
    assert [json.dumps(state["bookmarks"]["events"]) for state in states(pair.batches)] == [
        json.dumps(state["bookmarks"]["events"]) for state in states(pair.records)
    ]
    assert [m["size"] for m in batches(pair, "events")] == [3, 2, 2, 2, 2]
    assert len({m["version"] for m in batches(pair, "rates")}) == 5
    for stream in ("events", "rates"):
        times = [m["time_extracted"] for m in pair.records if m["type"] == "RECORD" and m["stream"] == stream]
        for message in batches(pair, stream):
            assert message["time_extracted"] == min(times[: message["size"]])
            del times[: message["size"]]
        assert not times


@formats
def test_a_message_says_when_its_oldest_row_was_read(tmp_path, encoding):
    clocks: list[FakeClock] = []

    def clock() -> FakeClock:
        clocks.append(FakeClock())
        return clocks[-1]

    def slow() -> burler.Tap:
        tap = burler.tap("tap-slow")

        often = {"replication_key": "id", "order": "asc", "bookmark_strategy": "every_seconds(1800)"}

        @tap.sync("tickets", key_properties="id", **often, schema=ITEM)
        def tickets() -> Any:
            for low in range(0, 8, 2):
                yield [item(low), item(low + 1)]
                clocks[-1].advance(3600)

        return tap

    pair = check(both(slow, encoding, tmp_path, {"page_max_rows": 2}, clock=clock, batch_size=4))
    times = [m["time_extracted"] for m in pair.records if m["type"] == "RECORD"]
    assert len(set(times)) == len(states(pair.records)) == 4
    assert [m["time_extracted"] for m in batches(pair, "tickets")] == [min(times[:4]), min(times[4:])]


@formats
def test_a_full_table_that_begins_anew_has_a_file_for_each_version(tmp_path, encoding):
    def anew() -> burler.Tap:
        tap = burler.tap("tap-anew")
        tries: list[int] = []

        @tap.sync("things", key_properties="id", retry_sync_on=ConnectionError, schema=ITEM)
        def things() -> Any:
            tries.append(1)
            yield from map(item, range(4))
            if len(tries) < 3:
                raise ConnectionError("gone")

        return tap

    state = {"bookmarks": {"things": {"version": 5}}}
    pair = check(both(anew, encoding, tmp_path, batch_size=1000, options=lambda: {"state": dict(state)}))
    versions = [m["version"] for m in batches(pair, "things")]
    assert len(versions) == len(set(versions)) == 3 and versions == sorted(versions)
    assert [m["version"] for m in pair.batches if m["type"] == "ACTIVATE_VERSION"] == versions[-1:]


@formats
def test_several_workers_give_the_same_rows_and_the_same_last_state(tmp_path, encoding):
    pair = check(both(several, encoding, tmp_path, {"workers": 3}), order=False)
    for stream in ("one", "two", "three", "four"):
        ids = [row["id"] for m in batches(pair, stream) for row in rows_in(path_of(m["manifest"][0]), pair.form, ITEM)]
        assert ids == list(range(10)), "in order within a stream"


@formats
def test_partitions_beside_each_other_give_the_same_rows_and_the_same_last_state(tmp_path, encoding):
    pair = check(both(parted, encoding, tmp_path, {"partition_workers": 3}), order=False, shuffled=True)
    assert sum(m["size"] for m in batches(pair, "tickets")) == 20


@formats
def test_small_states_cover_what_full_ones_cover(tmp_path, encoding):
    """``state_scope: touched``: each STATE says what has changed; merged in order they are the whole."""
    pair = both(family, encoding, tmp_path, {"state_scope": "touched", "parent_buffer_rows": 2})
    whole = both(family, encoding, tmp_path / "full")
    for messages in (pair.records, pair.batches):
        merged = merge_states(states(messages))
        last = states(whole.records)[-1]["bookmarks"]
        assert {name: entry for name, entry in merged["bookmarks"].items() if name != "empty"} == {
            name: entry for name, entry in last.items() if name != "empty"
        }
    assert len(states(pair.batches)) > 1


@formats
def test_a_run_that_is_stopped_in_the_middle_keeps_what_it_had(tmp_path, encoding):
    def stopped() -> burler.Tap:
        tap = burler.tap("tap-stopped")

        @tap.sync("tickets", key_properties="id", replication_key="id", order="asc", schema=ITEM)
        def tickets() -> Any:
            yield from map(item, range(8))
            signal.raise_signal(signal.SIGTERM)
            yield item(8)

        return tap

    pair = check(both(stopped, encoding, tmp_path))
    assert pair.batch_result.stopped_by == signal.SIGTERM
    assert states(pair.batches)[-1]["bookmarks"] == {"tickets": {"id": 7}}
    assert [m["size"] for m in batches(pair, "tickets")] == [3, 3, 2]


def catalog_of(tap: burler.Tap, **enabled: bool) -> dict[str, Any]:
    """The tap's catalog, all selected, with the users' word on BATCH."""
    streams = []
    for message in run_tap(tap, schemas_only=True).messages:
        name, said = message["stream"], {"selected": True}
        if name in enabled:
            said["batch-enabled"] = enabled[name]
        metadata = [{"breadcrumb": [], "metadata": said}]
        streams.append({"tap_stream_id": name, "stream": name, "schema": message["schema"], "metadata": metadata})
    return {"streams": streams}


@pytest.mark.parametrize("on", [True, False], ids=["batch_config", "none"])
def test_one_stream_alone_may_be_batched_or_left_out(tmp_path, monkeypatch, on):
    """By ``batch-enabled`` in its metadata: with it, rows of the others stay what they are, and STATE covers both."""
    monkeypatch.chdir(tmp_path)
    config = {"batch_config": {"storage": {"root": "here"}, "batch_size": 4}} if on else {}
    alone = {"two": False} if on else {"two": True}
    out = run_tap(several(), config, catalog=catalog_of(several(), **alone))
    assert not out.result.errors
    kinds = {m["stream"]: m["type"] for m in out.messages if m["type"] in ("RECORD", "BATCH")}
    other = "BATCH" if on else "RECORD"
    assert kinds == {"one": other, "two": "RECORD" if on else "BATCH", "three": other, "four": other}
    plain = run_tap(several())
    assert out.states[-1] == plain.states[-1]
    never_ahead(Pair(plain.messages, out.messages, plain.result, out.result, "jsonl", tmp_path, "both", [], []))
    (folder,) = tmp_path.iterdir()
    assert folder.name == ("here" if on else "batches")
    for message in out.messages:
        if message["type"] == "BATCH" and not on:
            assert same(rows_in(path_of(message["manifest"][0]), "jsonl", ITEM), plain.records(message["stream"]))


@formats
def test_a_stream_with_another_name_on_its_messages(tmp_path, encoding):
    """``stream_alias`` in the catalog: files and messages have that name, the state has the stream's own."""

    def options() -> dict[str, Any]:
        catalog = catalog_of(several())
        catalog["streams"][0]["stream_alias"] = "Erste/Spalte ä"
        return {"catalog": catalog}

    pair = check(both(several, encoding, tmp_path, options=options))
    name = batches(pair, "Erste/Spalte ä")[0]["manifest"][0].rpartition("/")[2]
    assert name.startswith("tap-many--Erste_Spalte__-")
    assert states(pair.batches)[-1]["bookmarks"]["one"] == {"id": 9}


def test_a_look_at_the_rows_is_a_look_at_the_rows(tmp_path):
    """``--limit`` and ``--test``: RECORDs, and no file."""
    out = run_tap(strategy("on_page"), {"batch_config": {"storage": {"root": str(tmp_path / "b")}}}, limit=5)
    assert out.types == ["SCHEMA", *["RECORD"] * 5]
    assert not list(tmp_path.rglob("*.jsonl"))


TAP = """
import burler
from batch_taps import family

tap = family()
"""


def test_the_command_reports_alike(tmp_path):
    """``--batch`` alone: JSON lines, not packed, in the folder ``batches``; logs and report as without it."""
    (tmp_path / "tap_family.py").write_text(TAP, encoding="utf-8")
    given, reports, said = [], [], []
    for name in ("records", "batch"):
        asked = ["--batch"] if name == "batch" else []
        done = command("run", "tap_family.py", "--report", f"{name}.json", *asked, cwd=tmp_path)
        assert done.code == 1, done.stderr
        given.append([exact(line) for line in done.stdout.splitlines()])
        reports.append(json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")))
        said.append([line for line in done.stderr.splitlines() if line.startswith(("CRITICAL", "WARNING"))])
    assert said[0] == said[1] and len(said[0]) >= 3
    for report in reports:
        for part in (report["totals"], *report["streams"]):
            for key in ("seconds", "started", "ended", "series", "rows_per_second"):
                part.pop(key, None)
    assert reports[0]["streams"] == reports[1]["streams"] and reports[0]["totals"] == reports[1]["totals"]
    pair = Pair(given[0], given[1], None, None, "jsonl", tmp_path / "batches", "both", [], [])
    check_messages(pair)
    assert states(pair.batches)[-1]["bookmarks"].keys() == states(pair.records)[-1]["bookmarks"].keys()
    for stream in ("parents", "children", "grandchildren", "beside", "broken"):
        files = [path_of(m["manifest"][0]) for m in batches(pair, stream)]
        found = [row for path in files for row in rows_in(path, "jsonl", ITEM)]
        assert found == [m["record"] for m in pair.records if m["type"] == "RECORD" and m["stream"] == stream]


@formats
def test_a_schema_that_changes_between_polls_begins_a_new_file(tmp_path, encoding):
    """In a tail that looks at its schemas again."""

    def changing() -> burler.Tap:
        tap = burler.tap("tap-changing")
        rounds: list[int] = []

        @tap.schema("events")
        def schema() -> dict[str, Any]:
            more = {"colour": {"type": ["null", "string"]}} if rounds else {}
            return {"type": "object", "properties": {**ITEM["properties"], **more}}

        @tap.sync("events", key_properties="id", replication_key="id", order="asc")
        def events() -> Any:
            rounds.append(1)
            return [item(len(rounds), colour="red")]

        return tap

    config = {"tail": True, "tail_max_rounds": 3, "tail_rediscover_seconds": 1}
    pair = check(both(changing, encoding, tmp_path, config, batch_size=1000))
    kinds = [m["type"] for m in pair.batches if m["type"] in ("SCHEMA", "BATCH")]
    assert kinds.count("SCHEMA") == 2 and kinds[0] == "SCHEMA"
    last = batches(pair, "events")[-1]
    (schema,) = [m["schema"] for m in pair.batches if m["type"] == "SCHEMA"][1:]
    assert rows_in(path_of(last["manifest"][0]), pair.form, schema)[0]["colour"] == "red"
