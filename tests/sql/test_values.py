"""Every type of PostgreSQL, value by value, against what PostgreSQL itself says of it."""

import base64
import json
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from shops import rows_of, table_tap

import burler
from burler.testing import run_tap

WHOLE = {  # type -> values as SQL literals; row_to_json is the judge
    "boolean": ["true", "false"],
    "smallint": ["-32768", "0", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "real": ["1.1", "3.4e38", "1e-37", "-0.5", "16777217"],
    "double precision": ["0.1", "1.7976931348623157e308", "5e-324", "123456789.123456789"],
    "numeric": ["0", "1.50", "1" * 100, "0." + "0" * 40 + "1", "-12345678901234567890.123456789012345678901234567890"],
    "numeric(10,2)": ["12.50", "-99999999.99", "0.00"],
    "numeric(38,10)": ["1234567890123456789012345678.0123456789"],
    "numeric(60,30)": ["123456789012345678901234567890.012345678901234567890123456789"],
    "numeric(12,0)": ["999999999999", "-1"],
    "numeric(25,0)": ["9999999999999999999999999"],
    "numeric(5,-2)": ["1234500"],
    "text": ["''", "'x'", "'café ☕ 😀'", "E'tab\\tline\\nquote\"back\\\\slash'", "E'\\u0001'", "repeat('long', 5000)"],
    "varchar(20)": ["'abc'"],
    "char(4)": ["'ab'"],
    "name": ["'a name'"],
    "date": ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"],
    "time": ["'10:11:12.5'", "'00:00'", "'24:00'"],
    "timetz": ["'10:11:12.123456+05:30'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "interval": ["'1 year 2 mons -3 days 04:05:06.789'", "'0'"],
    "inet": ["'192.168.0.1/24'", "'::1'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "tstzrange": ["'[2024-01-01 00:00+00,)'"],
    "money": ["'12.34'"],
    "bit(3)": ["B'101'"],
    "xml": ["'<a>b</a>'"],
    "point": ["'(1.5,2)'"],
    "tsvector": ["'a fat cat'"],
    "pg_lsn": ["'16/B374D848'"],
    "json": [
        """'{"b": 1.10, "a": [12345678901234567890.5, null]}'""",
        "'\n [1,\n 2]\n'",
        "'null'",
        "' null '",
        "'\"x\"'",
        "'5'",
    ],
    "jsonb": ["""'{"b": {"c": 1e400}, "a": [true, "é\\n"]}'""", "'[]'", "'0.10'"],
    "integer[]": ["'{}'", "'{1,NULL,3}'", "'[-1:0]={1,2}'"],
    "smallint[]": ["'{1}'", "'{-32768,NULL,32767}'"],
    "bigint[]": ["'{9223372036854775807}'", "'{NULL,NULL}'"],
    "double precision[]": ["'{0.1,1e300,-0.5,NULL}'"],
    "real[]": ["'{1.1}'"],
    "varchar(3)[]": ["'{abc,\"\",NULL}'"],
    "text[]": ["""'{"a b","c\\"d",NULL}'""", "'{}'"],
    "numeric[]": ["'{1.50,12345678901234567890.123}'"],
    "boolean[]": ["'{t,f}'"],
    "uuid[]": ["'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"],
    "jsonb[]": ["""array['{"a": 1.0}'::jsonb]"""],
    "integer[][]": ["'{{1,2},{3,NULL}}'", "'{}'"],
}
"""Judged by row_to_json, which has all digits and PostgreSQL's own text."""


def read(out):
    return json.loads(out, parse_float=Decimal, parse_int=Decimal)


def as_judged(value):
    """What Python's reading of the two texts makes no difference of: numbers count by their value."""
    if isinstance(value, dict):
        return {key: as_judged(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_judged(one) for one in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return Decimal(str(value))


@pytest.mark.usefixtures("exact")
def test_types_come_out_as_postgres_writes_them(pg, adbc):
    """A table for each type, so that one which PostgreSQL has to make JSON of says nothing of the others."""
    tables = {kind: f"t{i}" for i, kind in enumerate(WHOLE)}
    for kind, table in tables.items():
        rows = ", ".join(f"({i}, {value})" for i, value in enumerate([*WHOLE[kind], "null"]))
        pg.execute(f"create table {table} (id int, v {kind})", f"insert into {table} values {rows}")
    out = run_tap(table_tap(pg.url, adbc=adbc))
    assert not out.result.errors
    for kind, table in tables.items():
        got = {row["id"]: row["v"] for row in out.records(f"public.{table}")}
        judge = dict(pg.ask(f"select id, row_to_json({table})::text from {table}"))
        assert len(got) == len(WHOLE[kind]) + 1
        for number, text in judge.items():
            wanted = as_judged(read(text)["v"])
            if kind == "numeric" and wanted is not None:
                wanted = pg.ask(f"select v::text from {table} where id = {number}")[0][0]  # all digits, as text
            assert as_judged(got[number]) == wanted, (kind, number)


def one_value(pg, kind, value, **more):
    pg.execute("drop table if exists t", f"create table t (v {kind})", f"insert into t values ({value})")
    return rows_of(pg.url, "public.t", **more)[0]["v"]


def error_of(pg, kind, value, **more):
    pg.execute("drop table if exists t", f"create table t (v {kind})", f"insert into t values ({value})")
    out = run_tap(table_tap(pg.url, **more))
    (error,) = out.result.errors.values()
    assert out.records("public.t") == []
    return str(error)


def test_times_with_a_zone_come_in_utc(pg, adbc):
    assert one_value(pg, "timestamptz", "'2024-05-01 12:00:00.000001+02'", adbc=adbc) == "2024-05-01T10:00:00.000001Z"
    assert one_value(pg, "timestamptz", "'2024-05-01 12:00+02'", adbc=adbc) == "2024-05-01T10:00:00Z"
    assert one_value(pg, "timestamptz", "'0001-01-01 00:00+00'", adbc=adbc) == "0001-01-01T00:00:00Z"
    assert one_value(pg, "timestamptz", "'9999-12-31 23:59:59.999999+00'", adbc=adbc) == "9999-12-31T23:59:59.999999Z"


def test_times_without_a_zone_are_taken_as_utc_with_one_warning_a_column(pg, adbc, caplog):
    pg.execute("create table t (a timestamp, b timestamp(0), c timestamptz)")
    pg.execute("insert into t values ('2024-05-01 12:00:00.5', '2024-05-01 12:00', null)")
    tap = table_tap(pg.url, adbc=adbc)
    assert run_tap(tap).records("public.t") == [
        {"a": "2024-05-01T12:00:00.500000Z", "b": "2024-05-01T12:00:00Z", "c": None}
    ]
    said = [record.getMessage() for record in caplog.records if "no time zone" in record.getMessage()]
    assert len(said) == 2
    assert "'public.t': column 'a' (timestamp without time zone)" in said[0]
    assert "column 'b' (timestamp(0) without time zone)" in said[1]


def test_a_tap_that_runs_for_ever_warns_of_a_column_once(pg, caplog):
    pg.execute("create table t (a timestamp)")
    shared = burler.sql.Database(pg.url)
    tap = burler.tap("tap-shop")
    tap.client(lambda: shared)

    @tap.sync("t", schema={"properties": {"a": {"type": ["null", "string"], "format": "date-time"}}})
    def rows(client, stream):
        return client.pages(stream)

    for _ in range(3):
        assert not run_tap(tap).result.errors
    assert len([record for record in caplog.records if "no time zone" in record.getMessage()]) == 1


def test_who_knows_that_naive_times_are_utc_is_not_warned(pg, caplog):
    assert one_value(pg, "timestamp", "'2024-05-01'", database={"naive_times": "utc"}) == "2024-05-01T00:00:00Z"
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.usefixtures("values_in_logs")
@pytest.mark.parametrize(
    "kind, value",
    [
        ("timestamptz", "'infinity'"),
        ("timestamptz", "'-infinity'"),
        ("timestamp", "'infinity'"),
        ("date", "'infinity'"),
        ("date", "'-infinity'"),
    ],
)
def test_infinite_times_are_refused_by_their_name(pg, adbc, kind, value):
    said = error_of(pg, kind, value, adbc=adbc)
    assert value.strip("'") in said and "'v'" in said


def test_infinite_times_beside_others_do_not_change_them(pg, adbc):
    pg.execute("create table t (id int primary key, v timestamptz, d date)")
    pg.execute("insert into t values (1, '2024-05-01 00:00:00.25+00', '2024-05-01'), (2, 'infinity', '-infinity')")
    pg.execute("insert into t values (3, null, null)")
    out = run_tap(table_tap(pg.url, adbc=adbc), {"on_bad_record": "null"})
    assert not out.result.errors
    assert out.records("public.t") == [
        {"id": 1, "v": "2024-05-01T00:00:00.250000Z", "d": "2024-05-01"},
        {"id": 2, "v": None, "d": None},
        {"id": 3, "v": None, "d": None},
    ]


@pytest.mark.parametrize(
    "kind, value",
    [("timestamptz", "'0044-03-15 BC'"), ("date", "'0044-03-15 BC'"), ("date", "'10000-01-01'"),
     ("timestamptz", "'10000-01-02 00:00+00'"), ("timestamp", "'290000-01-01'")],
)  # fmt: skip
def test_times_beyond_the_calendar_are_refused(pg, adbc, kind, value):
    assert "'v'" in error_of(pg, kind, value, adbc=adbc)


@pytest.mark.parametrize("kind", ["numeric", "numeric(10,2)", "double precision", "real"])
def test_nan_is_refused_or_null_as_the_operator_says(pg, adbc, kind):
    said = error_of(pg, kind, "'NaN'", adbc=adbc)
    assert "NaN" in said or "nan" in said
    assert one_value(pg, kind, "'NaN'", adbc=adbc, config={"on_nan": "null"}) is None


@pytest.mark.parametrize("kind", ["numeric", "double precision"])
@pytest.mark.parametrize("value", ["'Infinity'", "'-Infinity'"])
def test_infinite_numbers_are_no_numbers(pg, adbc, kind, value):
    assert "inf" in error_of(pg, kind, value, adbc=adbc).lower()
    assert one_value(pg, kind, value, adbc=adbc, config={"on_nan": "null"}) is None


@pytest.mark.usefixtures("exact")
def test_numbers_beside_a_nan_keep_their_digits(pg, adbc):
    pg.execute("create table t (id int primary key, v numeric(10,2))")
    pg.execute("insert into t values (1, 1.50), (2, 'NaN'), (3, null)")
    got = rows_of(pg.url, "public.t", adbc=adbc, config={"on_nan": "null"})
    assert [str(row["v"]) for row in got] == ["1.50", "None", "None"]


@pytest.mark.parametrize("data", [b"", b"\x00\xff", bytes(range(256)) * 3])
def test_bytes_come_as_base64(pg, adbc, data):
    assert one_value(pg, "bytea", f"'\\x{data.hex()}'", adbc=adbc) == base64.b64encode(data).decode()


@pytest.mark.usefixtures("exact")
def test_json_goes_out_as_json(pg, adbc):
    pg.execute("create table t (id int, v jsonb)")
    pg.execute("""insert into t values (1, '{"big": 123456789012345678901234567890.123456789, "n": null}')""")
    (row,) = rows_of(pg.url, "public.t", adbc=adbc)
    assert row["v"] == {"big": Decimal("123456789012345678901234567890.123456789"), "n": None}


def test_json_is_held_against_a_schema_that_says_more_of_it(pg, adbc):
    pg.execute("create table t (id int, v jsonb)", """insert into t values (1, '{"a": 1.50, "b": 2}'), (2, '[]')""")
    tap = burler.tap("tap-shop")
    tap.client(lambda: burler.sql.Database(pg.url, adbc=adbc))
    fields = {"id": {"type": "integer"}, "v": {"type": "object", "properties": {"a": {"type": "number"}}}}

    @tap.sync("t", schema={"properties": fields})
    def rows(client, stream):
        return client.pages(stream)

    out = run_tap(tap, {"on_bad_record": "skip"})
    assert out.records("t") == [{"id": 1, "v": {"a": 1.5}}]


def test_json_text_that_no_reader_takes_is_refused(pg, adbc):
    assert "surrogate" in error_of(pg, "json", """'{"a": "\\ud800"}'""", adbc=adbc)


def test_enums_domains_and_composites(pg, adbc):
    pg.execute("create type mood as enum ('sad', 'so so')", "create type pair as (a int, b text)")
    pg.execute("create domain positive as int check (value > 0)", "create extension if not exists hstore")
    pg.execute("create table t (m mood, p positive, c pair, h hstore, o oid, ms mood[])")
    pg.execute("""insert into t values ('so so', 5, (1, 'x y'), 'a=>1', 4294967295, '{sad}')""")
    assert rows_of(pg.url, "public.t", adbc=adbc) == [
        {"m": "so so", "p": 5, "c": '(1,"x y")', "h": '"a"=>"1"', "o": 4294967295, "ms": ["sad"]}
    ]


def test_an_array_of_other_dimensions_than_declared_is_refused_not_flattened(pg, adbc):
    said = error_of(pg, "integer[]", "'{{1,2},{3,4}}'", adbc=adbc)
    assert "'v" in said


def test_the_servers_own_zone_and_formats_make_no_difference(pg, adbc):
    """The server of these tests is in New York; a user may have formats of his own as well."""
    pg.execute("alter role burler set datestyle = 'German'", "alter role burler set intervalstyle = 'iso_8601'")
    pg.execute("alter role burler set bytea_output = 'escape'")
    try:
        pg.execute("create table t (a timestamptz, i interval, r tstzrange, x timestamptz[], b bytea[], d daterange)")
        pg.execute(
            "insert into t values ('2024-05-01 00:00+00', '1 day', '[2024-05-01 00:00+00,)', "
            "array['2024-05-01 00:00+00'::timestamptz], array['\\x00ff'::bytea], '[2024-05-13,)')"
        )
        assert rows_of(pg.url, "public.t", adbc=adbc) == [
            {
                "a": "2024-05-01T00:00:00Z",
                "i": "1 day",
                "r": '["2024-05-01 00:00:00+00",)',
                "x": ["2024-05-01T00:00:00Z"],
                "b": ["\\x00ff"],
                "d": "[2024-05-13,)",
            }
        ]
    finally:
        pg.execute("alter role burler reset all")


def test_schemas_say_what_types_hold(pg):
    pg.execute(
        "create table t (i int not null, s smallint, n numeric(10,2), f numeric, z timestamptz, a text[], j json)"
    )
    pg.execute("create table u (b bytea, m int[][], k numeric(4,0), ta timestamp[])")
    with burler.sql.Database(pg.url) as database:
        found = database.discover().to_wire()["streams"]
    assert found[0]["schema"]["properties"] == {
        "i": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
        "s": {"type": ["null", "integer"], "minimum": -(2**15), "maximum": 2**15 - 1},
        "n": {"type": ["null", "number"], "multipleOf": 0.01},
        "f": {"type": ["null", "string"], "format": "singer.decimal"},
        "z": {"type": ["null", "string"], "format": "date-time"},
        "a": {"type": ["null", "array"], "items": {"type": ["null", "string"]}},
        "j": {},
    }
    assert found[1]["schema"]["properties"] == {
        "b": {"type": ["null", "string"], "contentEncoding": "base64"},
        "m": {
            "type": ["null", "array"],
            "items": {
                "type": ["null", "array"],
                "items": {"type": ["null", "integer"], "minimum": -(2**31), "maximum": 2**31 - 1},
            },
        },
        "k": {"type": ["null", "integer"], "minimum": -9999, "maximum": 9999},
        "ta": {"type": ["null", "array"], "items": {"type": ["null", "string"]}},
    }


def test_jsons_null_is_an_empty_cell_in_parquet(pg, tmp_path):
    values = ["'null'", "' null '", "null", """'{"a": [1, null]}'""", "'[]'"]
    rows = ", ".join(f"({i}, {value}, array[{i}])" for i, value in enumerate(values))
    pg.execute("create table t (id int, v json, n int[])", f"insert into t values {rows}")
    storage = {"encoding": {"format": "parquet"}, "storage": {"root": tmp_path.as_uri()}}
    out = run_tap(table_tap(pg.url), {"batch_config": storage})
    (batch,) = [message for message in out.messages if message["type"] == "BATCH"]
    found = pq.read_table(batch["manifest"][0].removeprefix("file://")).to_pylist()
    assert [None if row["v"] is None else json.loads(row["v"]) for row in found] == [
        None,
        None,
        None,
        {"a": [1, None]},
        [],
    ]
