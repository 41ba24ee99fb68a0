"""``burler spark init-pipeline``: a project that Spark's own command runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from storm import spark_pipelines as running
from support.cli import burler


@pytest.fixture
def write_project(lake, tmp_path):
    """The Python files of a new project for the lake."""

    def write():
        done = burler("spark", "init-pipeline", lake.root, tmp_path / "project")
        assert done.code == 0, done.stderr
        return [Path(line) for line in done.text.splitlines() if line.endswith(".py")]

    return write


def fill(lake):
    lake.commit("log", [{"id": 1, "name": "x"}, {"id": 1, "name": "y"}], keys=())
    lake.commit(
        "full", [{"id": 1, "name": "old"}, {"id": 2, "name": "old"}], version=1, activate=1, bookmarks=("name",)
    )
    lake.commit("full", [{"id": 1, "name": "new"}], version=2, activate=2, bookmarks=("name",))
    lake.commit("users", [{"id": 1, "name": "old"}, {"id": 2, "name": "kept"}])
    lake.commit("users", [{"id": 1, "name": "new"}])


@pytest.mark.nightly
def test_spark_takes_the_project_as_it_is(lake, write_project, tmp_path):
    """A dry run, in which Spark looks at every table, its source and its columns; ``running.py`` runs it, often.

    Two JVMs: one of the command, one of its server.
    """
    fill(lake)
    write_project()

    done = running.spark_pipelines(tmp_path / "project", "dry-run")

    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "Run is COMPLETED" in done.stdout + done.stderr


def test_a_projects_functions_give_what_counts(spark, lake, write_project):
    """As Spark calls them: rows are a stream, and each table is made of the rows that have come."""
    from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context

    flows = {}

    class Registry(GraphElementRegistry):
        def register_flow(self, flow):
            flows[flow.target] = flow.func

        def register_output(self, output):
            pass

        register_auto_cdc_flow = register_sql = register_output

    fill(lake)
    with graph_element_registration_context(Registry()):
        for path in write_project():
            exec(compile(path.read_text(), path, "exec"), {})
    assert sorted(flows) == ["tap_x_full", "tap_x_full_rows", "tap_x_log", "tap_x_users", "tap_x_users_rows"]
    found = {}
    for stream in ("users", "full"):
        rows = flows[f"tap_x_{stream}_rows"]()
        assert rows.isStreaming
        come = spark.read.format("singerlake").options(stream=stream, versions="all").load(str(lake.root))
        assert come.columns == rows.columns
        come.createTempView(f"tap_x_{stream}_rows")
        found[stream] = sorted(map(tuple, flows[f"tap_x_{stream}"]().select("id", "name").collect()))
        spark.catalog.dropTempView(f"tap_x_{stream}_rows")
    assert found == {"users": [(1, "new"), (2, "kept")], "full": [(1, "new")]}


def test_names_of_any_kind_become_tables_and_the_code_stays_code(lake, write_project):
    odd = ['say "hi"', "back\\slash", "a'b", "Ünïcode", "{x}", "1st", "users", "users!"]
    for name in odd:
        lake.commit(name, [{"id": 1, "name": "a"}])

    codes = write_project()

    assert len({path.stem.lower() for path in codes}) == len(codes) == len(odd)
    named = set()
    for path in codes:
        assert path.stem.isidentifier() and path.stem.islower() and path.stem.isascii()
        words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        named |= words & set(odd)
        assert str(lake.root) in words
    assert named == set(odd)


def test_columns_of_any_name_can_be_keys_and_order(lake, write_project):
    schema = {"type": "object", "properties": {"the `key`": {"type": "integer"}, "up.dated": {"type": "string"}}}
    row = {"the `key`": 1, "up.dated": "x"}
    lake.commit("s", [row], schema=schema, keys=("the `key`",), bookmarks=("up.dated",))

    (code,) = write_project()

    assert "partitionBy('`the ``key```')" in code.read_text()
    assert "f.col('`up.dated`').desc_nulls_last()" in code.read_text()


def test_the_command_names_its_files_replaces_nothing_and_tells_what_is_wrong(lake, tmp_path, monkeypatch):
    lake.commit("users", [{"id": 1}])

    def command(*arguments):
        return burler("spark", "init-pipeline", *arguments, cwd=tmp_path)

    (tmp_path / "empty").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    done = command("lake", "empty")
    again, mine = command("lake", "empty"), command("lake", "mine")
    wrong, nothing = command("lake", "other", "--stream", "user"), command("none", "other")

    assert done.code == 0
    assert set(done.text.split()) == {str(path) for path in (tmp_path / "empty").rglob("*") if path.is_file()}
    assert [one.code for one in (again, mine, wrong, nothing)] == [2, 2, 2, 2]
    assert "nothing is replaced" in mine.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert "no stream 'user' in this lake. Did you mean 'users'? It has: users" in wrong.stderr

    real = Path.write_text

    def full(path, text, **options):
        if path.name == ".gitignore":
            raise OSError(28, "No space left on device")
        return real(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    failed = command("lake", "project")

    assert failed.code == 1 and "No space left" in failed.one_critical()
    assert not (tmp_path / "project").exists(), "a write that fails leaves nothing"
