"""Streams that look odd and are well: an alarm on one of them would be false; and their neighbours that are not."""

import pytest
from said import FIELDS, codes, day, lines, row, schema, state

from burler.spec import RULES, Findings, MessageCheck, check_messages

TEXT = {"id": {"type": "integer"}, "u": {"type": "string"}}
NUMBER = {"id": {"type": "integer"}, "u": {"type": "integer"}}


def by(fields, *values, layout=None):
    """A run of an incremental stream by ``u``; ``...`` between the values is a STATE with the one before."""
    messages, count, before = [schema(key="u", fields=fields)], 0, None
    for value in values:
        if value is ...:
            entry = {"u": before} if layout is None else layout(before)
            messages.append(state({"bookmarks": {"a": entry}}))
        else:
            count, before = count + 1, value
            messages.append(row(count, u=value))
    return codes(*messages)


# --- rows that come again ---


def test_windows_that_overlap_bring_rows_again():
    first = [row(n, day(n)) for n in range(1, 11)]
    again = [row(n, day(n)) for n in range(8, 20)]
    assert codes(schema(), *first, state(a=day(10)), *again, state(a=day(19))) == []
    changed = [row(n, day(n)) for n in (8, 99)]  # no. 8 had come, as it is; a row with no. 99 had not
    changed[1]["record"]["at"] = day(9)
    assert codes(schema(), *first, state(a=day(10)), *changed, row(20, day(20)), state(a=day(20))) == ["B303"]


def test_a_state_that_is_written_again_before_all_rows_may_be_the_one_given():
    messages = lines(schema(), state(a=day(10)), *(row(n, day(n)) for n in range(7, 13)), state(a=day(12)))

    def seen(**given):
        findings = Findings(RULES)
        check = MessageCheck(findings, **given)
        check.feed(messages)
        check.finish()
        check.close()
        return sorted({one.code for one in findings})

    assert seen(guesses_given=True) == []
    assert seen() == ["B302"]  # who knows that none was given sees a STATE ahead of its rows


# --- values whose order nobody knows ---


@pytest.mark.parametrize(
    "values",
    [
        ("Wed, 01 May 2024", ..., "Thu, 02 May 2024", ..., "Fri, 03 May 2024", ...),
        ("12/30/2023", "01/02/2024", ..., "02/02/2024", ...),
        ("30-12-2023", "02-01-2024", ...),
        ("1.9", ..., "1.10", ...),
        ("2024-9", ..., "2024-10", ...),
        ("a", ..., "B", ..., "c", ...),
    ],
    ids=lambda values: values[0],
)
def test_text_that_a_source_may_sort_its_own_way(values):
    assert by(TEXT, *values) == []


def test_text_of_one_form_is_compared():
    assert by(TEXT, "a001", ..., "a002", ...) == []
    assert by(TEXT, "a003", ..., "a002", ...) == ["B303", "B304", "B323", "O402"]
    assert by(TEXT, "20240501T000000Z", ..., "20240430T000000Z") == ["B303"]


# --- bookmarks in another unit, or cut ---

S, MS = 1_714_557_600, 1_714_557_600_000


@pytest.mark.parametrize(
    ("values", "bookmark"),
    [
        ((MS, MS + 1000), S + 1),
        ((S, S + 1), MS + 1000),
        ((MS, MS + 1300), S + 1),
        ((MS, MS + 1300), "2024-05-01T10:00:01Z"),
        ((MS, MS + 1300), "2024-05-01T10:00:00Z"),
    ],
)
def test_times_since_1970_may_be_kept_in_another_unit(values, bookmark):
    assert by(NUMBER, *values, ..., layout=lambda _value: {"u": bookmark}) == []


def test_the_unit_of_a_bookmark_before_all_rows_is_not_known_yet():
    said = state({"bookmarks": {"a": {"u": S}}})
    messages = (schema(key="u", fields=NUMBER), said, row(1, u=S), said)
    assert codes(*messages) == []


def test_a_bookmark_of_another_unit_that_is_ahead_is_told():
    assert by(NUMBER, MS, ..., layout=lambda _value: {"u": S + 100}) == ["B324"]


def test_the_end_of_time_is_survived():
    odd = [row(1, "9999-12-31T23:59:59Z"), state(a="2024-01-01T00:00:00+02:00")]
    assert "B323" in codes(schema(), *odd)


# --- places that are no bookmarks ---


@pytest.mark.parametrize("name", ["page", "offset", "cursor", "acct_1"])
def test_one_value_under_a_name_of_its_own_is_no_bookmark(name):
    values = {"page": 3, "offset": 20}.get(name, "2024-01-08T00:00:00Z")
    first = [row(n, day(n)) for n in range(1, 9)]
    second = [row(100 + n, day(n)) for n in range(1, 5)]
    said = state({"bookmarks": {"a": {name: values}}})
    assert codes(schema(), *first, said, *second, said) == []


@pytest.mark.parametrize("name", ["since", "last_updated", "max_value"])
def test_one_value_under_the_name_of_a_bookmark_is_one(name):
    said = state({"bookmarks": {"a": {name: day(8)}}})
    assert "B303" in codes(schema(), row(1, day(8)), said, row(2, day(4)), said)


def test_a_position_of_the_taps_own_beside_the_bookmark():
    """What comes again then nobody can tell by the bookmark."""
    rows = [row(n, day(n)) for n in range(1, 5)]
    more = {"bookmarks": {"a": {"at": day(2), "position": "x"}}}
    assert codes(schema(), *rows, state(more)) == []
    assert codes(schema(), *rows, state(a=day(2))) == ["B323"]


@pytest.mark.parametrize("entry", [{"next_page": "x"}, {"offset": {"page": 2}}, {"version": 5, "xmin": 33}])
def test_where_a_table_stood_may_go_from_the_state(entry):
    """A stream that nothing calls incremental."""
    end = {"version": 5, "xmin": None} if "xmin" in entry else {}
    run = [schema(key=None), row(1), state({"bookmarks": {"a": entry}}), row(2), state({"bookmarks": {"a": end}})]
    assert codes(*run) == []


def test_one_place_for_all_streams_says_nothing_of_tables():
    """Rows of a log come again; without a catalog nobody knows that it is one."""
    log = {"bookmarks": {"_binlog": {"log_file": "x.1", "log_pos": 4}}}
    rows = [row(1, n=1), state(log), row(1, n=2), state(log)]
    assert codes(schema(key=None), *rows) == []
    assert codes(schema(key=None), row(1), row(1), state({})) == ["M208"]


# --- values ---


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"anyOf": [{"type": "number", "multipleOf": 0.01}, {"type": "string"}]}, 0.07),
        ({"anyOf": [{"type": "number", "multipleOf": 0.01}, {"type": "string"}]}, 19.99),
        ({"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]}, "b"),
        ({"oneOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "maximum": 0}]}, 5),
        ({"oneOf": [{"type": "array", "contains": {"const": 1}}, {"type": "array", "maxItems": 0}]}, [1]),
        ({"type": "string", "format": "date-time"}, "2016-12-31T23:59:60Z"),
        ({"type": "string", "format": "regex"}, r"\p{L}+(?<n>a)\k<n>(?<=a+)"),
    ],
)
def test_values_that_fit(said, value):
    found = codes(schema(key=None, fields={**FIELDS, "v": said}), row(1, v=value), state({}))
    assert set(found) <= {"C124"}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"anyOf": [{"type": "number", "multipleOf": 0.01}, {"type": "string"}]}, 0.075),
        ({"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]}, "c"),
        ({"type": "string", "format": "date-time"}, "2016-12-31T23:61:60Z"),
    ],
)
def test_values_that_do_not_fit(said, value):
    assert "M205" in codes(schema(key=None, fields={**FIELDS, "v": said}), row(1, v=value), state({}))


def test_words_of_the_config_are_no_secrets_in_rows():
    config = {"api_key_header": "X-Api-Key", "use_token": "default", "password": "correct horse battery"}
    told = [one.code for one in check_messages(lines(schema(key=None), row(1, x="X-Api-Key default")), config=config)]
    assert "M215" not in told
    told = [one.code for one in check_messages(lines(schema(key=None), row(1, x=config["password"])), config=config)]
    assert "M215" in told


# --- runs that go on ---


def test_a_bookmark_that_is_cut_or_looks_back_may_stay_where_nothing_is_new():
    """In the run from the last STATE; a run with new rows moves it."""
    first = [schema(), *(row(n, day(n)) for n in range(1, 9)), state(a=day(6))]
    again = lines(schema(), *(row(n, day(n)) for n in range(6, 9)), state(a=day(6)))
    assert codes(*first, resumed={1: again}) == ["B323"]
    given = {"bookmarks": {"a": {"at": day(6)}}}
    assert codes(schema(), *(row(n, day(n)) for n in range(6, 12)), state(a=day(6)), state=given) == ["B305"]


def test_a_full_table_that_a_resumed_run_empties():
    """It kept its place of the run before, and begins a new version there."""

    def run(version, rows, place):
        said = state({"bookmarks": {"a": {"offset": place}}})
        whole = {"type": "ACTIVATE_VERSION", "stream": "a", "version": version}
        return schema(key=None), *(row(n, version=version) for n in rows), whole, said

    first = run(1, range(1, 6), 5)
    entry = {"tap_stream_id": "a", "stream": "a", "schema": schema()["schema"], "replication_method": "FULL_TABLE"}
    entry["metadata"] = [{"breadcrumb": [], "metadata": {"selected": True}}]
    given = {"catalog": {"streams": [entry]}}
    assert codes(*first, resumed={1: lines(*run(2, range(1, 6), 5))}, **given) == []
    assert "M212" in codes(*first, resumed={1: lines(*run(2, (), 5))}, **given)
    assert "M212" in codes(*first, resumed={1: lines(*run(2, (4, 5), 5))}, **given)


def test_a_bookmark_that_is_null_is_none():
    assert codes(schema(), row(1, day(1)), state({"bookmarks": {"a": {"at": None}}})) == ["B305"]


def chosen_of(streams):
    """The STATEs that runs go on from, of streams of eight rows with a STATE each."""
    check = MessageCheck(Findings(RULES))
    messages, bookmarks = [], {}
    for stream in streams:
        messages.append(schema(stream))
        for n in range(1, 9):
            bookmarks[stream] = {"at": day(n)}
            messages += [row(n, day(n), stream), state({"bookmarks": dict(bookmarks)})]
    check.feed(lines(*messages))
    check.finish()
    chosen = check.states.chosen()
    check.close()
    assert [one.number for one in chosen] == sorted(one.number for one in chosen)
    return chosen


def test_the_middle_of_each_stream_is_gone_on_from():
    chosen = chosen_of("abcd")
    inside = {s: [one.rows[s] for one in chosen if 0 < one.rows.get(s, 0) < 8] for s in "abcd"}
    assert inside == {"a": [1], "b": [4], "c": [1], "d": [4]}  # a has the first STATE, c that of the middle
    assert (chosen[0].number, chosen[-1].number) == (1, 32)
    assert len(chosen_of("abcdefghijkl")) == 8


@pytest.mark.parametrize(("count", "told"), [(10, []), (9, []), (11, ["M227"])])
def test_half_of_the_rows_may_come_again(count, told):
    """Ten keys that come once, and the first ones once more (at the same moment) up to ``count`` times."""
    rows = [row(n, day(1)) for n in range(1, 11)] + [row(1 + n % 10, day(1)) for n in range(count)]
    assert codes(schema(), *rows, state(a=day(1))) == told


def test_data_in_place_of_names_is_told_once_and_costs_no_more_with_each_name():
    rows = [row(n, **{f"new{n}": 1}) for n in range(3000)]
    told = check_messages([schema(key=None, keys=()), *rows, state({})])
    fields = [one for one in told if one.code == "R501"]
    assert len(fields) == 201 and {one.path for one in fields} > {"*"}
    assert sum(one.count for one in fields) == 3000
