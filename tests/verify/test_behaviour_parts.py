"""What the checks of behaviour are made of: states of just now, catalogs with less in them, counted output."""

from __future__ import annotations

import copy
import datetime as dt
import json

import pytest

from support.internals import behaviour_discovery, behaviour_seen, behaviour_states, verify_catalogs

NOW = dt.datetime(2030, 1, 2, 3, 4, 5, 678, dt.UTC)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2024-05-06T07:08:09Z", "2030-01-02T03:04:05Z"),
        ("2024-05-06T07:08:09.123Z", "2030-01-02T03:04:05.000Z"),
        ("2024-05-06 07:08:09+02:00", "2030-01-02 03:04:05+00:00"),
        ("2024-05-06T07:08:09-0500", "2030-01-02T03:04:05+0000"),
        ("2024-05-06T07:08:09", "2030-01-02T03:04:05"),
        ("2024-05-06", "2030-01-02"),
        ("2031-05-06", "2031-05-06"),
        ("2030-01-02T03:04:06Z", "2030-01-02T03:04:06Z"),
        ("v2024-05-06", "v2024-05-06"),
        (17, 17),
        (None, None),
    ],
)
def test_a_bookmark_of_just_now_has_the_form_of_the_old_one(before, after):
    state = {"bookmarks": {"people": {"at": before, "partitions": [{"context": {"day": "2024-01-01"}, "at": before}]}}}
    expected = {"bookmarks": {"people": {"at": after, "partitions": [{"context": {"day": "2024-01-01"}, "at": after}]}}}
    kept = copy.deepcopy(state)
    assert behaviour_states.as_of(state, NOW) == expected
    assert state == kept


def catalog(**metadata: dict) -> dict:
    fields = {name: {"type": "string"} for name in metadata if name != "stream"}
    crumbs = {"stream": {}, **metadata}
    return {
        "streams": [
            {
                "tap_stream_id": "shop-people",
                "stream": "people",
                "schema": {"type": "object", "properties": fields},
                "key_properties": ["id"],
                "metadata": [
                    {"breadcrumb": [] if name == "stream" else ["properties", name], "metadata": held}
                    for name, held in crumbs.items()
                ],
            }
        ]
    }


AVAILABLE = {"inclusion": "available"}


def test_nothing_is_selected_in_a_copy_alone():
    given = catalog(stream={"selected": True}, id=AVAILABLE)
    changed = verify_catalogs.nothing_selected(given)
    assert changed["streams"][0]["metadata"][0]["metadata"]["selected"] is False
    assert given["streams"][0]["metadata"][0]["metadata"]["selected"] is True


def test_what_is_automatic_has_its_names():
    assert verify_catalogs.names_of(catalog(), automatic=True) == set()
    assert verify_catalogs.names_of(catalog(stream={"inclusion": "automatic"}), automatic=True) == {
        "shop-people",
        "people",
    }
    assert verify_catalogs.names_of(catalog()) == {"shop-people", "people"}


def test_old_properties_have_the_selection_in_their_schemas():
    given = catalog(
        stream={"selected": "true"},
        id={"inclusion": "automatic", "selected": False},
        name=AVAILABLE,
        mail={"inclusion": "available", "selected": False},
        photo={"inclusion": "unsupported", "selected": True},
    )
    schema = verify_catalogs.legacy(given)["streams"][0]["schema"]
    assert schema["selected"] is True
    selected = {name: node["selected"] for name, node in schema["properties"].items()}
    assert selected == {"id": True, "name": True, "mail": False, "photo": False}
    assert "selected" not in given["streams"][0]["schema"]


def test_fewer_fields_keep_keys_and_what_is_automatic():
    given = catalog(
        stream={"valid-replication-keys": ["at"]},
        id=AVAILABLE,
        at=AVAILABLE,
        kind={"inclusion": "automatic"},
        name=AVAILABLE,
        mail={"inclusion": "available", "selected": False},
    )
    changed, off = verify_catalogs.fewer_fields(given)
    assert off == {"people": ["name"]}
    held = {one["breadcrumb"][-1]: one["metadata"] for one in changed["streams"][0]["metadata"] if one["breadcrumb"]}
    assert {name for name, one in held.items() if one.get("selected") is False} == {"name", "mail"}


def test_one_field_stays_where_none_must():
    given = catalog(a=AVAILABLE, b=AVAILABLE)
    given["streams"][0]["key_properties"] = []
    assert verify_catalogs.fewer_fields(given)[1] == {"people": ["b"]}


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"streams": None},
        {"streams": [1, {}, {"metadata": 5, "schema": 7}]},
        {"streams": [{"stream": ["x"], "metadata": [1, {"breadcrumb": [[], {}]}, {"breadcrumb": [], "metadata": 3}]}]},
        {"streams": [{"schema": {"properties": [1]}, "key_properties": 3, "metadata": [{"breadcrumb": [1, 2]}]}]},
    ],
    ids=["empty", "null", "kinds", "metadata", "schema"],
)
def test_catalogs_of_any_shape_are_survived(strange):
    for change in (
        verify_catalogs.nothing_selected,
        verify_catalogs.legacy,
        verify_catalogs.names_of,
        verify_catalogs.fewer_fields,
    ):
        change(strange)


@pytest.mark.parametrize(
    ("text", "streams", "noise"),
    [
        ('{"streams": []}\n', [], ""),
        ('\ufeff{"streams": []}', [], ""),
        ('INFO {a}\n{"level": "info"}\n{"streams": [1]}\nbye', [1], 'INFO {a}\n{"level": "info"}\nbye'),
    ],
    ids=["plain", "byte-order-mark", "noise"],
)
def test_the_catalog_is_found_among_other_text(text: str, streams: list, noise: str):
    assert behaviour_discovery.split_catalog(text.encode()) == ({"streams": streams}, noise)


def test_no_catalog_is_none():
    assert behaviour_discovery.split_catalog(b'[1]\n{"a": {"streams": 1}}') == (None, '[1]\n{"a": {"streams": 1}}')


def line(kind: str, stream: str = "people", **more) -> bytes:
    return json.dumps({"type": kind, "stream": stream, **more}).encode() + b"\n"


def test_output_is_counted_in_whatever_pieces_it_comes():
    text = (
        line("SCHEMA", key_properties=["id"], schema={})
        + line("record", record={"id": 1})
        + line("STATE", value={"at": 1})
        + b"noise\n"
        + line("RECORD", record={"id": 2})
        + line("RECORD", "orders", record={"id": 2})
        + line("ACTIVATE_VERSION", version=1)
        + b'{"type": "REC'
    )
    for size in (1, 7, 1000):
        seen = behaviour_seen.Seen(keys=True)
        for i in range(0, len(text), size):
            seen.take(text[i : i + size])
        assert (seen.bytes, seen.lines, seen.states, seen.rows_after_state) == (len(text), 7, 1, 2)
        assert seen.rows == {"people": 2, "orders": 1}
        assert (seen.state, seen.activated) == ({"at": 1}, {"people": 2})
        assert (list(seen.schemaless), list(seen.keyless)) == (["orders"], ["orders"])
        assert seen.torn == b'{"type": "REC'
        assert behaviour_seen.shown_keys(seen.keys or (), seen.schemas) == "people id=1; people id=2"


def test_a_last_line_without_its_end_is_whole_if_it_can_be_read():
    seen = behaviour_seen.Seen()
    seen.take(line("RECORD", record={}).rstrip())
    assert seen.torn is None
    seen.end()
    assert seen.rows == {"people": 1}


def test_news_are_told_by_how_far_behind_the_mark_they_came():
    seen = behaviour_seen.Seen()
    seen.take(line("RECORD", record={}))
    seen.mark()
    seen.take(line("STATE", value=1) + line("RECORD", "orders", record={"pad": "x" * 100}) + line("STATE", value=2))
    assert seen.news_after(-1) == ["STATE", "stream 'orders'", "STATE"]
    assert seen.news_after(100) == ["STATE"]


def test_all_that_can_be_is_selected_and_nothing_else_is_changed():
    crumb = ["properties", "x"]
    stream = {
        "stream": "a",
        "selected": False,
        "schema": {"selected": False, "properties": {}},
        "metadata": [{"breadcrumb": crumb, "metadata": {"inclusion": "unsupported", "selected": False}}],
    }
    given = {"streams": [stream, {"stream": "b"}]}
    before = copy.deepcopy(given)
    one, other = verify_catalogs.select_all(given)["streams"]
    assert given == before
    assert one["metadata"] == [{"breadcrumb": [], "metadata": {"selected": True}}, stream["metadata"][0]]
    assert one["schema"]["selected"] is True
    assert other["metadata"] == [{"breadcrumb": [], "metadata": {"selected": True}}]
    none = verify_catalogs.nothing_selected(verify_catalogs.select_all(given))["streams"][0]
    assert none["metadata"][0]["metadata"] == {"selected": False}
    assert (none["selected"], none["schema"]["selected"]) == (False, False)
    left = verify_catalogs.without(verify_catalogs.select_all(given), ["b"])["streams"]
    assert [one["metadata"][0]["metadata"]["selected"] for one in left] == [True, False]
    assert verify_catalogs.select_all(None) is None and verify_catalogs.select_all({"streams": 5}) == {"streams": 5}
