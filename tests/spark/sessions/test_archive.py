"""The start-up archive: whose it is, when it is used, and that no damage to it does any harm."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from burler.spark import Java, find_java
from support.cli import burler
from support.internals import spark_archive as archive

STARTED = """
from pathlib import Path
from burler.spark import session

spark = session(conf={"spark.driver.memory": "512m"}, master="local[1]")
print(Path(f"/proc/{spark.sparkContext._jvm.ProcessHandle.current().pid()}/maps").read_text())
"""


def installed():
    """The folder of the installed Spark."""
    import pyspark

    return str(Path(pyspark.__file__).parent)


def java_home(folder, release="JAVA_VERSION=17", version=17):
    """A home like a JVM's, and the Java in it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(release)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    return Java(str(folder / "bin" / "java"), version, "JAVA_HOME")


def spark_home(folder, *jars):
    (folder / "jars").mkdir(parents=True)
    for name in jars:
        (folder / "jars" / name).write_text(name)
    return str(folder)


@pytest.fixture
def made(cache, tmp_path):
    """A whole archive (of no JVM), its Java and its Spark."""
    java, home = java_home(tmp_path / "java"), spark_home(tmp_path / "spark", "a.jar")
    found = archive.archive_for(java, home)
    found.path.parent.mkdir(parents=True)
    work = cache / "work"
    work.write_bytes(b"classes" * 20_000)
    found.put(work, {"java": 17})
    return found, java, home


def usable(java, home):
    return archive.usable(java, home, [f"{home}/jars/*"])


def test_a_whole_archive_is_used_and_named_to_the_jvm(made):
    found, java, home = made

    assert usable(java, home) == found
    assert f"-XX:SharedArchiveFile={found.path}" in found.options()
    assert not (found.path.parent / "work").exists()


def test_a_umask_that_lets_the_group_write_is_no_hindrance(cache, tmp_path):
    java, home = java_home(tmp_path / "java"), spark_home(tmp_path / "spark", "a.jar")
    before = os.umask(0o002)
    try:
        found = archive.archive_for(java, home)
        found.path.parent.mkdir(parents=True)
        (cache / "work").write_bytes(b"classes")
        found.put(cache / "work", {})
    finally:
        os.umask(before)

    assert usable(java, home) == found


def test_java_25_gets_an_aot_cache(made, tmp_path):
    _, _, home = made
    found = archive.archive_for(java_home(tmp_path / "java25", version=25), home)

    assert found.path.suffix == ".aot"
    assert f"-XX:AOTCache={found.path}" in found.options()


def cut(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


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


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_archive_is_not_used_and_taken_away(made, damage):
    found, java, home = made
    DAMAGE[damage](found.path)

    assert usable(java, home) is None
    assert list(found.path.parent.glob(f"{found.path.stem}*")) == []


def test_another_java_another_spark_or_another_jar_has_an_archive_of_its_own(made, tmp_path):
    found, java, home = made
    others = [
        archive.archive_for(java_home(tmp_path / "j2", "JAVA_VERSION=17"), home),  # another place
        archive.archive_for(java, spark_home(tmp_path / "s2", "a.jar", "b.jar")),
    ]
    (tmp_path / "java" / "release").write_text("JAVA_VERSION=17.0.99")
    others.append(archive.archive_for(java, home))

    assert len({one.path for one in (found, *others)}) == 4
    assert usable(java, home) is None


@pytest.mark.parametrize("value", ["off", "0", "False"])
def test_it_can_be_turned_off(made, monkeypatch, value):
    _, java, home = made
    monkeypatch.setenv("BURLER_SPARK_ARCHIVE", value)

    assert usable(java, home) is None


def test_other_jars_in_front_leave_it_aside(made):
    _, java, home = made

    assert archive.usable(java, home, ["/extra.jar", f"{home}/jars/*"]) is None


def test_without_a_home_there_is_none(made, monkeypatch):
    _, java, home = made
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")

    assert usable(java, home) is None


def test_the_least_recently_used_goes_when_there_is_too_much(made, tmp_path):
    found, java, _ = made
    newer = archive.archive_for(java, spark_home(tmp_path / "s2", "a.jar"))
    work = tmp_path / "work"
    work.write_bytes(found.path.read_bytes())
    newer.put(work, {})
    os.utime(found.note, (1, 1))

    archive.tidy(newer, most_bytes=200_000)

    assert (found.path.exists(), newer.is_whole()) == (False, True)


# ---- with a JVM -----------------------------------------------------------------------------------------------------


def started(**environ):
    """What the JVM of a new session has in its memory."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED], env={**os.environ, **environ}, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.nightly
def test_a_jvm_maps_the_archive_that_another_one_has_written(cache, packages):
    """Of the classes of ``spark-submit --version``, which takes seconds; of an export it takes a minute. Two JVMs."""
    java = find_java()
    found = archive.archive_for(java, installed())
    cache.mkdir(parents=True)
    work = cache / found.path.name.replace("java", "work")
    command = [java.executable, *found.training_options(work), "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{installed()}/jars/*", "org.apache.spark.deploy.SparkSubmit", "--version"]
    subprocess.run(command, check=True, capture_output=True)
    found.put(work, {"java": java.version})

    assert str(found.path) in started()


@pytest.mark.nightly
def test_a_jvm_that_dies_of_its_archive_is_started_without(cache, tmp_path, packages):
    """A JVM of its own; that damaged archives are not used is shown above, without one."""
    java = find_java()
    wrapper = tmp_path / "home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    real = shlex.quote(java.executable)
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *SharedArchiveFile*|*AOTCache*) exit 134;; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    found = archive.archive_for(Java(str(wrapper), java.version, "JAVA_HOME"), installed())
    found.path.parent.mkdir(parents=True)
    (cache / "work").write_bytes(b"poison")
    found.put(cache / "work", {})

    assert str(found.path) not in started(JAVA_HOME=str(wrapper.parent.parent))
    assert not found.path.exists()


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def spark_archive(cache, tmp_path):
    """``burler spark archive`` with the user's cache folder here."""
    given = {"BURLER_SPARK_ARCHIVE": "on", "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    return lambda *more, **environ: burler("spark", "archive", *more, **{**given, **environ})


def test_what_keeps_a_training_from_its_end_is_one_line_and_leaves_nothing(
    cache, spark_archive, tmp_path, packages, monkeypatch
):
    java = java_home(tmp_path / "java")
    Path(java.executable).write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo "openjdk version \\"17.0.1\\"" >&2; exit 0; }\n'
        'echo "no memory is left" >&2; exit 1\n'
    )
    Path(java.executable).chmod(0o755)
    home = {"JAVA_HOME": java.home}

    failed = spark_archive("--train", **home)
    assert failed.code == 1 and "was not made" in failed.one_critical()
    assert [path.name for path in cache.iterdir()] == ["lock"]

    with (cache / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = spark_archive("--train", **home)
    assert second.code == 2 and "another process" in second.one_critical()

    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
        no_room = spark_archive("--train", **home)
    assert no_room.code == 1 and "Make room" in no_room.one_critical()
    assert [path.name for path in cache.iterdir()] == ["lock"]

    shutil.rmtree(cache)
    cache.write_text("a file")
    not_to_write = spark_archive("--train", **home)
    assert not_to_write.code == 1 and "can't be written" in not_to_write.one_critical()

    off = spark_archive("--train", BURLER_SPARK_ARCHIVE="off")
    assert off.code == 2 and "Unset it first" in off.one_critical()


def test_the_command_says_what_is_there_and_removes_it(cache, spark_archive, packages):
    java = find_java()
    found = archive.archive_for(java, installed())

    none = spark_archive()
    cache.mkdir(parents=True)
    (cache / "work").write_bytes(b"classes" * 1_000_000)
    found.put(cache / "work", {"java": java.version, "trained": "2024-01-01T00:00:00+00:00"})
    ready = spark_archive("--status")
    removed = spark_archive("--remove")

    assert (none.code, ready.code, removed.code) == (0, 0, 0)
    assert "--train makes it" in none.text
    assert ready.text == f"ready  {found.path}  7 MB, made 2024-01-01T00:00:00+00:00\n"
    assert removed.text == f"{found.path}  7 MB, removed\n"
    assert list(cache.iterdir()) == []
