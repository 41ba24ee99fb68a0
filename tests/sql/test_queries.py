"""Statements of an author's own: parameters that are bound, columns that are read whole."""

import datetime as dt
from decimal import Decimal

import pytest

import burler
from burler.errors import SqlError


@pytest.fixture
def database(pg, adbc):
    with burler.sql.Database(pg.url, adbc=adbc) as made:
        yield made


def test_values_are_bound_whatever_they_hold(database):
    evil = "x'); drop table t; -- % %s :a $1 \\ \" 😀"
    assert list(database.rows("select :v as v, :v || 'y' as w", {"v": evil})) == [{"v": evil, "w": evil + "y"}]


@pytest.mark.parametrize(
    "kind, value, wanted",
    [
        ("int", 5, 5), ("bigint", 2**62, 2**62), ("numeric", Decimal("1.50"), "1.50"), ("float8", 0.1, 0.1),
        ("boolean", True, True), ("text", "é", "é"), ("date", dt.date(2024, 2, 29), "2024-02-29"), ("text", None, None),
        ("timestamptz", dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2024-01-01T10:00:00"),
        ("bytea", b"\x00\xff", b"\x00\xff"), ("timestamptz", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00"),
    ],
)  # fmt: skip
def test_values_of_many_kinds(database, kind, value, wanted):
    (row,) = database.rows(f"select cast(:v as {kind}) as v", {"v": value})
    got = row["v"]
    if isinstance(got, dt.datetime | dt.date):
        got = got.isoformat()
    if kind == "bytea" and isinstance(got, str):
        import base64

        got = base64.b64decode(got)
    assert str(got)[:19] == str(wanted)[:19]


def test_types_are_found_where_nothing_is_cast(pg, database):
    """As in the docs: ``updated_at >= :since`` with the text of a bookmark."""
    pg.execute("create table t (id int, at timestamptz)", "insert into t values (1, '2024-01-01'), (2, '2025-01-01')")
    asked = "select id from t where at >= :since and id > :least or id = :least"
    assert list(database.rows(asked, {"since": "2024-06-01T00:00:00Z", "least": 0})) == [{"id": 2}]
    assert list(database.rows(asked, {"since": None, "least": 1})) == [{"id": 1}]


def test_columns_that_drivers_lose_something_of_are_read_as_text(database):
    asked = "select '1 day'::interval as i, 1.50::numeric as n, '1.2.3.4'::inet as a, 1.1::real as r, :x::int as x"
    asked = asked.replace(":x::int", "cast(:x as int)").replace("::", "\\:\\:")
    (row,) = database.rows(asked, {"x": 1})
    assert {**row, "r": float(row["r"]), "n": str(row["n"])} == {
        "i": "1 day", "n": "1.50", "a": "1.2.3.4", "r": 1.1, "x": 1
    }  # fmt: skip


def test_double_colons_are_casts_and_percent_signs_stay(database):
    (row,) = database.rows("select '5'::int as a, 5 % 3 as b, 'x%y' like 'x\\%%' as c")
    assert row == {"a": 5, "b": 2, "c": True}


def test_an_order_is_kept(database):
    got = [
        row["i"] for row in database.rows("select i, '1 day'::interval as d from generate_series(1, 999) i order by -i")
    ]
    assert got == list(range(999, 0, -1))


def test_a_semicolon_at_the_end_and_comments_do_no_harm(database):
    assert list(database.rows("select 1 as a, '1 day'::interval as d -- a comment\n ;\n")) == [{"a": 1, "d": "1 day"}]


@pytest.mark.parametrize("end", ["-- a comment", "-- a comment;", "/* one */ -- more\n -- and more ;"])
def test_a_comment_at_the_end_swallows_nothing(database, end):
    assert list(database.rows(f"select 1 as a {end}")) == [{"a": 1}]


def test_a_value_may_be_cast_with_two_colons(database):
    asked = "select :a::text as a, :b::int + 1 as b, '1:2::x' as c, :a::text || 'y' as d"
    assert list(database.rows(asked, {"a": "q", "b": 4})) == [{"a": "q", "b": 5, "c": "1:2::x", "d": "qy"}]


def test_big_rows_behind_many_small_ones_come_in_small_pages(database):
    """A page may not be as many rows as fitted into the one before."""
    asked = "select i, repeat('x', case when i <= 6000 then 1 else 200000 end) as x from generate_series(1, 6400) i"
    sizes = [len(page) if isinstance(page, bytes) else page.nbytes for page in database.query(asked)]
    assert sum(sizes) > 400 * 200_000 and max(sizes) < 5_000_000


def test_a_value_that_is_missing_and_one_too_many(database):
    with pytest.raises(SqlError, match="asks for ':b', and no such value is given"):
        list(database.rows("select :a, :b", {"a": 1}))
    with pytest.raises(SqlError, match="is given 'c', but there is no ':c' in it"):
        list(database.rows("select 1 as a", {"c": 1}))
    with pytest.raises(SqlError, match="':ids' is of type list"):
        list(database.rows("select 1 as a where 1 = any(:ids)", {"ids": [1]}))


def test_two_columns_of_one_name(database):
    with pytest.raises(SqlError, match="two columns the name 'a'"):
        list(database.rows("select 1 as a, 2 as a"))


def test_what_writes_is_refused(pg, database):
    pg.execute(
        "create table t (id int)",
        "create function f() returns int language sql as 'insert into t values (1) returning 1'",
    )
    for statement in (
        "select f() as a",
        "insert into t values (1)",
        "with x as (delete from t returning 1) select * from x",
    ):
        with pytest.raises(SqlError):
            list(database.rows(statement))
    assert pg.ask("select count(*) from t") == [(0,)]


def test_a_statement_that_is_wrong_says_where(database):
    with pytest.raises(SqlError, match=r'query: .* syntax error at or near "selec"'):
        list(database.rows("selec 1"))
    with pytest.raises(SqlError, match="text"):
        list(database.rows(5))


def test_a_value_of_no_type_is_said_to_need_one(database):
    with pytest.raises(SqlError, match=r"could not determine data type.*\n.*cast\(:name as int\)"):
        list(database.rows("select pg_typeof(:w) as w", {"w": 1}))


def test_two_statements_are_refused(database):
    with pytest.raises(SqlError):
        list(database.rows("select 1 as a; select 2 as a"))
