"""The start-up archive: whose it is, when it is used, and that no damage to it does any harm."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from burler.spark import find_java
from support.cli import burler, python

JAVA = """#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "{version}.0.1"' >&2; exit 0; }}
echo "$@" >> "$XDG_CACHE_HOME/said"
echo "no memory is left" >&2
exit 1
"""
SESSIONS = """
import os, sys
from burler.spark import session

for folder in sys.argv[1:]:
    os.environ["XDG_CACHE_HOME"] = folder
    os.environ["BURLER_SPARK_ARCHIVE"] = "off" if folder.endswith("off") else "on"
    conf = {"spark.driver.extraClassPath": "/extra.jar"} if folder.endswith("jars") else {}
    try:
        session(conf=conf, master="local[1]")
    except Exception as error:
        assert "ended with exit code 1 at start" in str(error), error
"""
STARTED = """
from pathlib import Path
from burler.spark import session

spark = session(conf={"spark.driver.memory": "512m"}, master="local[1]")
print(Path(f"/proc/{spark.sparkContext._jvm.ProcessHandle.current().pid()}/maps").read_text())
"""


def java_home(folder, version=17):
    """A home with a Java that says its version, notes how it is called, and starts nothing."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(JAVA.format(version=version))
    (folder / "bin" / "java").chmod(0o755)
    return folder


@pytest.fixture
def archive(cache):
    """``burler spark archive`` of a Java, with the user's cache folder here."""
    given = {"BURLER_SPARK_ARCHIVE": "on", "XDG_CACHE_HOME": str(cache.parents[1]), "PATH": os.environ["PATH"]}

    def command(java, *more, **environ):
        return burler("spark", "archive", *more, **{**given, "JAVA_HOME": str(java), **environ})

    return command


@pytest.fixture
def quick(monkeypatch):
    """A training that leaves a file of the size that is asked for, and no JVM runs."""
    run, wanted = subprocess.run, {"bytes": 2_000_000}

    def trained(command, **options):
        out = re.search(r"-XX:(?:ArchiveClassesAtExit|AOTCacheOutput)=(\S+)", command[-1])
        if command[-1] != "training" and out is None:
            return run(command, **options)
        if out is not None:
            Path(out[1]).write_bytes(b"classes" * 20_000)
            os.truncate(out[1], wanted["bytes"])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", trained)
    return wanted


@pytest.fixture
def made(archive, quick, tmp_path):
    """A java and its archive."""
    java = java_home(tmp_path / "java")
    done = archive(java, "--train")
    assert done.code == 0, done.stderr
    return java, Path(done.text.split("  ")[0])


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def fill(path):
    """As long as before, and of the same time; not the same bytes."""
    there = path.stat()
    path.write_bytes(b"\0" * there.st_size)
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))


DAMAGE = {
    "cut": cut,
    "filled": fill,
    "anybody_may_write": lambda path: path.chmod(0o666),
    "no_note": lambda path: path.with_suffix(".json").unlink(),
    "half_a_note": lambda path: cut(path.with_suffix(".json")),
    "a_note_of_something_else": lambda path: path.with_suffix(".json").write_text("[]"),
}


def test_a_jvm_is_given_a_whole_archive_and_a_damaged_one_is_taken_away(cache, archive, made, tmp_path):
    java, path = made
    folders = {}
    for name in ("whole", "off", "jars", *DAMAGE):
        folders[name] = shutil.copytree(cache.parents[1], tmp_path / name)
        DAMAGE.get(name, lambda _path: None)(tmp_path / name / path.relative_to(cache.parents[1]))
        told = archive(java, XDG_CACHE_HOME=str(folders[name])).text
        assert told.startswith("none for" if name in DAMAGE else "ready  "), name
    folders["another"] = shutil.copytree(cache.parents[1], tmp_path / "another")

    done = python("-c", SESSIONS, *folders.values(), JAVA_HOME=str(java))
    assert done.code == 0, done.stderr
    for name, folder in folders.items():
        there = folder / path.relative_to(cache.parents[1])
        wanted = f"-XX:SharedArchiveFile={there} " if name in ("whole", "another") else ""
        first = (folder / "said").read_text().splitlines()[0]
        assert wanted in first and (wanted or "SharedArchiveFile" not in first), name
        assert there.exists() is (name not in DAMAGE), name


def test_java_25_gets_an_aot_cache(cache, archive, quick, tmp_path):
    java = java_home(tmp_path / "java", version=25)
    path = archive(java, "--train").text.split("  ")[0]
    assert path.endswith(".aot")
    done = python("-c", SESSIONS, cache.parents[1], JAVA_HOME=str(java))
    assert done.code == 0 and f"-XX:AOTCache={path} " in (cache.parents[1] / "said").read_text()


def test_whose_an_archive_is_and_where(archive, made, tmp_path, monkeypatch):
    """A umask that lets the group write is no hindrance; a Java of another place or release has one of its own."""
    java, path = made
    assert [one.name for one in path.parent.iterdir() if one.suffix not in (".json", ".jsa")] == ["lock"]
    before = os.umask(0o002)
    try:
        archive(java, "--train")
    finally:
        os.umask(before)
    assert archive(java).text.startswith(f"ready  {path}  2 MB, made 20")
    assert archive(java_home(tmp_path / "other")).text.startswith("none for this Java and this Spark")
    for value in ("off", "0", "False"):
        assert archive(java, BURLER_SPARK_ARCHIVE=value).text.startswith("off")
    assert archive(java, XDG_CACHE_HOME="relative").text.startswith("none: there is no folder for a cache")
    (java / "release").write_text("JAVA_VERSION=17.0.99")
    assert archive(java).text.startswith("none for this Java")


def test_the_least_recently_used_goes_when_there_is_too_much(archive, quick, tmp_path):
    """A gigabyte at most (docs/spark.md)."""
    quick["bytes"] = 600_000_000
    first, second = java_home(tmp_path / "first"), java_home(tmp_path / "second")
    assert archive(first, "--train").code == archive(second, "--train").code == 0
    assert (archive(first).text[:5], archive(second).text[:5]) == ("none ", "ready")


# ---- with a JVM -----------------------------------------------------------------------------------------------------


def started(**environ):
    """What the JVM of a new session has in its memory."""
    done = python("-c", STARTED, timeout=600, **environ)
    assert (done.code, done.stderr) == (0, "")
    return done.text


@pytest.mark.nightly
def test_a_jvm_maps_the_archive_that_another_one_has_written(cache, archive, packages):
    """A whole training takes a minute."""
    trained = archive(find_java().home, "--train")
    assert trained.code == 0, trained.stderr
    assert trained.text.split("  ")[0] in started(XDG_CACHE_HOME=str(cache.parents[1]), BURLER_SPARK_ARCHIVE="on")


@pytest.mark.nightly
def test_a_jvm_that_dies_of_its_archive_is_started_without(cache, archive, quick, tmp_path, packages):
    """A JVM of its own; that damaged archives are not used is shown above, without one."""
    wrapper = tmp_path / "home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    real = shlex.quote(find_java().executable)
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *SharedArchiveFile*|*AOTCache*) exit 134;; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    path = archive(tmp_path / "home", "--train").text.split("  ")[0]
    assert Path(path).exists()

    given = {"JAVA_HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(cache.parents[1])}
    assert path not in started(BURLER_SPARK_ARCHIVE="on", **given)
    assert not Path(path).exists()


# ---- the command ----------------------------------------------------------------------------------------------------


def test_what_keeps_a_training_from_its_end_is_one_line_and_leaves_nothing(
    cache, archive, tmp_path, packages, monkeypatch
):
    java = java_home(tmp_path / "java")

    failed = archive(java, "--train")
    assert failed.code == 1 and "was not made" in failed.one_critical()
    assert [path.name for path in cache.iterdir()] == ["lock"]

    with (cache / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = archive(java, "--train")
    assert second.code == 2 and "another process" in second.one_critical()

    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
        no_room = archive(java, "--train")
    assert no_room.code == 1 and "Make room" in no_room.one_critical()
    assert [path.name for path in cache.iterdir()] == ["lock"]

    shutil.rmtree(cache)
    cache.write_text("a file")
    not_to_write = archive(java, "--train")
    assert not_to_write.code == 1 and "can't be written" in not_to_write.one_critical()

    off = archive(java, "--train", BURLER_SPARK_ARCHIVE="off")
    assert off.code == 2 and "Unset it first" in off.one_critical()


def test_the_command_says_what_is_there_and_removes_it(cache, archive, made, tmp_path):
    java, path = made
    assert "--train makes it" in archive(java_home(tmp_path / "other"), "--status").text
    assert archive(java, "--remove").text == f"{path}  2 MB, removed\n"
    assert [path.name for path in cache.iterdir()] == ["lock"]
    assert archive(java, "--remove").text == "there is no archive\n"
