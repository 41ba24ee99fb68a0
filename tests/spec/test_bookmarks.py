"""Bookmarks in STATEs of taps of all makers, held against the rows: what is lost is told, what is well is not."""

import json

import pytest
from said import FIELDS, NOW, codes, day, finding, found, lines, row, schema, state

from burler.spec import Limits, check_messages


def whole(*rows, last=None):
    """A run of rows with a STATE behind them."""
    return (schema(), *rows, state(a=last or max(one["record"]["at"] for one in rows if one["record"].get("at"))))


# --- what is well ---


def test_a_state_after_each_page():
    assert codes(schema(), row(1, day(1)), state(a=day(1)), row(2, day(2)), state(a=day(2))) == []


def test_ties_may_go_on_behind_their_bookmark():
    assert codes(schema(), row(1, day(1)), state(a=day(1)), row(2, day(1)), state(a=day(1))) == []


def test_rows_at_the_bookmark_that_was_given_come_again():
    given = state(a=day(5))["value"]
    assert codes(*whole(row(1, day(5)), row(2, day(6))), state=given) == []


def test_a_window_to_look_back_brings_rows_below_the_given_state():
    given = state(a=day(5))["value"]
    messages = (schema(), state(a=day(5)), row(1, day(3)), state(a=day(5)), row(2, day(4)), row(3, day(6)))
    assert codes(*messages, state(a=day(6)), state=given) == []


def test_an_unsorted_stream_with_its_bookmark_at_the_end():
    messages = (schema(), state(a=day(1)), row(1, day(3)), row(2, day(2)), row(3, day(4)), state(a=day(4)))
    assert codes(*messages) == []


def test_windows_are_unsorted_inside():
    one, other = (row(1, day(3)), row(2, day(1))), (row(3, day(5)), row(4, day(4)))
    assert codes(schema(), *one, state(a=day(3)), *other, state(a=day(5))) == []


def test_full_table_with_states_between():
    versions = {"bookmarks": {"a": {"version": 1}}}
    messages = (schema(key=None), row(2), state(versions), row(1), state(versions))
    assert codes(*messages) == []


def test_a_catalog_says_that_a_stream_is_read_whole():
    """Its SCHEMA names what the bookmark could be."""
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, "replication-method": "FULL_TABLE"}}]
    entry = {"tap_stream_id": "a", "stream": "a", "schema": schema()["schema"], "metadata": metadata}
    assert codes(schema(), row(1, day(2)), row(2, day(1)), state({}), catalog={"streams": [entry]}) == []


def test_each_partition_has_a_bookmark_of_its_own():
    for partitions in (
        {'{"shop":1}': {"at": day(9)}, '{"shop":2}': {"at": day(1)}},
        [{"context": {"shop": 1}, "replication_key": "at", "replication_key_value": day(9)}],
    ):
        value = {"bookmarks": {"a": {"partitions": partitions}}}
        assert codes(schema(), row(1, day(9)), state(value), row(2, day(1)), state(value)) == []


@pytest.mark.parametrize(
    "value",
    [
        {"bookmarks": {"a": {"at": day(2)}}},
        {"bookmarks": {"a": {"at": day(2), "version": 1700000000000}}},
        {"bookmarks": {"a": {"last_replication_method": "INCREMENTAL", "replication_key": "at", "at": day(2)}}},
        {"bookmarks": {"a": {"replication_key": "at", "replication_key_value": day(2)}}},
        {"bookmarks": {"a": {"since": day(2)}}},
        {"bookmarks": {"a": "2024-01-02"}},
        {"bookmarks": {"a": 1704153600}},
        {"bookmarks": {"a": {"at": 1704153600000}}},
        {"a": day(2)},
        {"a": {"at": day(2)}},
        {"a.at": day(2)},
        {"currently_syncing": None, "bookmarks": {"a": {"at": "2024-01-02T01:00:00+01:00"}}},
        {"bookmarks": {"org/a": {"a": {"since": day(2)}}}},
        {"bookmarks": {"org/repository": {"since": day(2)}}},
        {"last_run": day(2)},
    ],
    ids=range(15),
)
def test_states_of_all_known_kinds(value):
    assert codes(*whole(row(1, day(1)), row(2, day(2)))[:-1], state(value)) == []


def test_a_state_of_the_sdk_in_the_middle_of_a_run():
    markers = {"Note": "...", "replication_key": "at", "replication_key_value": day(3)}
    entry = {"replication_key": "at", "starting_replication_value": day(1), "replication_key_signpost": day(9)}
    between = state({"bookmarks": {"a": {**entry, "progress_markers": markers}}})
    last = state({"bookmarks": {"a": {"replication_key": "at", "replication_key_value": day(3)}}})
    assert codes(schema(), row(1, day(3)), between, row(2, day(2)), between, last) == []


def test_a_stream_is_found_by_its_tap_stream_id():
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, "replication-method": "INCREMENTAL"}}]
    entry = {"tap_stream_id": "db-a", "stream": "a", "schema": schema()["schema"], "metadata": metadata}
    given = {"catalog": {"streams": [entry]}}
    own, other = {"bookmarks": {"db-a": {"at": day(2)}}}, {"bookmarks": {"db-b": {"at": day(2)}}}
    assert codes(schema(), row(1, day(2)), state(own), **given) == []
    assert codes(schema(), row(1, day(3)), state(own), **given) == ["B323"]
    assert codes(schema(), row(1, day(2)), state(other)) == []  # without a catalog nobody knows whose that is


def test_numbers_as_text_rise_like_numbers():
    plain = schema(key="number", fields={"id": {"type": "integer"}, "number": {"type": "string"}})
    rows = [row(at, number=str(at)) for at in (9, 10, 11)]
    assert codes(plain, *rows, state({"bookmarks": {"a": {"number": "11"}}})) == []
    assert codes(plain, *rows, state({"bookmarks": {"a": {"number": 11}}})) == []
    assert codes(plain, *rows, state({"bookmarks": {"a": {"number": "9"}}})) == ["B323"]


def test_texts_of_which_some_look_like_numbers_have_no_order():
    plain = schema(key="code", fields={"id": {"type": "integer"}, "code": {"type": "string"}})
    rows = [row(at, code=code) for at, code in enumerate(["12", "1f", "9"])]
    assert codes(plain, *rows, state({"bookmarks": {"a": {"code": "9"}}})) == []


@pytest.mark.parametrize(
    "cut", ["2024-01-02", "2024-01-02T03:04:05Z", "2024-01-02T03:04:00Z", "2024-01-02T03:04:05.123Z"]
)
def test_a_bookmark_in_whole_seconds_or_days(cut):
    assert codes(*whole(row(1, "2024-01-02T03:04:05.123456Z"), last=cut)) == []


def test_a_bookmark_that_says_no_zone_may_be_of_a_zone_ahead():
    tomorrow = NOW.date().replace(day=NOW.day + 1).isoformat()
    assert NOW.hour == 0
    today = NOW.date().isoformat()
    assert codes(*whole(row(1, f"{today}T00:00:00Z"), last=f"{today}T10:00:00")) == []
    assert codes(*whole(row(1, f"{today}T00:00:00Z"), last=f"{today}T14:01:00")) == ["B324"]
    assert "B307" in codes(*whole(row(1, day(1)), last=tomorrow))


def test_rows_without_their_key_are_no_fault_of_the_rows():
    """As rows of a log: bookmark_properties names what stands in the state alone."""
    plain = schema(key="lsn")
    found_there = codes(plain, row(1), row(2), state({"bookmarks": {"a": {"lsn": 7}}}))
    assert found_there == ["C114"]


def test_a_stream_that_is_not_in_the_catalog_may_leave_the_state():
    entry = {
        "tap_stream_id": "a",
        "stream": "a",
        "schema": schema()["schema"],
        "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}],
    }
    given = {"bookmarks": {"a": {"at": day(1)}, "gone": {"at": day(1)}}}
    assert codes(*whole(row(1, day(2))), state=given, catalog={"streams": [entry]}) == []
    assert finding("B316", *whole(row(1, day(2))), state=given).stream == "gone"


def test_what_is_needed_while_a_table_is_under_way_may_go():
    between = {"bookmarks": {"a": {"last_pk_fetched": {"id": 1}, "version": 1, "stream_state": {"job": "e1"}}}}
    for last in ({"bookmarks": {"a": {}}}, {"bookmarks": {}}, {}):
        assert codes(schema(key=None), row(1), state(between), row(2), state(last)) == []


def test_a_state_that_says_nothing_new_may_be_left_out():
    """As the Singer SDK does, of partitions, too."""
    given = state(a=day(2))["value"]
    assert codes(schema(), row(1, day(2)), state=given) == []
    assert codes(schema(), row(1, day(3)), state=given) == ["B310"]
    assert codes(schema(), state(given), row(1, day(2)), state=given) == []
    assert codes(schema(), state(given), row(1, day(3)), state=given) == ["B305", "B318"]
    parts = {
        "bookmarks": {"a": {"partitions": [{"context": {"x": at}, "replication_key_value": day(at)} for at in (1, 5)]}}
    }
    assert codes(schema(), state(parts), row(1, day(1)), row(2, day(5)), state=parts) == []
    assert codes(schema(), state(parts), row(1, day(1)), row(2, day(6)), state=parts) == ["B318"]


def test_touched_states_lack_what_did_not_change():
    """True of targets that keep the last STATE: told once, not as a bookmark that stands still as well."""
    both = (schema(), row(1, day(1)), schema("b"), row(1, day(1), "b"))
    assert codes(*both, state(a=day(1), b=day(1)), row(2, day(2), "b"), state(b=day(2))) == ["B316"]


# --- what is not ---


def test_the_line_and_the_row_are_named():
    one = finding("B303", schema(), row(1, day(3)), state(a=day(3)), row(2, day(4)), row(3, day(2)), state(a=day(4)))
    assert one.places == ("line 5",)
    assert (day(3) in one.message, "line 3" in one.message, day(2) in one.message) == (True, True, True)
    early = finding("B302", schema(), state(a=day(3)), row(1, day(1)), row(2, day(3)), state(a=day(3)))
    assert (early.places, "line 3" in early.message) == (("line 2",), True)


def test_a_row_above_the_given_state_is_lost_and_one_below_is_not():
    given = state(a=day(2))["value"]
    messages = (schema(), state(a=day(5)), row(1, day(1)), row(2, day(3)), row(3, day(5)), state(a=day(5)))
    assert "line 4" in finding("B302", *messages, state=given).message


def test_a_state_before_the_first_row_may_be_of_another_kind():
    """A number as a time: the rows tell what it is."""
    messages = (schema(), state(a=1704240000), row(1, day(2)), row(2, day(3)), state(a=1704240000))
    assert codes(*messages) == ["B302"]


def test_rows_in_numbers_and_a_bookmark_in_text():
    plain = schema(fields={"id": {"type": "integer"}, "at": {"type": "integer"}})
    rows = [row(1, 1704067200000), row(2, 1704153600000)]
    assert codes(plain, *rows, state(a=day(2))) == []
    assert codes(plain, *rows, state(a=day(1))) == ["B323"]
    assert codes(plain, *rows, state(a=day(3))) == ["B324"]


def test_null_is_told_with_its_rows():
    one = finding(
        "B320", schema(), row(1, day(1)), row(2, at=None) | {"record": {"id": 2, "at": None}}, row(3), state(a=day(1))
    )
    assert (one.count, one.places) == (2, ("line 3", "line 4"))


def test_rows_of_another_kind_are_told_and_left_out():
    plain = schema(fields={"id": {"type": "integer"}, "at": {"type": "string"}})
    messages = (plain, row(1, day(1)), row(2, "0000-00-00 00:00:00"), row(3, day(3)), state(a=day(3)))
    one = finding("B321", *messages)
    assert (one.places, one.count) == (("line 3",), 1)
    assert "some are date-times, others are text that is none" in one.message and "kind" not in one.message
    assert codes(*messages) == ["B321"]
    mixed = schema(fields={"id": {"type": "integer"}, "at": {"type": ["string", "integer"]}})
    assert "changes its kind" in finding("B321", mixed, row(1, day(1)), row(2, 7), state(a=day(1))).message


def test_what_the_last_state_lost():
    messages = (schema(), row(1, day(1)), state(a=day(1)), row(2, day(2)))
    assert codes(*messages, state({"bookmarks": {"a": {}}})) == ["B316"]
    assert codes(*messages, state({"bookmarks": {}})) == ["B316"]
    assert codes(schema(), row(1, day(1)), state({"bookmarks": {"a": {}}})) == ["B305"]
    assert codes(schema(), row(1, day(1)), state({})) == ["B305"]
    assert codes(
        schema(),
        row(1, day(1)),
        state({"bookmarks": {"b": {"at": day(1)}}}),
        schema("b"),
        row(1, day(1), "b"),
        state(b=day(1)),
    ) == ["B305"]


def test_the_last_row_in_place_of_the_greatest():
    messages = (
        schema(),
        row(1, day(1)),
        row(2, day(5)),
        row(3, day(3)),
        state(a=day(3)),
        row(4, day(6)),
        state(a=day(6)),
    )
    assert codes(*messages) == ["O402"]


def test_a_slow_bookmark_by_the_times_of_the_rows():
    def messages(last):
        rows = [
            row(at, f"2024-01-01T00:00:{at:02}Z", time=f"2024-01-01T10:00:{at * last // 10:02}Z") for at in range(10)
        ]
        return schema(), *rows, state(a="2024-01-01T00:00:09Z")

    assert codes(*messages(50)) == ["B306"]
    assert codes(*messages(9)) == []
    assert codes(*messages(50), limits=Limits(min_advance_seconds=100)) == []
    assert codes(*messages(50), limits=Limits(min_advance_ratio=0.1)) == []


def test_a_run_that_was_stopped_is_no_fault():
    messages = (schema(), row(1, day(1)), row(2, day(2)))
    assert codes(*messages) == ["B310"]
    assert codes(*messages, whole=False) == []
    left = state({"currently_syncing": "a", "bookmarks": {"a": {"at": day(1)}}})
    assert codes(*messages, left) == ["B309", "B323"]
    assert codes(*messages, left, whole=False) == []


def test_a_list_of_partitions_may_grow():
    def stated(count):
        contexts = [
            {"context": {"shop": at}, "replication_key": "at", "replication_key_value": day(1)} for at in range(count)
        ]
        return state({"bookmarks": {"a": {"partitions": contexts}}})

    rows = [row(at, day(1)) for at in range(200)]
    between = [message for at, one in enumerate(rows, 1) for message in (one, stated(at))]
    assert "B308" not in codes(schema(), *between)
    ids = [
        message
        for at, one in enumerate(rows, 1)
        for message in (one, state({"bookmarks": {"a": {"at": day(1)}}, "seen": list(range(at))}))
    ]
    assert "B308" in codes(schema(), *ids)


def test_without_a_catalog_a_state_tells_that_a_stream_is_not_read_whole():
    """bookmark_properties may be left out; then a row may come twice."""
    plain = schema(key=None)
    assert codes(plain, row(1, day(1)), row(1, day(2)), state({})) == ["M208"]
    assert codes(plain, row(1, day(1)), row(1, day(2)), state(a=day(2))) == []
    assert codes(plain, row(1, day(1)), row(1, day(2)), state({}), state=state(a=day(1))["value"]) == ["B316"]


def test_fields_are_those_of_the_tests():
    assert set(FIELDS) == {"id", "at", "n"}
    assert [one.code for one in check_messages(lines(schema(), row(1, day(1), n="x"), state(a=day(1))))] == ["M205"]
    assert json.loads(lines(state(a=day(1)))) == state(a=day(1))
    assert found(schema(), row(1, day(1)), state(a=day(1))) == []
