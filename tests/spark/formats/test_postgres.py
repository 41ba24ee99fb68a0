"""Tables in PostgreSQL, judged by its own client."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from decimal import Decimal
from typing import Any

import pytest
from format_samples import BASE, COLUMNS, EVERY, INTEGER, NOON, NUMBER, TEXT, arrow, change, columns, frame, read, row

from burler.errors import ExportError, UsageError
from support.internals import opening


class Database:
    """An empty database and exports to it."""

    def __init__(self, server: Any, name: str) -> None:
        self.server, self.name = server, name
        self.url = f"postgresql://burler@127.0.0.1:{server.port}/{name}"

    def target(self, stream: str = "things", tap: str = "tap-x", **options: str) -> Any:
        from support import postgres

        place = opening.place_of("jdbc", self.url, "", "", tap, stream)
        options = {"password": postgres.PASSWORD, **options}
        target = opening.open_target("jdbc", place, source=f"{tap}/{stream}", options=options, spark=lambda: None)
        target.open()
        return target

    def ask(self, statement: str) -> list[tuple]:
        found: list[tuple] = self.server.ask(statement, self.name)
        return found

    def execute(self, statement: str) -> None:
        self.server.execute(statement, database=self.name)

    def psql(self, statement: str) -> str:
        """What PostgreSQL's own client shows."""
        from support import postgres

        environment = {**os.environ, "PGPASSWORD": postgres.PASSWORD, "PGTZ": "UTC"}
        command = [str(postgres.programs() / "psql"), "-XAt", "-d", self.url, "-c", statement]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def pg(server: Any, database: str) -> Database:
    return Database(server, database)


def test_psql_sees_types_and_values(pg: Database, packages: None) -> None:
    money = {"type": "number", "multipleOf": 0.01}
    inner = {"type": "object", "properties": {"d": money, "f": NUMBER, "s": TEXT}}
    shape = columns(**EVERY, nested={"type": "array", "items": inner})
    nested = [{"d": Decimal("12345678901234567890.12"), "f": 0.1, "s": 'q"\\é'}, None]
    full = {
        "id": 1,
        "at": NOON,
        "amount": Decimal("0.000000001"),
        "share": float("nan"),
        "blob": b"\x00",
        "nested": nested,
    }
    pg.target().publish(arrow([full, row(2, "", share=float("-inf"))], shape), change("replace", shape))
    shown = pg.psql('select id, at, text, amount, share, blob, nested from "tap-x".things order by id')
    first, second = shown.splitlines()
    assert first.startswith(r"1|2024-01-02 12:00:00.123456+00||0.000000001|NaN|\x00|")
    assert first.endswith('[{"d": 12345678901234567890.12, "f": 0.1, "s": "q\\"\\\\é"}, null]')
    assert second == "2|2024-01-02 12:00:00.123456+00|||-Infinity||"
    types = dict(line.split("|") for line in pg.psql(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = '\"tap-x\".things'::regclass and attnum > 0"
    ).splitlines())  # fmt: skip
    assert types == {
        "id": "bigint", "at": "timestamp with time zone", "text": "text", "amount": "numeric(38,9)",
        "share": "double precision", "flag": "boolean", "day": "date", "blob": "bytea", "tags": "jsonb",
        "place": "jsonb", "more": "jsonb", "a.b c": "text", "nested": "jsonb",
    }  # fmt: skip


def test_frames_go_by_copy_from_the_tasks(pg: Database, spark: Any) -> None:
    """More partitions than connections; the merge that follows goes the same way."""
    rows = [row(at, f"row {at}") for at in range(500)]
    target = pg.target(connections="2")
    made = target.publish(frame(spark, rows).repartition(5), change("replace"))
    assert made.rows_written == 500
    target = pg.target(connections="2")
    newer = [row(at, "merged", NOON + dt.timedelta(seconds=1)) for at in range(250, 260)]
    target.publish(frame(spark, newer).repartition(3), change("merge"))
    assert pg.ask(
        "select count(*), count(distinct id), count(*) filter (where text = 'merged') from \"tap-x\".things"
    ) == [(500, 500, 10)]
    target = pg.target()
    assert len(read(target.rows(spark))) == 500


def test_a_task_that_runs_twice_loads_once(pg: Database, spark: Any, monkeypatch: Any) -> None:
    """As a speculative attempt does, or one whose answer was lost."""
    rows = frame(spark, [row(1), row(2)])
    once = type(rows).mapInArrow

    def twice(self: Any, task: Any, *schema: Any, **more: Any) -> Any:
        def attempts(batches: Any) -> Any:
            held = list(batches)
            list(task(iter(held)))
            yield from task(iter(held))

        return once(self, attempts, *schema, **more)

    monkeypatch.setattr(type(rows), "mapInArrow", twice)
    pg.target().publish(rows, change("replace"))
    assert pg.ask('select id from "tap-x".things order by id') == [(1,), (2,)]


def test_no_password_is_ever_shown(pg: Database, spark: Any, caplog: Any) -> None:
    from support import postgres

    target = pg.target()
    assert postgres.PASSWORD not in repr(target) + target.place
    with pytest.raises(ExportError) as caught:
        pg.target(password="wrong-password-42")
    assert "password authentication failed" in str(caught.value)
    assert "wrong-password-42" not in str(caught.value) + caplog.text
    with pytest.raises(UsageError, match="passwort") as refused:
        pg.target(passwort="secret-4711")
    assert "secret-4711" not in str(refused.value)


def test_columns_widen_and_grow(pg: Database, spark: Any) -> None:
    """A column that became wider keeps its values, in the same transaction as the new rows."""
    narrow = columns(id=INTEGER, amount=INTEGER, note=INTEGER)
    pg.target().publish(arrow([{"id": 1, "amount": 2**62, "note": 7}], narrow), change("replace", narrow))
    wide = columns(id=INTEGER, amount={"type": "number", "multipleOf": 0.01}, note=TEXT, new=TEXT)
    given = {"id": 2, "amount": Decimal("0.25"), "note": "n", "new": "x"}
    pg.target().publish(arrow([given], wide), change("append", wide))
    assert pg.ask('select id, amount, note, new from "tap-x".things order by id') == [
        (1, Decimal(2**62), "7", None),
        (2, Decimal("0.25"), "n", "x"),
    ]


def test_replacement_keeps_rights_and_views(pg: Database, spark: Any) -> None:
    pg.target().publish(arrow([row(1, "a")]), change("replace"))
    pg.execute("create role reader_of_things")
    pg.execute('grant select on "tap-x".things to reader_of_things')
    pg.execute('create view seen as select id, text from "tap-x".things')
    other = columns(text=TEXT, id=INTEGER, other=TEXT)
    pg.target().publish(arrow([{"id": 2, "text": "b"}], other), change("replace", other))
    assert pg.ask("select * from seen") == [(2, "b")]
    assert pg.ask("select has_table_privilege('reader_of_things', '\"tap-x\".things', 'select')") == [(True,)]
    assert pg.ask("select count(*) from information_schema.columns where table_name = 'things'") == [(3,)]
    pg.execute("drop owned by reader_of_things")
    pg.execute("drop role reader_of_things")


def test_names_are_kept_and_long_ones_stay_apart(pg: Database, spark: Any) -> None:
    long = ["x" * 70 + end for end in "ab"]
    shape = columns(**{"Id": INTEGER, 'q"% %s': TEXT, "select": TEXT, long[0]: TEXT, long[1]: TEXT})
    given = {"Id": 1, 'q"% %s': "1", "select": "2", long[0]: "3", long[1]: "4"}
    for kind in ("replace", "append", "merge"):
        made = change(kind, shape, **({"keys": ("Id",), "newer": ("select",)} if kind == "merge" else {}))
        target = pg.target('Odd "things" %s', tap="Tap % x")
        target.publish(arrow([{**given, "Id": 1 if kind == "replace" else 2}], shape), made)
    target = pg.target('Odd "things" %s', tap="Tap % x")
    assert read(target.rows(spark), "Id") == [given, {**given, "Id": 2}]
    assert pg.ask('select "Id", "q""% %s" from "Tap % x"."Odd ""things"" %s" order by 1') == [(1, "1"), (2, "1")]


def test_texts_are_compared_by_bytes(pg: Database, spark: Any) -> None:
    """Like Spark, whatever the database's language says of "a" and "B"."""
    shape = columns(id=INTEGER, at=TEXT)
    pg.target().publish(arrow([{"id": 1, "at": "a"}], shape), change("replace", shape))
    pg.execute('alter table "tap-x".things alter at type text collate "en_US.utf8"' if pg.ask(
        "select 1 from pg_collation where collname = 'en_US.utf8'") else 'select 1')  # fmt: skip
    pg.target().publish(arrow([{"id": 1, "at": "B"}], shape), change("merge", shape))
    assert pg.ask('select at from "tap-x".things') == [("a",)]


def test_a_nul_character_is_told_with_its_column(pg: Database, spark: Any) -> None:
    nested = columns(id=INTEGER, tags={"type": "array", "items": TEXT})
    for rows, shape, name in (([row(1, "a\0b")], COLUMNS, "text"), ([{"id": 1, "tags": ["\0"]}], nested, "tags")):
        for given in (arrow(rows, shape), frame(spark, rows, shape)):
            with pytest.raises(ExportError, match=f"column '{name}' holds a text with the character NUL"):
                pg.target().publish(given, change("replace", shape))
    kept = [{"id": 1, "tags": ["\\u0000"]}]  # six characters, and none of them NUL
    pg.target().publish(arrow(kept, nested), change("replace", nested))
    assert read(pg.target().rows(spark)) == kept


def test_table_that_somebody_dropped_is_made_anew(pg: Database, spark: Any) -> None:
    pg.target().publish(arrow([row(1)]), change("replace", numbers={"n": 1}))
    pg.execute('drop table "tap-x".things')
    target = pg.target()
    state = target.open()
    assert (state.schema, dict(state.numbers)) == (None, {})
    target.publish(arrow([row(2)]), change("replace", numbers={"n": 2}))
    assert pg.ask('select id from "tap-x".things') == [(2,)]


def test_a_table_that_lost_a_column_is_made_anew(pg: Database, spark: Any) -> None:
    """Else the column would come back without its values."""
    pg.target().publish(arrow([row(1, "a")]), change("replace", numbers={"n": 1}))
    pg.execute('alter table "tap-x".things drop column text')
    target = pg.target()
    state = target.open()
    assert (state.schema, dict(state.numbers)) == (None, {})
    target.publish(arrow([row(1, "a")]), change("replace", numbers={"n": 2}))
    assert pg.ask('select id, text from "tap-x".things') == [(1, "a")]


def test_streams_that_are_called_as_our_own_tables(pg: Database, packages: None) -> None:
    for name in ("burler_exports", "_burler_stage_0123456789abcdef", "_burler_stage_0123456789abcdef_tasks"):
        with pytest.raises(ExportError, match="has tables of its own by this name"):
            pg.target(name)
    for name in ("_burler_stage_x", "_burler_stage_x_tasks"):
        pg.target(name).publish(arrow([row(1)]), change("replace"))
    pg.target()
    assert pg.ask('select count(*) from "tap-x"._burler_stage_x, "tap-x"._burler_stage_x_tasks') == [(1,)]


def test_a_view_in_the_way_of_a_new_type_is_named(pg: Database, spark: Any) -> None:
    pg.target().publish(arrow([row(1)]), change("replace"))
    pg.execute('create view seen as select at from "tap-x".things')
    changed = columns(**{**BASE, "at": TEXT})
    with pytest.raises(ExportError, match="A view, or something else, is made on a column"):
        pg.target().publish(arrow([{**row(1), "at": "x"}], changed), change("replace", changed))


def test_tables_of_the_user_stay_untouched(pg: Database, packages: None) -> None:
    pg.execute('create schema "tap-x"')
    pg.execute('create table "tap-x".things (mine int)')
    with pytest.raises(ExportError, match="untouched"):
        pg.target()
    assert pg.target(schema="elsewhere").place.endswith('"elsewhere"."things"')


def test_a_user_who_may_not(pg: Database, packages: None) -> None:
    pg.execute("create role weak login password 'weak-password-1'")
    with pytest.raises(ExportError, match="permission denied") as caught:
        pg.target(user="weak", password="weak-password-1")
    assert "may make schemas and tables" in str(caught.value)
    pg.execute("drop role weak")


def test_nobody_answers(packages: None) -> None:
    place = opening.place_of("jdbc", "postgresql://127.0.0.1:1/db", "", "", "t", "s")
    target = opening.open_target("jdbc", place, source="t/s", options={}, spark=lambda: None)
    with pytest.raises(ExportError, match="connection"):
        target.open()
