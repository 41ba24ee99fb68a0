"""Every value stands in the file as a RECORD would have it."""

import pytest
from taking import batched, by_value, expanded, messages

import burler
from burler.testing import run_tap
from tap_copy import tap

COLUMNS = {
    "b": ("bool", ["true", "false", "null"]),
    "i2": ("int2", ["32767", "-32768", "null"]),
    "i4": ("int4", ["2147483647", "-2147483648", "null"]),
    "i8": ("int8", ["9223372036854775807", "-9223372036854775808", "null"]),
    "f4": ("float4", ["1.1", "-3.4028235e38", "null"]),
    "f8": ("float8", ["0.1", "1.7976931348623157e308", "5e-324"]),
    "n": ("numeric", ["123456789012345678901234567890.000000000000000000001", "-0.10", "null"]),
    "n2": ("numeric(20, 5)", ["123456789012345.67890", "-0.00001", "null"]),
    "n0": ("numeric(30)", ["123456789012345678901234567890", "-1", "null"]),
    "t": ("text", ["''", "null", "E'a,\"b\"\\n\\r\\n\\t\\\\.;'"]),
    "t2": ("text", ["'null'", "'\\.'", "'\\N'"]),
    "t3": ("text", ["' '", "'été 日本 🎈'", "repeat('x', 3000)"]),
    "vc": ("varchar(10)", ["'1'", "'true'", "null"]),
    "ch": ("char(5)", ["'ab'", "''", "null"]),
    "d": ("date", ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"]),
    "ts": ("timestamp", ["'2024-01-01 10:00:00'", "'0001-01-01 00:00:00.000001'", "null"]),
    "tz": ("timestamptz", ["'2024-07-01 10:00:00.5+02'", "'9999-12-31 23:59:59.999999+00'", "'2024-01-01 00:00+00'"]),
    "tm": ("time", ["'10:00:00.25'", "'00:00:00'", "null"]),
    "iv": ("interval", ["'1 year 2 days 03:04:05'", "'-1 day'", "null"]),
    "u": ("uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "null", "null"]),
    "j": ("json", ["'{\"a\":  [1, \"x\\\\u00e9\"],\n \"b\": 1.50}'", "'null'", "'\"text\"'"]),
    "jb": ("jsonb", ["'{\"a\": {\"b\": [null, true]}}'", "'7'", "null"]),
    "jb2": ("jsonb", ["'[]'", "'\"\"'", "'12345678901234567890.5'"]),
    "by": ("bytea", ["'\\x00ff6869'", "''", "decode(repeat('ab', 200), 'hex')"]),
    "ai": ("int[]", ["'{1,NULL,3}'", "'{}'", "null"]),
    "at": ("text[]", ["array['a,b', '\"', 'NULL', '', null]", "'{}'", "null"]),
    "ab": ("bool[]", ["'{t,f,NULL}'", "'{}'", "null"]),
    "an": ("numeric(5, 2)[]", ["'{1.50,NULL}'", "'{{1,2},{3,4}}'", "null"]),
    "ip": ("inet", ["'10.0.0.1'", "'10.1.0.0/16'", "'::1'"]),
    "mac": ("macaddr", ["'08:00:2b:01:02:03'", "null", "null"]),
    "cash": ("cents", ["1.25", "-7", "null"]),
    "mood": ("mood", ["'sad'", "'so, so'", "null"]),
    'odd "name", é%s': ("text", ["'a'", "null", "'{}'"]),
}  # fmt: skip
MOMENTS = ("ts", "tz")


@pytest.fixture
def hostile(base):
    """A table with three rows of hard values of many types."""
    names = [name.replace('"', '""') for name in COLUMNS]
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in zip(names, COLUMNS.values(), strict=True))
    rows = [", ".join([str(i), *(values[i] for _, values in COLUMNS.values())]) for i in range(3)]
    base.do(
        "create domain cents as numeric(10, 2)",
        "create type mood as enum ('sad', 'so, so')",
        f"create table hostile (id int primary key, {columns})",
        *(f"insert into hostile values ({row})" for row in rows),
    )
    return base


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_file_holds_what_the_records_of_the_same_tap_hold(hostile, compression):
    run = batched(hostile, compression=compression)
    assert run.result.exit_code == 0
    (message,) = messages(run, "BATCH")
    assert message["format"]["name"] == "csv" and message["size"] == 3
    assert message["manifest"][0].endswith(".csv.gz" if compression == "gzip" else ".csv")
    files, records = expanded(run, "public.hostile"), run_tap(tap, hostile.config).records("public.hostile")
    assert len(records) == 3
    for from_file, record in zip(by_value(files, MOMENTS), by_value(records, MOMENTS), strict=True):
        for name in record:
            assert from_file[name] == record[name] and type(from_file[name]) is type(record[name]), name


def test_the_records_are_those_that_burler_sql_gives(hostile):
    database = burler.tap("tap-sql", config_spec={"url": "", "folder": ""})

    @database.client
    def client(config):
        return burler.sql.Database(config["url"], naive_times="utc", adbc=False)

    @database.discover
    def discover(client):
        return client.discover(tables="hostile")

    @database.sync("*")
    def rows(client, stream):
        return client.pages(stream)

    hostile.do("update hostile set an = '{2.25}' where an::text like '{{%'")  # burler.sql says of what a list is
    theirs = run_tap(database, {"url": hostile.config["database_url"], "folder": ""}).records("public.hostile")
    mine = run_tap(tap, hostile.config).records("public.hostile")
    assert len(theirs) == len(mine) == 3
    for one, other in zip(by_value(theirs, MOMENTS), by_value(mine, MOMENTS), strict=True):
        for name in one:
            if (
                name in ("f4", "f8", "cash") and one[name] is not None
            ):  # other digits; a domain, which it takes for text
                assert float(one[name]) == float(other[name]), name
            else:
                assert one[name] == other[name], name


def test_a_column_alone_keeps_its_nulls(base):
    base.do("create table one (t text)", "insert into one values ('a'), (null), (''), ('\\N')")
    run = batched(base)
    assert messages(run, "BATCH")[0]["format"]["options"]["null"] == "\\N"
    assert messages(run, "BATCH")[0]["size"] == 4
    rows = [{"t": "a"}, {"t": None}, {"t": ""}, {"t": "\\N"}]
    assert expanded(run, "public.one") == rows == run_tap(tap, base.config).records("public.one")


REFUSED = {
    "float8": ("'NaN'", "'-Infinity'"),
    "float4": ("'Infinity'",),
    "numeric": ("'NaN'",),
    "numeric(5, 2)": ("'NaN'",),
    "date": ("'infinity'", "'0044-03-15 BC'", "'10000-01-01'"),
    "timestamp": ("'infinity'", "'0044-03-15 BC'"),
    "timestamptz": ("'-infinity'", "'294276-12-31 23:59:59+00'"),
    "int[]": ("'{{1,2},{3,4}}'",),
}


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in REFUSED.items() for value in values])
@pytest.mark.parametrize("batch", [True, False])
def test_a_value_that_the_schema_does_not_know_ends_the_stream(base, caplog, kind, value, batch):
    base.do(
        f'create table t (id int primary key, "the col\'s" {kind})',
        "insert into t values (1, null)",
        f"insert into t values (2, {value})",
    )
    run = batched(base) if batch else run_tap(tap, base.config)
    assert run.result.exit_code == 1
    assert not messages(run, "BATCH") and not messages(run, "RECORD")
    assert 'column "the col\'s": ' in str(run.result.errors["public.t"])
    assert "is no value of its JSON Schema" in str(run.result.errors["public.t"])
    assert base.files() == []
