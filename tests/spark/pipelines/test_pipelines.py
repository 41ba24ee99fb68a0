"""``burler spark init-pipeline``: a project that Spark's own command runs."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from burler.errors import StorageError, UsageError
from support.internals import pipelines
from support.internals import pipelines_project as project

_spec = importlib.util.spec_from_file_location("pipelines_running", Path(__file__).with_name("running.py"))
running = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(running)


def test_spark_takes_the_project_as_it_is(lake, tmp_path, packages):
    """A dry run, in which Spark looks at every table, its source and its columns; ``running.py`` runs it, often."""
    lake.commit("log", [{"id": 1, "name": "x"}], keys=())
    lake.commit("full", [{"id": 1, "name": "old"}], version=1, activate=1, bookmarks=("name",))
    pipelines.write_project(str(lake.root), tmp_path / "project")

    done = running.spark_pipelines(tmp_path / "project", "dry-run")

    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "Run is COMPLETED" in done.stdout + done.stderr


def test_names_of_any_kind_become_tables_and_the_code_stays_code(lake, tmp_path):
    odd = ['say "hi"', "back\\slash", "a'b", "Ünïcode", "{x}", "1st", "Users", "users", "users!"]
    for name in odd:
        lake.commit(name, [{"id": 1, "name": "a"}])

    written = pipelines.write_project(str(lake.root), tmp_path / "project")

    codes = [path for path in written if path.suffix == ".py"]
    assert len({path.stem.lower() for path in codes}) == len(codes) == len(odd)
    named = set()
    for path in codes:
        assert path.stem.isidentifier() and path.stem.islower() and path.stem.isascii()
        words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        named |= words & set(odd)
        assert str(lake.root) in words
    assert named == set(odd)


def test_columns_of_any_name_can_be_keys_and_order(lake, tmp_path):
    schema = {"type": "object", "properties": {"the `key`": {"type": "integer"}, "up.dated": {"type": "string"}}}
    row = {"the `key`": 1, "up.dated": "x"}
    lake.commit("s", [row], schema=schema, keys=("the `key`",), bookmarks=("up.dated",))

    (code,) = [path for path in pipelines.write_project(str(lake.root), tmp_path / "project") if path.suffix == ".py"]

    assert "partitionBy('`the ``key```')" in code.read_text()
    assert "f.col('`up.dated`').desc_nulls_last()" in code.read_text()


def test_the_active_version_is_the_last_one_in_the_lake(lake):
    lake.commit("plain", [{"id": 1}])
    lake.commit("full", [{"id": 1}], version=7, activate=7)
    lake.commit("full", [{"id": 2}], version=9)

    assert pipelines.active_version(str(lake.root), tap="tap-x", stream="plain") is None
    assert pipelines.active_version(str(lake.root), tap="tap-x", stream="full") == pipelines.Active(7, 1)


def test_nothing_is_replaced(lake, tmp_path):
    lake.commit("users", [{"id": 1}])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")

    with pytest.raises(UsageError, match="nothing is replaced"):
        pipelines.write_project(str(lake.root), tmp_path / "mine")

    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    (tmp_path / "empty").mkdir()
    assert all(path.is_file() for path in pipelines.write_project(str(lake.root), tmp_path / "empty"))


def test_a_write_that_fails_leaves_nothing(lake, tmp_path, monkeypatch):
    lake.commit("users", [{"id": 1}])
    monkeypatch.setattr(project.texts, "IGNORED", "x" * 10)
    real = Path.write_text

    def full(path, text, **options):
        if path.name == ".gitignore":
            raise OSError(28, "No space left on device")
        return real(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(StorageError, match="No space left"):
        pipelines.write_project(str(lake.root), tmp_path / "project")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]


def test_the_command_names_its_files_and_tells_what_is_wrong(lake, tmp_path):
    lake.commit("users", [{"id": 1}])

    def command(*arguments):
        line = [sys.executable, "-m", "burler", "spark", "init-pipeline", *arguments]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)

    done, again = command("lake", "project"), command("lake", "project")
    wrong, nothing = command("lake", "other", "--stream", "user"), command("none", "other")

    assert done.returncode == 0
    assert set(done.stdout.split()) == {str(path) for path in (tmp_path / "project").rglob("*") if path.is_file()}
    assert [one.returncode for one in (again, wrong, nothing)] == [2, 2, 2]
    assert "no stream 'user' in this lake. It has: users" in wrong.stderr
