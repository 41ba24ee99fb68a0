"""``@tap.post_transform``: a function of each row after it was shaped, just before it is written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hooked import FIELDS, bookmark, ids, tap_of

import burler
from burler.testing import run_tap

# ---- what the hook sees -------------------------------------------------------------------------------


def test_it_sees_the_row_as_it_goes_out():
    seen: list[dict[str, Any]] = []
    row = {
        "id": "7",
        "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "amount": Decimal("12345678901234567890.123"),
        "text": "x",
        "address": {"city": "Ulm", "zip": "89073", "planet": "Earth"},
        "unknown": 1,
    }
    run = run_tap(tap_of(lambda record: seen.append(dict(record)) or record, [row]))
    assert seen == [
        {
            "id": 7,
            "at": "2024-01-02T01:00:00Z",
            "amount": Decimal("12345678901234567890.123"),
            "text": "x",
            "address": {"city": "Ulm", "zip": "89073"},
        }
    ]
    assert isinstance(seen[0]["amount"], Decimal)
    assert not run.result.errors
    assert row["id"] == "7"
    assert row["address"]["planet"] == "Earth"


def test_it_sees_selected_fields_only():
    seen: list[dict[str, Any]] = []
    row = {"id": 1, "text": "secret", "amount": 2, "address": {"city": "Ulm", "zip": "89073"}}
    tap = tap_of(lambda record: seen.append(record) or record, [row])
    run_tap(tap, select="rows,!rows.text,!rows.address.zip")
    assert seen == [{"id": 1, "amount": 2, "address": {"city": "Ulm"}}]


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63, 2**64, -(2**70), 10**300])
def test_integers_of_any_size(number: int):
    seen: list[Any] = []

    def hook(record):
        seen.append(record["id"])
        return record

    run = run_tap(tap_of(hook, ids(number)))
    assert seen == [number]
    assert run.records("rows") == [{"id": number}]


def test_what_it_is_given_is_its_own():
    """A hook that changes rows in place changes neither the function's rows nor those of later runs."""
    row = {"id": 1, "text": "a", "address": {"city": "Ulm"}}

    def hook(record):
        record["text"] += "!"
        record["address"]["city"] = record["address"]["city"].upper()
        return record

    tap = tap_of(hook, [row])
    for _ in range(2):
        assert run_tap(tap).records("rows") == [{"id": 1, "text": "a!", "address": {"city": "ULM"}}]
    assert row == {"id": 1, "text": "a", "address": {"city": "Ulm"}}


def test_open_objects_are_its_own_too():
    inner = {"deep": [1, {"x": 1}]}
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": True}

    def hook(record):
        record["any"]["deep"][1]["x"] = 2
        return record

    run = run_tap(tap_of(hook, [{"id": 1, "any": inner}], schema=schema))
    assert run.records("rows") == [{"id": 1, "any": {"deep": [1, {"x": 2}]}}]
    assert inner == {"deep": [1, {"x": 1}]}


def test_what_it_may_ask_for():
    tap = burler.tap("tap-hook")
    tap.client(lambda config: {"of": config["n"]})
    seen = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=FIELDS)
    def rows(stream):
        yield from ids(5, 6)

    @tap.post_transform("rows")
    def hook(record, stream, state, client, config):
        seen.append((record["id"], stream.name, stream.bookmark, tap.get_bookmark(), client["of"], config["n"]))
        assert tap.key_properties == ("id",)
        assert tap.stream_metadata()["replication-key"] == "id"
        assert state["bookmarks"]["rows"] == {"id": 3}
        return record

    for page in (1, 1000):
        seen.clear()
        run = run_tap(tap, {"n": 9, "page_max_rows": page}, state={"bookmarks": {"rows": {"id": 3}}})
        assert not run.result.errors
        assert seen == [(5, "rows", 3, 3, 9, 9), (6, "rows", 3, 3, 9, 9)]


# ---- what it may do -----------------------------------------------------------------------------------


def test_it_may_change_a_row_or_give_another():
    def hook(record):
        return {"id": record["id"], "text": f"row {record['id']}"}

    assert run_tap(tap_of(hook, ids(1, 2))).records("rows") == [{"id": 1, "text": "row 1"}, {"id": 2, "text": "row 2"}]


def test_what_it_gives_is_shaped_like_any_row():
    def hook(record):
        at = dt.datetime(2024, 1, 1, record["id"], tzinfo=dt.timezone(dt.timedelta(hours=1)))
        return {**record, "at": at, "amount": "1.50", "text": 5}

    assert run_tap(tap_of(hook, ids(1))).records("rows") == [
        {"id": 1, "at": "2024-01-01T00:00:00Z", "amount": 1.5, "text": "5"}
    ]


def test_a_field_that_no_schema_knows_is_dropped_counted_and_warned_of(caplog: pytest.LogCaptureFixture):
    run = run_tap(tap_of(lambda record: {**record, "novel": 1}, ids(1, 2, 3)))
    assert run.records("rows") == ids(1, 2, 3)
    assert [r.getMessage() for r in caplog.records if "novel" in r.getMessage()] == [
        "stream 'rows': fields that its schema does not know were dropped: novel (3 of 3 rows)",
        "stream 'rows': merged into its schema, this keeps them (from samples): "
        '{"properties":{"novel":{"type":["null","integer"]}}}',
    ]


def test_fields_of_the_function_that_no_schema_knows_are_counted_once(caplog: pytest.LogCaptureFixture):
    for rows in ([{"id": 1, "novel": 1}, {"id": 2}], [{"id": "1", "novel": 1}, {"id": 2}]):
        caplog.clear()
        run_tap(tap_of(lambda record: record, rows))
        assert "novel (1 of 2 rows)" in caplog.text


def test_a_field_that_is_not_selected_does_not_come_back_through_it(caplog: pytest.LogCaptureFixture):
    tap = tap_of(lambda record: {**record, "text": "secret"}, ids(1))
    assert run_tap(tap, select="rows,!rows.text").records("rows") == ids(1)
    assert "no schema knows" not in caplog.text
    open_schema = {**FIELDS, "additionalProperties": True}
    tap = tap_of(lambda record: {**record, "text": "secret"}, ids(1), schema=open_schema)
    assert run_tap(tap, select="rows,!rows.text").records("rows") == ids(1)


@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(1)", "every_n(2)"])
def test_rows_that_it_leaves_out_are_passed_by_the_bookmark(page: int, strategy: str):
    tap = tap_of(lambda record: record if record["id"] % 2 else None, ids(1, 2, 3, 4), bookmark_strategy=strategy)
    run = run_tap(tap, {"page_max_rows": page})
    assert run.records("rows") == ids(1, 3)
    assert bookmark(run) == 4
    assert run.result.rows == {"rows": 2}


def test_all_rows_may_be_left_out():
    run = run_tap(tap_of(lambda record: record if record["id"] > 9 else None, ids(1, 2)))
    assert run.types == ["SCHEMA", "STATE"]
    assert bookmark(run) == 2


def test_the_bookmark_is_the_sources_value_not_the_hooks():
    """Going on asks the source for rows from there on."""
    run = run_tap(tap_of(lambda record: {**record, "id": 1000 - record["id"]}, ids(1, 2, 3)))
    assert [row["id"] for row in run.records("rows")] == [999, 998, 997]
    assert bookmark(run) == 3


def test_the_bookmark_is_the_same_with_a_hook_and_without():
    moments = [
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.5+01:00",
        dt.datetime(2024, 1, 1, 0, 0, 1, 5, tzinfo=dt.UTC),
    ]
    for moment in moments:
        states = []
        for hook in (False, True):
            tap = burler.tap("tap-hook")
            rows = [{"id": 1, "at": moment}]
            tap.sync("rows", key_properties="id", replication_key="at", schema=FIELDS)(lambda rows=rows: rows)
            if hook:
                tap.post_transform("rows")(lambda record: record)
            states.append(run_tap(tap).states[-1])
        assert states[0] == states[1]


def test_a_bookmark_function_gets_the_row_of_the_function_with_a_hook_too():
    tap = burler.tap("tap-hook")
    tap.sync("rows", key_properties="id", bookmark_strategy="every_n(2)", schema=FIELDS)(
        lambda: [{"id": i, "mark": i * 10} for i in (1, 2, 3)]
    )
    tap.bookmark("rows")(lambda record: record["mark"])
    tap.post_transform("rows")(lambda record: None if record["id"] == 3 else record)
    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("rows") == ids(1, 2)
    assert run.states[-1]["bookmarks"]["rows"] == {"bookmark": 30}
