"""``spark.read.format("burler")`` in a session: apps and commands as DataFrames."""

from __future__ import annotations

import json
import os
import threading
import time
import zipfile
from pathlib import Path

import apps
import pytest
from fake_taps import GOOD, asked, write_tap

from burler.errors import UsageError
from burler.spark import read, reference
from burler.testing import canary, run_tap

TAP = """\
import burler

tap = burler.tap("tap-{name}")


@tap.schema("rows")
def schema():
    return {{"type": "object", "properties": {{"id": {{"type": "integer"}}, "said": {{"type": "string"}}}}}}


@tap.client
def client(config):
    import threading

    return {{"lock": threading.Lock(), "words": ["{name}", "b"]}}


@tap.sync("rows", key_properties=["id"])
def rows(client):
    with client["lock"]:
        yield [{{"id": n, "said": word}} for n, word in enumerate(client["words"])]
"""


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(TAP.format(name=name))
    return path


def frame(spark, **options):
    return spark.read.format("burler").options(**options).load()


def test_an_app_is_a_dataframe_with_the_rows_of_a_run(spark):
    rows = read(spark, apps.tap, stream="everything", config={"rows": 500})
    assert rows.schema["price"].dataType.simpleString() == "decimal(38,2)"
    assert all(field.nullable for field in rows.schema)
    ran = run_tap(apps.tap, {"rows": 500}, select="everything").records("everything")
    found = {row["id"]: row.asDict(recursive=True) for row in rows.collect()}
    for row in ran:
        mine = found.pop(row["id"])
        assert (mine["name"], mine["tags"], mine["address"], mine["counts"]) == (
            row["name"],
            row["tags"],
            row["address"],
            row["counts"],
        )
    assert not found
    assert rows.where("address.floor > 250 and at is not null").select("id").count() == sum(
        1 for row in ran if row["address"] and row["address"]["floor"] > 250 and row["at"]
    )


def test_partitions_are_tasks_of_spark(spark):
    rows = read(spark, apps.tap, stream="parts")
    counts = {(row[0], row[1]) for row in rows.selectExpr("spark_partition_id()", "account").distinct().collect()}
    assert counts == {(0, "a"), (1, "b"), (2, "c"), (3, "d")}


def test_a_command_is_a_dataframe_and_so_in_sql(spark, tmp_path):
    command = write_tap(tmp_path)
    rows = frame(spark, exec=command, STREAM="users", config='{"rows": 4}')
    assert [row.anything for row in rows.orderBy("id").collect()] == ["text", "[1]", "text", "[3]"]
    spark.sql(f"create or replace temporary view foreign_users using burler options (exec '{command}', stream 'users')")
    (row,) = spark.sql("select count(*) as n, max(at) as at from foreign_users").collect()
    assert row.n == 5
    assert row["at"].microsecond == 250_000
    spark.catalog.dropTempView("foreign_users")


def test_a_limit_of_sparks_ends_a_source_that_never_ends(spark):
    assert len(read(spark, apps.tap, stream="slow").limit(5).collect()) == 5


# ---- where an app may stand ----------------------------------------------------------------------------------------


def test_an_app_in_a_file(spark, tmp_path):
    assert frame(spark, app=str(written(tmp_path, "filed"))).orderBy("id").first().said == "filed"


def test_an_app_in_a_zip_and_one_that_is_sent_as_a_module(spark, tmp_path):
    path = tmp_path / "zipped.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zipped_tap/__init__.py", TAP.format(name="zipped"))
    spark.addArtifacts(str(path), str(written(tmp_path, "sent_tap")), pyfile=True)  # Python workers begin anew
    assert frame(spark, app="zipped_tap:tap").orderBy("id").first().said == "zipped"
    assert frame(spark, app="sent_tap").orderBy("id").first().said == "sent_tap"


def test_a_tap_of_a_notebook_goes_by_value_and_its_client_does_not(spark):
    cells: dict = {"__name__": "__main__"}
    exec(TAP.format(name="noted"), cells)
    assert read(spark, cells["tap"]).orderBy("id").first().said == "noted"


def test_a_notebook_whose_functions_hold_what_no_pickle_takes_is_told():
    cells: dict = {"__name__": "__main__"}
    broken = TAP.replace('with client["lock"]:', "with LOCK:").format(name="held")
    exec("import threading\nLOCK = threading.Lock()\n" + broken, cells)
    with pytest.raises(UsageError, match=r"can't be sent to other processes[\s\S]*@tap\.client"):
        reference(cells["tap"])


def test_names_are_found_by_spark_itself():
    """Spark looks for modules called ``pyspark_*``, and pickles what it finds by its name."""
    import pickle

    import pyspark_burler

    assert pickle.loads(pickle.dumps(pyspark_burler.DefaultSource)) is pyspark_burler.DefaultSource
    assert pyspark_burler.DefaultSource.name() == "burler"


# ---- columns that were asked for -------------------------------------------------------------------------------------


def test_a_schema_may_name_some_columns_in_any_order(spark, tmp_path):
    reader = spark.read.format("burler").option("exec", write_tap(tmp_path)).option("stream", "users")
    assert reader.schema("name string, id bigint").load().orderBy("id").first() == ("n0", 0)
    for schema, said in (("id string", "has it as bigint"), ("nme string", "no field for the column 'nme'")):
        with pytest.raises(Exception, match=said):
            reader.schema(schema).load().collect()


# ---- filters ---------------------------------------------------------------------------------------------------


def test_filters_are_let_in_only_where_that_is_asked_for(spark, tmp_path):
    options = {"stream": "parts", "config": {"rows": 30}}
    whole = read(spark, apps.tap, **options)
    wanted = "account in ('b', 'c') and at >= timestamp '2024-05-01T00:00:20Z'"
    expected = sorted(whole.where(wanted).select("account", "id").collect())
    assert {row.account for row in expected} == {"b", "c"}
    conf = "spark.sql.python.filterPushdown.enabled"
    was = spark.conf.get(conf)
    try:
        spark.conf.set(conf, "false")
        with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
            read(spark, apps.tap, **options, pushdown=True).where(wanted).collect()
        spark.conf.set(conf, "true")
        narrow = read(spark, apps.tap, **options, pushdown=True).where(wanted)
        assert narrow.selectExpr("spark_partition_id()").distinct().count() == 2
        assert sorted(narrow.select("account", "id").collect()) == expected
        assert sorted(whole.where(wanted).select("account", "id").collect()) == expected
    finally:
        spark.conf.set(conf, was)


# ---- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"exec": "no-such-tap"}, "burler.errors.UsageError: format 'burler': option 'exec': there is no program"),
        ({"app": "__main__:tap"}, "give the tap: burler.spark.read"),
    ],
    ids=["program", "main"],
)
def test_what_is_wrong_with_options_shows_when_spark_plans(spark, options, said):
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as told:
        frame(spark, **options)
    assert said.lower() in str(told.value).lower()


def test_errors_of_a_task_are_one_line_and_show_no_secret(spark, tmp_path):
    secret = canary("session")
    rows = read(spark, apps.tap, stream="everything", config={"fail": "raise", "password": secret})
    with pytest.raises(Exception, match="ValueError: the source said no to \\*\\*\\*"):
        rows.count()
    body = "schema()\nrecord(id=1)\nsys.exit('no ' + CONFIG['password'])"
    command = write_tap(tmp_path, body)
    failing = frame(spark, exec=command, stream="users", config=json.dumps({"password": secret}))
    with pytest.raises(Exception, match=r"errors\.StreamError: stream 'users': command 'tap_fake\.py' ended") as told:
        failing.count()
    assert "It said last: no ***. No row of this read counts" in str(told.value)
    shown = failing._jdf.queryExecution().toString() + repr(failing)
    assert secret not in shown + str(told.value)


def test_a_cancelled_job_leaves_no_tap_behind(spark, tmp_path):
    body = "schema()\nrecord(id=1)\ntime.sleep(600)"
    rows = frame(spark, exec=write_tap(tmp_path, body), stream="users")
    failed = []

    def count():
        try:
            rows.count()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=count)
    thread.start()
    end = time.monotonic() + 60
    while not (tmp_path / "asked.json").exists() or not (tmp_path / "asked.json").read_text().endswith("}"):
        assert time.monotonic() < end
        time.sleep(0.05)
    pid = asked(tmp_path)["pid"]
    os.kill(pid, 0)
    assert spark.interruptAll()
    thread.join(60)
    assert failed
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, "the tap is still there"
        time.sleep(0.05)


def test_each_action_extracts_again(spark, tmp_path):
    """What the docs warn of."""
    count = "\nwith open(os.path.join(HERE, 'runs'), 'a') as note:\n    note.write('x')\n"
    rows = frame(spark, exec=write_tap(tmp_path, GOOD + count), stream="users")
    rows.count()
    rows.select("id").collect()
    assert (tmp_path / "runs").read_text() == "xx"
