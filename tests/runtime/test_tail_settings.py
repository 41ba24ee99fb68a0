"""Interval and age of one stream in a tail run: catalog before option before setting, and bad values in a catalog."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import burler
from burler.errors import CatalogError
from burler.singer.catalog import catalog_from_wire
from burler.testing import FakeClock, run_tap
from support import internals
from support.internals import run_plan, sessions, tail_settings

INTERVAL, AGE = "new-record-polling-interval-ms", "max-full-table-age-seconds"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}


def _tap(**options: Any) -> burler.Tap:
    tap = burler.tap("tap-x")
    tap.sync("a", key_properties="id", schema=SCHEMA, **options)(lambda: [])
    tap.stream("below", parent="a", key_properties="id", schema=SCHEMA).sync(lambda parent: [])
    tap.stream("beside", emitted_by="a", key_properties="id", schema=SCHEMA)
    return tap


def _planned(tap: burler.Tap, name: str = "a", root: Any = None, field: Any = None) -> run_plan.PlannedStream:
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, **(root or {})}}]
    metadata += [{"breadcrumb": ["properties", "at"], "metadata": field}] if field else []
    streams = [{"tap_stream_id": "a", "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}]}]
    streams = [one for one in streams if one["tap_stream_id"] != name] + [{"tap_stream_id": name, "metadata": metadata}]
    session = sessions.Session(tap, {})
    own = session.catalog()
    plan = run_plan.make_plan(session.specs, own, given=catalog_from_wire({"streams": streams}))
    return next(one for planned in plan for one in planned.streams if one.tap_stream_id == name)


def test_the_settings_hold_where_nobody_says_more():
    planned = _planned(_tap())
    assert tail_settings.interval_seconds(planned, internals.settings.Settings()) == 60.0
    assert tail_settings.full_table_age_seconds(planned, internals.settings.Settings()) is None
    settings = internals.settings.Settings(new_record_polling_interval_ms=250, max_full_table_age_seconds=90.5)
    assert tail_settings.interval_seconds(planned, settings) == 0.25
    assert tail_settings.full_table_age_seconds(planned, settings) == 90.5


def test_the_option_comes_before_the_setting_and_the_catalog_before_both():
    settings = internals.settings.Settings(new_record_polling_interval_ms=250, max_full_table_age_seconds=90.5)
    tap = _tap(new_record_polling_interval_ms=5000, max_full_table_age_seconds=7)
    planned = _planned(tap)
    assert tail_settings.interval_seconds(planned, settings) == 5.0
    assert tail_settings.full_table_age_seconds(planned, settings) == 7.0
    planned = _planned(tap, root={INTERVAL: 1, AGE: 0.5})
    assert tail_settings.interval_seconds(planned, settings) == 0.001
    assert tail_settings.full_table_age_seconds(planned, settings) == 0.5
    planned = _planned(tap, root={INTERVAL: None, AGE: None})  # null says nothing, in a catalog
    assert tail_settings.interval_seconds(planned, settings) == 5.0
    assert tail_settings.full_table_age_seconds(planned, settings) == 7.0


def test_a_number_may_be_text_and_a_key_have_underscores_as_people_write_them():
    for interval, age in ((INTERVAL, AGE), ("new_record_polling_interval_ms", "max_full_table_age_seconds")):
        planned = _planned(_tap(), root={interval: "1500", age: "60"})
        assert tail_settings.interval_seconds(planned, internals.settings.Settings()) == 1.5
        assert tail_settings.full_table_age_seconds(planned, internals.settings.Settings()) == 60.0


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        (INTERVAL, 0, "a whole number above 0, not 0."),
        (INTERVAL, -5, "a whole number above 0, not -5."),
        (INTERVAL, 1.5, "a whole number above 0, not 1.5."),
        (INTERVAL, True, "a whole number above 0, not True."),
        (INTERVAL, "soon", "a whole number above 0, not 'soon'."),
        (INTERVAL, 10**13, "a whole number above 0 and no more than 1000000000000, not 10000000000000."),
        (AGE, 0, "a number above 0, not 0."),
        (AGE, [60], "a number above 0, not [60]."),
        (AGE, "nan", "a number above 0, not 'nan'."),
        (AGE, 1e10, "a number above 0 and no more than 1000000000, not 10000000000.0."),
    ],
)
def test_a_bad_value_is_told_before_the_run_with_stream_value_and_cure(key: str, value: Any, wanted: str):
    planned = _planned(_tap(), root={key: value})
    with pytest.raises(CatalogError) as caught:
        tail_settings.check(planned)
    assert str(caught.value).splitlines() == [
        f"stream 'a': metadata '{key}' must be {wanted}",
        "Mend it in the catalog, at the stream's entry with the breadcrumb [], or leave it out.",
    ]
    ask = tail_settings.interval_seconds if key == INTERVAL else tail_settings.full_table_age_seconds
    with pytest.raises(CatalogError):
        ask(planned, internals.settings.Settings())


def _told(caplog: pytest.LogCaptureFixture, planned: run_plan.PlannedStream) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.INFO):
        tail_settings.check(planned)
    return [one.getMessage() for one in caplog.records]


def test_nothing_is_said_of_keys_that_count(caplog: pytest.LogCaptureFixture):
    assert _told(caplog, _planned(_tap(), root={INTERVAL: 5000, AGE: 60})) == []
    assert _told(caplog, _planned(_tap(new_record_polling_interval_ms=5, max_full_table_age_seconds=5))) == []
    assert _told(caplog, _planned(_tap(replication_key="at"), root={INTERVAL: 5000})) == []


def test_a_key_without_effect_is_told(caplog: pytest.LogCaptureFixture):
    assert _told(caplog, _planned(_tap(), field={AGE: 5})) == [
        f"stream 'a': metadata '{AGE}' of a field has no effect; it belongs to the breadcrumb []"
    ]
    assert _told(caplog, _planned(_tap(replication_key="at"), root={AGE: 60})) == [
        f"stream 'a': metadata '{AGE}' has no effect: its method is INCREMENTAL"
    ]


@pytest.mark.parametrize("name", ["below", "beside"])
def test_a_stream_that_is_read_with_another_waits_for_that_one(caplog: pytest.LogCaptureFixture, name: str):
    assert _told(caplog, _planned(_tap(), name)) == []
    assert _told(caplog, _planned(_tap(), name, root={INTERVAL: 5000})) == [
        f"stream '{name}': metadata '{INTERVAL}' has no effect: it is read with stream 'a'; write it there"
    ]
    with pytest.raises(CatalogError, match="must be a whole number above 0"):
        tail_settings.check(_planned(_tap(), name, root={INTERVAL: 0}))


def test_the_keys_are_not_in_a_catalog_that_is_discovered():
    tap = _tap(new_record_polling_interval_ms=5000, max_full_table_age_seconds=7)
    wire = sessions.Session(tap, {}).catalog().to_wire()
    keys = {key for stream in wire["streams"] for one in stream["metadata"] for key in one["metadata"]}
    assert "table-key-properties" in keys
    assert not keys & {INTERVAL, AGE}


# ---- in a run --------------------------------------------------------------------------------------


def _polled(catalog: Any = None, **config: Any) -> tuple[dict[str, int], Any]:
    """How often three streams are polled in 60 seconds of a clock that a test moves; a, b INCREMENTAL, c FULL_TABLE."""
    tap, polls = burler.tap("tap-x"), {"a": 0, "b": 0, "c": 0}

    def declare(name: str, **options: Any) -> None:
        @tap.sync(name, key_properties="id", schema=SCHEMA, **options)
        def rows() -> Any:
            polls[name] += 1
            return [{"id": polls[name], "at": polls[name]}]

    declare("a", replication_key="at")
    declare("b", replication_key="at", new_record_polling_interval_ms=20_000)
    declare("c")
    config = {"tail": True, "tail_max_seconds": 61, **config}
    return polls, run_tap(tap, config, catalog=catalog, clock=FakeClock())


def _catalog(**metadata: Any) -> dict[str, Any]:
    streams = {name: {"selected": True, **metadata.get(name, {})} for name in ("a", "b", "c")}
    return {
        "streams": [
            {"tap_stream_id": name, "metadata": [{"breadcrumb": [], "metadata": said}]}
            for name, said in streams.items()
        ]
    }


def test_each_stream_is_polled_on_its_own_interval():
    polls, _out = _polled()
    assert polls == {"a": 2, "b": 4, "c": 1}
    polls, _out = _polled(new_record_polling_interval_ms=10_000, max_full_table_age_seconds=30)
    assert polls == {"a": 7, "b": 4, "c": 3}


def test_a_catalog_sets_interval_and_age_of_a_stream():
    told = _catalog(a={INTERVAL: 30_000}, b={INTERVAL: "60000"}, c={AGE: 20})
    polls, _out = _polled(told, new_record_polling_interval_ms=1)
    assert polls == {"a": 3, "b": 2, "c": 4}


def test_a_bad_value_in_a_catalog_ends_a_tail_and_no_other_run():
    told = _catalog(b={INTERVAL: -1})
    with pytest.raises(CatalogError, match="stream 'b': metadata 'new-record-polling-interval-ms' must be a whole"):
        _polled(told)
    polls, _out = _polled(told, tail=False, tail_max_seconds=None)  # where nobody asks for it
    assert polls == {"a": 1, "b": 1, "c": 1}
