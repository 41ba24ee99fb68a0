"""Interval and age of one stream in a tail run: catalog before option before setting, and bad values in a catalog."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import burler
from burler.errors import CatalogError
from burler.testing import FakeClock, discover, run_tap

INTERVAL, AGE = "new-record-polling-interval-ms", "max-full-table-age-seconds"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}


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


def test_in_a_catalog_null_says_nothing_and_keys_may_be_written_as_settings_are():
    written = "new_record_polling_interval_ms", "max_full_table_age_seconds"
    told = _catalog(a={written[0]: "15000"}, b={INTERVAL: None}, c={written[1]: "30"})
    polls, _out = _polled(told)
    assert polls == {"a": 5, "b": 4, "c": 3}


def test_a_bad_value_in_a_catalog_ends_a_tail_and_no_other_run():
    told = _catalog(b={INTERVAL: -1})
    with pytest.raises(CatalogError, match="stream 'b': metadata 'new-record-polling-interval-ms' must be a whole"):
        _polled(told)
    polls, _out = _polled(told, tail=False, tail_max_seconds=None)  # where nobody asks for it
    assert polls == {"a": 1, "b": 1, "c": 1}


def test_a_bad_value_is_told_before_the_run_with_stream_value_and_cure():
    for key, value, wanted in (
        (INTERVAL, 0, "a whole number above 0, not 0."),
        (INTERVAL, 1.5, "a whole number above 0, not 1.5."),
        (INTERVAL, True, "a whole number above 0, not True."),
        (INTERVAL, "soon", "a whole number above 0, not 'soon'."),
        (INTERVAL, 10**13, "a whole number above 0 and no more than 1000000000000, not 10000000000000."),
        (AGE, 0, "a number above 0, not 0."),
        (AGE, [60], "a number above 0, not [60]."),
        (AGE, "nan", "a number above 0, not 'nan'."),
        (AGE, 1e10, "a number above 0 and no more than 1000000000, not 10000000000.0."),
    ):
        with pytest.raises(CatalogError) as caught:
            _polled(_catalog(a={key: value}))
        assert str(caught.value).splitlines() == [
            f"stream 'a': metadata '{key}' must be {wanted}",
            "Mend it in the catalog, at the stream's entry with the breadcrumb [], or leave it out.",
        ]


# ---- keys without effect ---------------------------------------------------------------------------


def _told(caplog: pytest.LogCaptureFixture, root: Any = None, field: Any = None, name: str = "a", **options: Any):
    """What a tail warns of, whose catalog says this of a stream or of one of its fields."""
    tap = burler.tap("tap-x")
    tap.sync("a", key_properties="id", schema=SCHEMA, **options)(lambda: [])
    tap.stream("below", parent="a", key_properties="id", schema=SCHEMA).sync(lambda parent: [])
    tap.stream("beside", emitted_by="a", key_properties="id", schema=SCHEMA)
    said = {one: {"selected": True} for one in ("a", "below", "beside")}
    said[name] |= root or {}
    streams = [
        {"tap_stream_id": one, "metadata": [{"breadcrumb": [], "metadata": metadata}]} for one, metadata in said.items()
    ]
    if field:
        streams[0]["metadata"].append({"breadcrumb": ["properties", "at"], "metadata": field})
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        run_tap(tap, {"tail": True, "tail_max_rounds": 1}, catalog={"streams": streams}, clock=FakeClock())
    return [one.getMessage() for one in caplog.records if "metadata '" in one.getMessage()]


def test_a_key_without_effect_is_told_and_no_other(caplog: pytest.LogCaptureFixture):
    assert _told(caplog, {INTERVAL: 5000, AGE: 60}) == []
    assert _told(caplog, new_record_polling_interval_ms=5, max_full_table_age_seconds=5) == []
    assert _told(caplog, {INTERVAL: 5000}, replication_key="at") == []
    assert _told(caplog, field={AGE: 5}) == [
        f"stream 'a': metadata '{AGE}' of a field has no effect; it belongs to the breadcrumb []"
    ]
    assert _told(caplog, {AGE: 60}, replication_key="at") == [
        f"stream 'a': metadata '{AGE}' has no effect: its method is INCREMENTAL"
    ]
    for name in ("below", "beside"):
        assert _told(caplog, {INTERVAL: 5000}, name=name) == [
            f"stream '{name}': metadata '{INTERVAL}' has no effect: it is read with stream 'a'; write it there"
        ]
        with pytest.raises(CatalogError, match="must be a whole number above 0"):
            _told(caplog, {INTERVAL: 0}, name=name)


def test_the_keys_are_not_in_a_catalog_that_is_discovered():
    tap = burler.tap("tap-x")
    options: Any = {"new_record_polling_interval_ms": 5000, "max_full_table_age_seconds": 7}
    tap.sync("a", key_properties="id", schema=SCHEMA, **options)(lambda: [])
    wire = discover(tap, {}).to_wire()
    keys = {key for stream in wire["streams"] for one in stream["metadata"] for key in one["metadata"]}
    assert "table-key-properties" in keys
    assert not keys & {INTERVAL, AGE}
