"""Whatever bytes a tap writes: findings, never a traceback, and the same however the bytes are cut into blocks."""

import datetime as dt
import json
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from burler.spec import RULES, Findings, Limits, MessageCheck, check_messages
from support.strategies import json_values

QUICK = settings(suppress_health_check=list(HealthCheck))
NOW = dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
VOCABULARY = """
    a b id at updated_at bookmarks currently_syncing partitions context progress_markers replication_key version
    replication_key_value type properties items format date-time string integer number object array null required
    additionalProperties anyOf $ref #/definitions/a definitions enum minimum 2024-01-01 2024-01-02T00:00:00Z 10 9 file:///x
"""
WORDS = VOCABULARY.split()
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from([*WORDS, "\ud800", "\0", 10**400, -0.0, 1700000000, 1700000000000, 2**63, "2024-01-01 00:00:00"]),
)
VALUES = json_values(
    LEAVES,
    st.sampled_from([*WORDS, "\ud800"]),
    most=10,
)
SCHEMAS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(["id", "at", "a"]), VALUES, max_size=3)}),
    st.just({"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}),
)
RECORDS = st.one_of(VALUES, st.fixed_dictionaries({"id": LEAVES, "at": LEAVES}), st.dictionaries(st.just("id"), VALUES))
NAMES = st.one_of(st.sampled_from(["a", "b"]), LEAVES)
KEYS = st.one_of(st.just(["id"]), st.just(["id", "at"]), VALUES)
MARKS = st.one_of(st.just(["at"]), st.just(["id"]), VALUES)
STATES = st.one_of(
    VALUES,
    st.fixed_dictionaries({"bookmarks": st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2)}),
    st.builds(
        lambda value: {"bookmarks": {"a": {"at": value, "version": 1}}},
        LEAVES | st.sampled_from(["2024-01-01", "2024-01-02T00:00:00Z", 3]),
    ),
)


def message(kind, needed, **more):
    return st.fixed_dictionaries({"type": st.just(kind), **needed}, optional=more)


MESSAGES = st.one_of(
    message("SCHEMA", {"stream": NAMES, "schema": SCHEMAS}, key_properties=KEYS, bookmark_properties=MARKS),
    message("RECORD", {"stream": NAMES, "record": RECORDS}, time_extracted=LEAVES, version=LEAVES),
    message("RECORD", {"stream": st.just("a"), "record": RECORDS}),
    message("STATE", {"value": STATES}),
    message("ACTIVATE_VERSION", {"stream": NAMES, "version": LEAVES}),
    message("BATCH", {"stream": NAMES}, manifest=VALUES, encoding=VALUES, format=VALUES, compression=VALUES),
    st.dictionaries(st.sampled_from(["type", "stream", "record", "value"]), VALUES),
    VALUES,
)
LINES = st.one_of(
    MESSAGES.map(lambda value: json.dumps(value).encode()),
    MESSAGES.map(lambda value: json.dumps(value).encode()[:-3]),
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"",
            b"\r",
            b"INFO hello",
            b"\xef\xbb\xbf{}",
            b"[" * 100_000,
            b'{"type":"STATE","value":' + b"[" * 990 + b"]" * 990 + b"}",
            b'{"type": 1, x',
            b'{"type":"RECORD","stream":"a","record":{"id":' + b"1" * 5000 + b"}}",
            b'{"type":"RECORD","stream":"a","record":{"id":{"a":1,"a":2}}}',
            b'{"type":"RECORD","stream":"a","record":{"id":1e999}}',
        ]
    ),
)
TIMES = st.sampled_from(["2024-01-01", "2024-01-02T00:00:00Z", "2024-01-03T00:00:00", "2024-01-02T01:00:00+01:00", "x"])
PLACES = st.one_of(TIMES, st.integers(0, 4), st.sampled_from([1704153600000, "9", "10", "a", 1.5, None, [1], 10**400]))
FIELDS = {"id": {"type": ["integer", "null"]}, "at": {"type": ["string", "null"], "format": "date-time"}}
TAME = st.one_of(
    st.sampled_from([["id"], ["at"], ["id", "at"], []]).map(
        lambda keys: (
            {"type": "SCHEMA", "stream": "a", "schema": {"properties": FIELDS}, "key_properties": keys}
            | ({"bookmark_properties": ["at"]} if keys != ["at"] else {})
        )
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("RECORD"),
            "stream": st.just("a"),
            "record": st.fixed_dictionaries({}, optional={"id": PLACES, "at": PLACES, "more": VALUES}),
        },
        optional={"version": st.integers(1, 3), "time_extracted": TIMES},
    ),
    st.builds(lambda value: {"type": "STATE", "value": {"bookmarks": {"a": {"at": value}}}}, PLACES),
    st.builds(lambda version: {"type": "ACTIVATE_VERSION", "stream": "a", "version": version}, st.integers(1, 3)),
)
WILD_OR_TAME = st.one_of(LINES, *[TAME.map(lambda value: json.dumps(value).encode())] * 3)
SCHEMA = json.dumps(
    {
        "type": "SCHEMA",
        "stream": "a",
        "schema": {"properties": {"id": {"type": "integer"}, "at": {"type": ["string", "null"]}}},
        "key_properties": ["id"],
        "bookmark_properties": ["at"],
    }
).encode()
TAME_OUTPUTS = st.lists(TAME.map(lambda value: json.dumps(value).encode()), min_size=5, max_size=30).map(
    lambda lines: b"\n".join([SCHEMA, *lines])
)
OUTPUTS = st.one_of(st.lists(LINES, max_size=10), *[st.lists(WILD_OR_TAME, max_size=16)] * 3).flatmap(
    lambda lines: st.sampled_from([b"\n".join(lines), b"\r\n".join(lines) + b"\r\n", b"\n".join(lines) + b"\n"])
)


def checked(blocks, *, whole=True, state=None, log_all=False):
    findings = Findings(RULES)
    check = MessageCheck(
        findings, limits=Limits(), given=state, log_all=log_all, now=lambda: NOW, monotonic=lambda: 0.0
    )
    for block in blocks:
        check.feed(block)
    check.finish(whole=whole)
    return check, findings


def as_lines(found):
    return sorted((one.code, one.stream or "", one.path or "", one.count, one.places, one.message) for one in found)


@QUICK
@given(OUTPUTS, STATES, VALUES, st.booleans())
@example(b'{"type":"STATE","value":{"bookmarks":{"a":{"at":1}}}}\n', {}, {}, True)
def test_any_bytes_are_survived(text, state, catalog, whole):
    for found in (
        check_messages(text, state=state, catalog=catalog, whole=whole, config={"password": "secret \ud800"}),
        check_messages(text, whole=whole, resumed=None),
    ):
        for one in found:
            json.dumps(one.to_json(), ensure_ascii=False).encode()
    check, _findings = checked([text], whole=whole, state=state, log_all=True)
    for number in [one.number for one in check.states.chosen()]:
        check_messages(text, resumed={number: text}, now=lambda: NOW)
    check.close()


@QUICK
@example(b'{"type": "RECORD", "record": null}\r\n{"type": "RECORD", "record": {}}\r\n', [], None)
@example(
    b'{"type": "SCHEMA", "stream": "a", "schema": {}, "key_properties": []}\n{"type": "BATCH", "stream": "a"}\n'
    b'{"type": "RECORD", "stream": "a", "record": {}}\n{"type": "RECORD", "stream": "a", "record": {}}\n',
    [],
    None,
)
@example(
    SCHEMA + b'\n{"type":"RECORD","stream":"a","record":{"id":null}}\n{"type":"RECORD","stream":"a","record":{}}\n',
    [],
    None,
)
@given(OUTPUTS | TAME_OUTPUTS, st.lists(st.integers(0, 2000), max_size=6), STATES)
def test_blocks_are_cut_anywhere(text, cuts, state):
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    blocks = [text[start:end] for start, end in pairwise(places)]
    _check, one = checked([text], state=state)
    _check, other = checked(blocks, state=state)
    _check, byte_by_byte = checked(
        [text[at : at + 1] for at in range(len(text))] if len(text) < 5000 else [], state=state
    )
    assert as_lines(one) == as_lines(other)
    if len(text) < 5000:
        assert as_lines(one) == as_lines(byte_by_byte)


@pytest.mark.parametrize("depth", [50, 300, 896, 940, 5000])
def test_deep_nesting_is_survived(depth):
    for start, inner, end in ((b'{"a":', b'"b"', b"}"), (b"[", b"1", b"]")):
        deep = start * depth + inner + end * depth
        schema = b'{"type":"SCHEMA","stream":"a","schema":{"properties":{"at":' + deep + b'}},"key_properties":["id"]}'
        record = b'{"type":"RECORD","stream":"a","record":{"id":' + deep + b',"at":' + deep + b"}}"
        text = b'{"type":"RECORD","stream":"a","record":{"id":"\\u0000","at":' + deep + b"}}"
        state = b'{"type":"STATE","value":{"bookmarks":{"a":{"at":' + deep + b',"partitions":{"x":' + deep + b"}}}}}"
        wild = b'{"type":"STATE","value":{"bookmarks":{"b":' + deep + b',"\\ud800":1}}}'
        lines = [schema, SCHEMA, record, record, state, text, state, record, state, wild, state * 1, wild]
        check_messages(b"\n".join(lines))
        check_messages(b"\n".join(lines), resumed={1: b"\n".join(lines)}) if depth < 900 else None
