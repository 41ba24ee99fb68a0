"""Messages in their order: what breaks a rule is told with its line, what keeps it is not."""

import gzip
import json
import tracemalloc

import pytest
from said import codes, day, finding, found, lines, row, schema, state

from burler.spec import RULES, Findings, Limits, MessageCheck, check_messages

PLAIN = schema(key=None)


def activate(version, stream="a"):
    return {"type": "ACTIVATE_VERSION", "stream": stream, "version": version}


# --- lines ---


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["newline", "carriage return"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_line_ends(end, last):
    text = end.join(json.dumps(one) for one in (PLAIN, row(1), row(1))) + (end if last else "")
    (one,) = [one for one in check_messages(text) if one.severity == "error"]
    assert (one.code, one.places) == ("M208", ("line 3",))


def test_nothing_at_all_breaks_nothing():
    assert check_messages(b"") == []


def test_a_log_line_is_told_as_one():
    one = finding("M201", PLAIN, "2024-05-01 10:00:00 INFO starting", row(1))
    assert (one.places, "log line" in one.message) == (("line 2",), True)


def test_a_broken_line_behind_a_wrong_type_is_told():
    assert codes(PLAIN, '{"type": 1, oops', row(1)) == ["M201"]


def test_a_byte_order_mark_costs_one_line_and_not_the_schema():
    text = b"\xef\xbb\xbf" + lines(PLAIN, row(1))
    assert [(one.code, one.places) for one in check_messages(text) if one.severity == "error"] == [
        ("M201", ("line 1",))
    ]


def test_a_record_without_a_record_is_no_row():
    one = finding("M202", PLAIN, row(1), {"type": "RECORD", "stream": "a"}, row(2), {"type": "RECORD", "stream": "a"})
    assert (one.count, one.places) == (2, ("line 3", "line 5"))
    assert codes(PLAIN, row(1), {"type": "RECORD", "stream": "a"}, row(2)) == ["M202"]


def test_the_third_line_of_a_stretch_is_named():
    """However the rows before it came together."""
    one = finding("M205", PLAIN, row(1), row(2), row(3, n="x"), row(4), row(5, n=[1]), row(6, n="y"), row(7, n="z"))
    assert (one.places, one.count) == (("line 4", "line 6", "line 7"), 4)
    assert "'x'" in one.message


# --- values ---


@pytest.mark.parametrize("value", ["\0", "a\0b", 2**63, -(2**63) - 1], ids=["NUL", "NUL inside", "65 bits", "negative"])
def test_values_that_targets_can_not_take(value):
    fields = {"id": {"type": "integer"}, "v": {"type": ["string", "integer", "null"]}}
    one = finding("M219", schema(key=None, fields=fields), row(1, v="fine"), row(2, v=value))
    assert (one.path, one.places) == ("v", ("line 3",))


@pytest.mark.parametrize("text", ["\\u0000 is NUL", "plain"])
def test_text_about_nul_is_no_nul(text):
    assert codes(schema(key=None, fields={"id": {"type": "integer"}, "v": {"type": "string"}}), row(1, v=text)) == []


def test_dates_one_by_one():
    fields = {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}
    plain = schema(key=None, fields=fields)
    well = ["2024-01-31T23:59:59Z", "2024-02-29T00:00:00.5+02:00", "1970-01-01T00:00:00z"]
    assert codes(plain, *(row(at, text) for at, text in enumerate(well))) == []
    for text, code in (("2024-01-01T00:00:00", "M217"), ("2024-02-30T00:00:00Z", "M205"), ("soon", "M205")):
        one = finding(code, plain, *(row(at, other) for at, other in enumerate(well)), row(9, text))
        assert one.places == ("line 5",)
    empty = {"type": "RECORD", "stream": "a", "record": {"id": 9, "at": ""}}
    assert codes(plain, row(1, well[0]), empty) == ["M205"]


def test_names_with_dots_are_found_again():
    fields = {"id": {"type": "integer"}, "a.b": {"type": "integer"}, "a": {"properties": {"b": {"type": "string"}}}}
    fields["a"]["type"] = "object"
    plain = schema(key=None, fields=fields)
    one = finding("M205", plain, row(1, **{"a": {"b": "x"}, "a.b": 1}), row(2, **{"a.b": "x"}))
    assert one.places == ("line 3",)


def test_references_and_branches_are_held_and_nothing_is_fetched():
    fields = {
        "id": {"type": "integer"},
        "one": {"$ref": "#/definitions/one"},
        "far": {"$ref": "http://localhost:9/none.json"},
        "two": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["x"]}]},
    }
    plain = schema(key=None, fields=fields)
    plain["schema"]["definitions"] = {"one": {"type": "integer"}}
    told = found(plain, row(1, one=1, far="x", two=1), row(2, one="x", two={}))
    assert {one.path for one in told if one.code == "M205"} == {"one", "two"}
    assert [one.places for one in told if one.code == "M205"] == [("line 3",)] * 2


@pytest.mark.parametrize(
    "key", [[1], {"a": 1}, 1.5, True, None, 10**400], ids=["list", "object", "float", "true", "null", "huge"]
)
def test_keys_of_any_kind(key):
    messages = (schema(key=None, fields={"id": {}}), row(1), row(key), row(key))
    assert {"M208"} <= set(codes(*messages))


def test_empty_text_is_another_key_than_nought():
    assert "M208" not in codes(schema(key=None, fields={"id": {"type": ["string", "integer"]}}), row(0), row(""))


def test_a_secret_field_is_not_shown():
    fields = {"id": {"type": "integer"}, "password": {"type": "integer"}, "user": {"type": "string"}}
    messages = (schema(key=None, fields=fields), row(1, password="opensesame", user={"api_token": "opensesame"}))
    told = found(*messages)
    assert sorted(one.path for one in told) == ["password", "user"]
    assert not any("opensesame" in one.message for one in told)


def test_secrets_of_the_config_are_found_line_by_line():
    config = {"api_key": "k3y/with+signs", "pin_password": "123456"}
    messages = (PLAIN, row(1, n=1234567), row(2, x="?key=k3y%2Fwith%2Bsigns"), row(3, x="say k3y/with+signs"))
    one = finding("M215", *messages, config=config)
    assert (one.count, one.places) == (2, ("line 3", "line 4"))
    assert finding("M215", PLAIN, row(1, x="pin\n123456"), config=config).places == ("line 2",)
    shown = check_messages(b"INFO with k3y/with+signs\n", config=config)
    assert not any("k3y" in one.message for one in shown)


# --- streams ---


def test_a_schema_that_changes_on_the_way():
    other = schema(key=None, fields={"id": {"type": "integer"}, "x": {"type": "string"}})
    rows = [row(at, n=at) for at in range(30)]
    assert check_messages(lines(PLAIN, *rows, other, *(row(at, x="y") for at in range(40, 70)))) != []
    assert codes(PLAIN, *rows, other, row(99, x="y")) == []
    fields = {one.path for one in check_messages(lines(PLAIN, *rows, other, row(99, x="y"))) if one.code == "R503"}
    assert fields == {"at"}  # x came: too few rows had the second SCHEMA to say that it never does


def test_schemas_that_take_turns_are_held_once_each():
    other = schema(key=None, fields={"id": {"type": "integer"}})
    messages = [one for at in range(500) for one in ((PLAIN, other)[at % 2], row(at))]
    assert codes(*messages) == []


def test_other_keys_begin_anew():
    fields = {"id": {"type": "integer"}, "n": {"type": "integer"}}
    other = schema(key=None, keys=("id", "n"), fields=fields)
    assert codes(PLAIN, row(1, n=1), other, row(1, n=1), row(1, n=2)) == []
    assert codes(PLAIN, row(1, n=1), other, row(1, n=1), row(1, n=1)) == ["M208"]


def test_time_extracted_row_by_row():
    naive = "2024-05-01T00:00:00"
    one = finding("M210", PLAIN, row(1, time="2024-05-01T00:00:00Z"), row(2, time=naive), row(3, time=naive))
    assert (one.count, one.places) == (2, ("line 3", "line 4"))
    late = finding("M211", PLAIN, row(1, time="2024-05-01T00:00:00Z"), row(2, time="2024-06-02T00:00:00Z"))
    assert late.places == ("line 3",)
    assert codes(PLAIN, row(1, time="2024-06-01T00:05:00Z")) == []  # clocks differ


# --- versions ---


def test_versions_that_are_well():
    resumed = {"bookmarks": {"a": {"version": 1}}}
    first = (PLAIN, activate(1), row(1, version=1), activate(1), state(resumed))
    assert codes(*first) == []
    assert (
        codes(PLAIN, row(1, version=2), activate(2), state({"bookmarks": {"a": {"version": 2}}}), state=resumed) == []
    )
    assert codes(PLAIN, activate(2), state({"bookmarks": {"a": {"version": 2}}}), state=resumed) == []  # an empty table
    assert codes(PLAIN, row(1, version=1), whole=False) == []  # broken off


def test_an_incremental_stream_goes_on_with_its_version():
    given = {"bookmarks": {"a": {"at": day(1), "version": 1}}}
    last = state({"bookmarks": {"a": {"at": day(2), "version": 1}}})
    assert codes(schema(), activate(1), row(1, day(2), version=1), last, state=given) == []
    assert codes(schema(), row(1, day(2), version=1), last, state=given) == []


def test_a_full_table_that_goes_on_under_its_version():
    """It is under way: activated before, and once all is out."""
    ways = ({"full_table": {"id": 1, "version": 1}}, {"version": 1, "last_pk_fetched": {"id": 1}})
    for entry in ways:
        given = {"bookmarks": {"a": entry}}
        last = state({"bookmarks": {"a": {"version": 1}}})
        assert codes(PLAIN, activate(1), row(1, version=1), activate(1), last, state=given) == []
        assert codes(PLAIN, activate(1), row(1, version=1), last, state=given) == ["M212"]
        assert codes(PLAIN, row(1, version=1), last, state=given) == ["M212"]


def test_a_part_of_a_table_of_which_the_rest_has_not_changed():
    given = {"bookmarks": {"a": {"version": 1}}}
    assert codes(PLAIN, row(1, version=1), state(given), state=given) == []


def test_a_log_tells_of_an_emptied_table_by_a_version():
    place = state({"bookmarks": {"a": {"version": 1, "stream_state": {"lsn": 5}}}})
    assert codes(PLAIN, row(1, version=1), row(1, version=1), activate(1), activate(2), place) == []
    given = place["value"]
    assert codes(PLAIN, row(1, version=1), activate(2), row(2, version=2), place, state=given) == []


def test_versions_that_are_not():
    given = {"bookmarks": {"a": {"version": 1}}}
    early = finding("M212", PLAIN, activate(2), row(1, version=2), activate(2), state(given), state=given)
    assert early.places == ("line 2",)
    assert codes(PLAIN, row(1, version=1)) == ["M212"]
    assert codes(PLAIN, row(1, version=2), activate(1)) == ["M212"]
    assert codes(PLAIN, row(1, version=2), row(2), activate(2)) == ["M212"]


# --- batches ---


def test_rows_of_a_batch_are_held_like_records(tmp_path):
    rows = [{"id": 1, "n": 1}, {"id": 2, "n": "x"}, {"id": 1, "n": 1.5}]
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(json.dumps(one).encode() + b"\n" for one in rows)))
    batch = {"type": "BATCH", "stream": "a", "encoding": {"format": "jsonl", "compression": "gzip"}}
    told = found(PLAIN, {**batch, "manifest": [packed.as_uri()]})
    assert sorted((one.code, one.path, one.places) for one in told) == [
        ("M205", "n", ("line 2",)),
        ("M208", "id", ("line 2",)),
    ]
    assert codes(PLAIN, {**batch, "manifest": [(tmp_path / "none").as_uri()]}) == ["M213"]
    assert "M213" in codes(PLAIN, {"type": "BATCH", "stream": "a"})
    mixed = finding("M214", PLAIN, row(9), {**batch, "manifest": [packed.as_uri()]})
    assert mixed.places == ("line 3",)


# --- a great many rows ---


def test_memory_does_not_grow_with_the_rows():
    """Keys go to a temporary file, STATEs and points are thinned out: what is held after 65,536 rows and STATEs by the
    dozen is what is held after twice as many."""
    check = MessageCheck(Findings(RULES), limits=Limits(keys_in_memory=1), log_all=True)
    check.feed(lines(schema()))

    def feed(start):
        for first in range(start, start + 65_536, 1024):
            page = b"".join(
                b'{"type":"RECORD","stream":"a","record":{"id":%d,"at":"2024-01-01T00:00:00.%06dZ"}}\n' % (at, at)
                for at in range(first, first + 1024)
            )
            check.feed(page + b'{"type":"STATE","value":{"bookmarks":{"a":{"at":"2024-01-01","seen":%d}}}}\n' % first)

    feed(0)
    tracemalloc.start()
    try:
        feed(65_536)
        assert tracemalloc.get_traced_memory()[0] < 200_000  # in lists and sets the rows would be 5 MB
    finally:
        tracemalloc.stop()
    check.finish()
    assert check.rows == 131_072
    check.close()


def test_a_line_that_does_not_end_is_not_held_for_ever(monkeypatch):
    from burler.spec import RULES, Findings, MessageCheck

    monkeypatch.setattr(MessageCheck, "most_line_bytes", 1 << 20)
    findings = Findings(RULES)
    check = MessageCheck(findings)
    for number in range(1, 41):
        check.feed(b"\0" * 100_000)
        assert len(list(findings)) == (number > 10)
    check.feed(b'x\n{"type": "STATE", "value": {}}\n')
    check.finish()
    assert [(one.code, one.places) for one in findings] == [("M201", ("line 1",))]
    assert (check.lines, check.states.count) == (2, 1)


def test_messages_may_be_objects_lines_or_blocks():
    messages = [PLAIN, row(1), row(1)]
    text = lines(*messages)
    wanted = check_messages(text)
    assert "M208" in {one.code for one in wanted}
    for given in (text.decode(), messages, text.splitlines(keepends=True), [text[:50], text[50:]], [text.decode()]):
        assert check_messages(given) == wanted
    assert "M208" in repr(wanted)
