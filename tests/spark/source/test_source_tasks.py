"""Tasks: what travels to an executor, and the rows that it becomes there; no Spark is needed for that."""

from __future__ import annotations

import datetime as dt
import json
import logging
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import apps
import pytest
from fake_taps import GOOD, asked, write_tap
from pyspark.sql.pandas.types import to_arrow_schema

from burler.errors import BurlerError, CatalogError, StreamError, UsageError
from burler.spark import reference
from burler.testing import canary, run_tap
from support.internals import column_values, pushdown, source_options, source_planning, source_tasks

APP = reference(apps.tap)


def found(**options):
    return source_planning.find_stream(
        source_options.parse(
            {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
        )
    )


def tasks_of(**options):
    """As they arrive at an executor."""
    return [pickle.loads(pickle.dumps(task)) for task in found(**options).tasks()]


def rows_of(**options):
    batches = [batch for task in tasks_of(**options) for batch in source_tasks.run_task(task)]
    return [row for batch in batches for row in batch.to_pylist()]


def expected(row):
    """A row of ``apps`` by the table of column types."""
    text = (
        row["anything"]
        if isinstance(row["anything"], str | None)
        else json.dumps(row["anything"], separators=(",", ":"))
    )
    return {
        **row,
        "price": Decimal(str(row["price"])),
        "at": None if row["at"] is None else column_values.parse_moment(row["at"])[0],
        "counts": list(row["counts"].items()),
        "anything": text,
    }


# ---- apps --------------------------------------------------------------------------------------------------------


def test_an_apps_rows_are_those_of_a_run():
    ran = run_tap(apps.tap, {"rows": 3000}, select="everything").records("everything")
    assert [expected(row) for row in ran] == rows_of(app=APP, stream="everything", config={"rows": 3000})


def test_every_batch_has_the_schema_that_spark_makes_of_the_columns():
    for stream in ("everything", "parts"):
        one = found(app=APP, stream=stream)
        wanted = to_arrow_schema(one.declared.spark(), timezone="UTC")
        batches = [batch for task in one.tasks() for batch in source_tasks.run_task(task)]
        assert batches
        assert all(batch.schema.equals(wanted, check_metadata=True) for batch in batches)


def test_partitions_are_tasks_and_a_limit_is_of_all_of_them():
    tasks = tasks_of(app=APP, stream="parts")
    assert [work.part.partition for task in tasks for work in task.work] == [{"account": letter} for letter in "abcd"]
    assert [sum(batch.num_rows for batch in source_tasks.run_task(task)) for task in tasks] == [8] * 4
    (limited,) = tasks_of(app=APP, stream="parts", limit="10")
    assert [row["account"] for batch in source_tasks.run_task(limited) for row in batch.to_pylist()] == ["a"] * 8 + [
        "b"
    ] * 2
    (one,) = tasks_of(app=APP, stream="parts", partitions="false")
    assert sum(batch.num_rows for batch in source_tasks.run_task(one)) == 32


def test_fields_are_selection_and_columns():
    rows = rows_of(app=APP, stream="everything", fields="name,address.city")
    assert list(rows[0]) == ["id", "name", "address"]
    assert rows[1]["address"] == {"city": "Bonn"}


def test_a_state_is_taken_along():
    state = {"bookmarks": {"parts": {"partitions": {'{"account":"b"}': {"at": "2024-05-01T00:00:08.500000Z"}}}}}
    rows = rows_of(app=APP, stream="parts", state=state)
    assert [row["id"] for row in rows if row["account"] == "b"] == [8, 9]
    assert len([row for row in rows if row["account"] == "a"]) == 8


def test_a_substream_comes_without_its_parent():
    assert rows_of(app=APP, stream="children") == [{"id": p * 10 + n, "parent": p} for p in range(3) for n in range(2)]


def test_a_limit_ends_a_source_that_would_go_on():
    (task,) = tasks_of(app=APP, stream="slow", limit="15000")
    rows = source_tasks.run_task(task)
    assert sum(batch.num_rows for batch in rows) == 15_000
    assert not [thread for thread in threading.enumerate() if thread.name == "burler-extract"]


def test_a_reader_that_goes_away_ends_the_run():
    (task,) = tasks_of(app=APP, stream="slow")
    rows = source_tasks.run_task(task)
    next(rows)
    rows.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "burler-extract"]


@pytest.mark.parametrize(
    ("stream", "fail", "said"),
    [
        ("everything", "value", ["stream 'everything'", "row", "id", "no integer"]),
        ("everything", "raise", ["stream 'everything'", "apps.py:", "ValueError: the source said no to ***"]),
        ("parts", "c", ["stream 'parts'", "apps.py:", "this account is closed", 'partition {"account":"c"}']),
    ],
    ids=["value", "raise", "partition"],
)
def test_errors_of_an_app_are_one_line_with_their_place(stream, fail, said):
    config = {"fail": fail, "password": canary("source")}
    with pytest.raises(StreamError) as told:
        rows_of(app=APP, stream=stream, config=config)
    for part in said:
        assert part in str(told.value)
    assert len(str(told.value).splitlines()) == 1


def test_configs_appear_in_no_repr(tmp_path):
    config = {"password": canary("config")}
    for options in ({"app": APP, "stream": "parts"}, {"exec": write_tap(tmp_path), "stream": "users"}):
        one = found(**options, config=config, state={"token": canary("state")})
        assert "canary" not in repr(one) + repr(one.tasks()) + repr(one.options)


def test_environment_variables_win_over_the_config(monkeypatch):
    monkeypatch.setenv("TAP_APPS_ROWS", "3")
    assert len(rows_of(app=APP, stream="everything", config={"rows": 7})) == 3
    monkeypatch.setenv("TAP_APPS_ROWS", "many")
    with pytest.raises(UsageError, match="TAP_APPS_ROWS"):
        found(app=APP, stream="everything")


def test_a_config_file_is_read_on_the_driver(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"rows": 4}')
    tasks = tasks_of(app=APP, stream="everything", config=str(path))
    path.unlink()
    assert sum(batch.num_rows for task in tasks for batch in source_tasks.run_task(task)) == 4


# ---- commands -----------------------------------------------------------------------------------------------------


def test_a_commands_rows_and_what_it_was_given(tmp_path):
    (task,) = tasks_of(
        exec=write_tap(tmp_path), stream="users", config={"rows": 3}, state={"a": 1}, fields="name,anything"
    )
    outcome = source_tasks.Outcome()
    rows = [row for batch in source_tasks.run_task(task, outcome) for row in batch.to_pylist()]
    assert rows == [
        {"id": 0, "name": "n0", "anything": "text"},
        {"id": 1, "name": "n1", "anything": "[1]"},
        {"id": 2, "name": "n2", "anything": "text"},
    ]
    assert (outcome.rows, outcome.state) == (3, {"bookmarks": {"users": {"id": 4}}, "was": {"a": 1}})
    given = asked(tmp_path)
    assert (given["config"], given["state"], set(given["modes"])) == ({"rows": 3}, {"a": 1}, {"0o600"})
    assert [stream["stream"] for stream in given["catalogs"][0]["streams"] if stream.get("selected")] == ["users"]
    assert not any(Path(word).exists() for word in given["argv"] if not word.startswith("--"))
    (again,) = found(exec=write_tap(tmp_path), stream="users").tasks({"b": 2})
    outcome = source_tasks.Outcome()
    assert list(source_tasks.run_task(again, outcome))
    assert outcome.state["was"] == {"b": 2}


def test_a_tap_of_the_first_years_gets_properties(tmp_path):
    (task,) = tasks_of(exec=write_tap(tmp_path, flags=("--properties",)), stream="users")
    assert sum(batch.num_rows for batch in source_tasks.run_task(task)) == 5
    assert asked(tmp_path)["catalogs"][0]["streams"][1]["schema"]["selected"] is True


def test_a_limit_ends_the_tap(tmp_path):
    body = "schema()\nn = 0\nwhile True:\n    n += 1\n    record(id=n)\n"
    (task,) = tasks_of(exec=write_tap(tmp_path, body), stream="users", limit="7", fields="name")
    assert [row["id"] for batch in source_tasks.run_task(task) for row in batch.to_pylist()] == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(ProcessLookupError):
        __import__("os").kill(asked(tmp_path)["pid"], 0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "schema()\nrecord(id=1)\nsys.exit('no rights for ' + CONFIG['password'])",
            "command 'tap_fake.py' ended with code 1 after 1 row(s). It said last: no rights for ***",
        ),
        ("os.kill(os.getpid(), 9)", "ended with code 137"),
        ("print('hello')", "printed what is no Singer message: line 1: it is no JSON"),
        ("", "ended well and sent no SCHEMA of the stream"),
        ("schema('others')\nrecord('others', id=1)", "ended well and sent no SCHEMA of the stream"),
        ("schema()\nrecord(id='x')", "row 1 (id=x): field 'id': a value can't be held exactly"),
        ('schema()\nrecord(id=1)\nprint(\'{"type": "RECORD", "stream\', end=\'\')', "line 3: it is no JSON"),
        (
            "schema(schema={'properties': {**SCHEMA, 'new': {}}})".replace("SCHEMA", "{}"),
            "fields that its discovery had",
        ),
    ],
    ids=["exit", "killed", "garbage", "nothing", "other-stream", "value", "broken-off", "drift"],
)
def test_broken_taps_are_told_in_one_line(tmp_path, body, said):
    (task,) = tasks_of(exec=write_tap(tmp_path, body), stream="users", config={"password": canary("tap")})
    with pytest.raises(StreamError) as told:
        list(source_tasks.run_task(task))
    assert str(told.value).startswith("stream 'users': ")
    assert said in str(told.value)
    assert len(str(told.value).splitlines()) == 1


def test_a_tap_with_nothing_new_may_send_a_state_alone(tmp_path):
    command = write_tap(tmp_path, "write(type='STATE', value=STATE)")
    (task,) = tasks_of(exec=command, stream="users", state={"bookmarks": {}})
    outcome = source_tasks.Outcome()
    assert list(source_tasks.run_task(task, outcome)) == []
    assert outcome.state == {"bookmarks": {}}


def test_a_given_catalog_stands_in_for_discovery(tmp_path):
    command = write_tap(tmp_path, GOOD, catalog="none")
    with pytest.raises(CatalogError, match="printed no catalog"):
        found(exec=command, stream="users")
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}
    catalog = {"streams": [{"tap_stream_id": "users", "schema": schema, "key_properties": ["id"]}]}
    with pytest.raises(BurlerError, match="fields that its discovery had not: price, at, anything"):
        rows_of(exec=command, stream="users", catalog=catalog)
    rows = rows_of(exec=command, stream="users", catalog=catalog, unknown_fields="drop")
    assert rows == [{"id": str(n), "name": f"n{n}"} for n in range(5)]


def test_our_own_tap_through_its_command_with_batch_on(tmp_path):
    """The rows of RECORDs, of BATCH files of lines and of columns, and of the app itself are the same."""
    repo = tmp_path / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    for n in range(5):
        (repo / "file").write_text(str(n))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"change {n}"], check=True)
    tap = Path(__file__).parents[3] / "examples" / "tap_git"
    command = f"{sys.executable} -m burler run {tap}"
    discover = f"{sys.executable} -m burler discover {tap}"
    catalog = json.loads(
        subprocess.run(
            [*discover.split(), "--config", "/dev/stdin"],
            check=True,
            capture_output=True,
            input=json.dumps({"repo": str(repo)}).encode(),
        ).stdout
    )
    expected = rows_of(app=str(tap), stream="commits", config={"repo": str(repo)})
    assert len(expected) == 5
    for encoding in (None, {"format": "jsonl", "compression": "gzip"}, {"format": "parquet"}):
        storage = {"root": (tmp_path / "batches").as_uri()}
        more = {} if encoding is None else {"batch_config": {"encoding": encoding, "storage": storage}}
        rows = rows_of(exec=command, stream="commits", catalog=catalog, config={"repo": str(repo), **more})
        assert sorted(rows, key=str) == sorted(expected, key=str)


def test_remarks_go_to_the_log(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    body = "schema()\nrecord(id=1, other=2)"
    rows_of(exec=write_tap(tmp_path, body), stream="users")
    assert "field 'other' is in no schema and has no column: left out of 1 row(s)" in caplog.text


# ---- filters ------------------------------------------------------------------------------------------------------


class Filter:
    """As pyspark has them: the name of its class says which one it is."""

    def __init__(self, name, value):
        self.attribute, self.value = (name,), value


EqualTo, In, GreaterThan, LessThan = (
    type(name, (Filter,), {}) for name in ("EqualTo", "In", "GreaterThan", "LessThan")
)
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("filters", "accounts", "start"),
    [
        ([], "abcd", None),
        ([EqualTo("account", "b")], "b", None),
        ([In("account", ("a", "d")), EqualTo("name", "x")], "ad", None),
        ([EqualTo("account", "b"), In("account", ("a",))], "abcd", None),  # contradictory: Spark sees to it
        ([EqualTo("account", 5)], "abcd", None),  # of another type: who knows
        ([GreaterThan("at", NOON), GreaterThan("id", 5)], "abcd", "2024-05-01T12:00:00.000000Z"),
        ([EqualTo("at", NOON.date())], "abcd", "2024-05-01T00:00:00.000000Z"),
        ([LessThan("at", NOON)], "abcd", None),
    ],
    ids=["none", "one", "some", "none-left", "type", "start", "day", "before"],
)
def test_filters_choose_partitions_and_the_start(filters, accounts, start):
    one = found(app=APP, stream="parts")
    narrow = one.narrowed_by(pushdown.narrowed(filters, one.declared.replication_key))
    assert [work.part.partition["account"] for task in narrow.tasks() for work in task.work] == list(accounts)
    assert (narrow.config or {}).get("start_date") == start


def test_a_start_is_told_only_where_nothing_can_be_lost_by_it(tmp_path):
    after = pushdown.narrowed([GreaterThan("at", NOON)], "at")
    late = found(app=APP, stream="parts", config={"start_date": "2025-01-01T00:00:00Z"})
    assert late.narrowed_by(after).config["start_date"] == "2025-01-01T00:00:00Z"
    for one in (
        found(app=APP, stream="parts", state={"bookmarks": {"parts": {"at": "2024-01-01T00:00:00Z"}}}),
        found(app=APP, stream="children"),
        found(exec=write_tap(tmp_path), stream="users", config={"start_date": "2020-01-01T00:00:00Z"}),
    ):
        assert one.narrowed_by(after).config == one.config
