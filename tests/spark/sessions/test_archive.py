"""The start-up archive: whose it is, when it is used, and that no damage to it does any harm."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from burler.errors import StorageError, UsageError
from burler.spark import Java, find_java
from support.internals import MODULES, training
from support.internals import spark_archive as archive
from support.internals import spark_launch as launch

GATEWAY = """
import json, sys
from pathlib import Path
from support.internals import jvm, spark_archive as archive, spark_launch as launch
from burler.spark import find_java

java, home = find_java(), launch.spark_home()
found = archive.usable(java, home, jvm.class_path(home, {}))
with jvm.gateway(java, home, {"spark.master": "local[1]", "spark.driver.memory": "256m"}, found):
    pass
maps = Path(f"/proc/{jvm._started[-1][1].pid}/maps").read_text()
print(json.dumps([str(found.path) if found else None, bool(found) and str(found.path) in maps, len(jvm._started)]))
"""


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


def start(environ):
    done = subprocess.run(
        [sys.executable, "-c", GATEWAY], env={**os.environ, **environ}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return (*json.loads(done.stdout), done.stderr)


def test_a_jvm_maps_the_archive_that_another_one_has_written(cache, packages):
    """Of the classes of ``spark-submit --version``, which takes seconds; of an export it takes a minute."""
    java = find_java()
    found = archive.archive_for(java, launch.spark_home())
    cache.mkdir(parents=True)
    work = cache / found.path.name.replace("java", "work")
    command = [java.executable, *found.training_options(work), "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{launch.spark_home()}/jars/*", "org.apache.spark.deploy.SparkSubmit", "--version"]
    subprocess.run(command, check=True, capture_output=True)
    found.put(work, {"java": java.version})

    path, mapped, jvms, said = start({})

    assert (path, mapped, jvms, said) == (str(found.path), True, 1, "")


def test_a_jvm_that_dies_of_its_archive_is_started_without(cache, tmp_path, packages):
    java = find_java()
    wrapper = tmp_path / "home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    real = shlex.quote(java.executable)
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *SharedArchiveFile*|*AOTCache*) exit 134;; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    found = archive.archive_for(Java(str(wrapper), java.version, "JAVA_HOME"), launch.spark_home())
    found.path.parent.mkdir(parents=True)
    (cache / "work").write_bytes(b"poison")
    found.put(cache / "work", {})

    path, _, jvms, said = start({"JAVA_HOME": str(wrapper.parent.parent)})

    assert (path, jvms, said) == (str(found.path), 2, "")
    assert not found.path.exists()


# ---- training -------------------------------------------------------------------------------------------------------


def test_a_training_that_fails_says_why_and_leaves_nothing(cache, tmp_path, packages):
    """The whole way but for the JVM, which only says that it has no memory."""
    java = java_home(tmp_path / "java")
    wrapper = Path(java.executable)
    wrapper.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo "openjdk version \\"17.0.1\\"" >&2; exit 0; }\n'
        'echo "no memory is left" >&2; exit 1\n'
    )
    wrapper.chmod(0o755)

    with pytest.raises(StorageError, match="was not made"):
        training.train(java, rows=10)

    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_a_second_training_gives_way(cache, tmp_path, packages):
    cache.mkdir(parents=True)
    with (cache / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process"):
            training.train(java_home(tmp_path / "java"))


def test_a_disk_without_room_is_one_line(cache, tmp_path, packages, monkeypatch):
    monkeypatch.setattr(training, "NEEDED_BYTES", shutil.disk_usage(tmp_path).total * 2)

    with pytest.raises(StorageError, match="Make room") as caught:
        training.train(java_home(tmp_path / "java"))

    assert "\n" not in str(caught.value)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_a_cache_that_can_not_be_written_is_one_line(cache, tmp_path, packages):
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(StorageError, match="can't be written") as caught:
        training.train(java_home(tmp_path / "java"))

    assert "\n" not in str(caught.value)


@pytest.fixture
def trainings(monkeypatch, tmp_path):
    """What ``offer`` has started, after a Spark that began without an archive."""
    begun = []

    class Popen:
        def __init__(self, command, **options):
            begun.append((command, options))

    monkeypatch.setattr(training.subprocess, "Popen", Popen)
    monkeypatch.setattr(launch, "_bare", [java_home(tmp_path / "java")])
    return begun


def test_the_first_export_leaves_a_training_behind_and_only_one(cache, trainings, packages):
    training.offer()
    training.offer()

    ((command, options),) = trainings
    assert command[1:] == ["-m", MODULES["training"]]
    assert options["start_new_session"]
    assert {options[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}


@pytest.mark.parametrize("reason", ["off", "ci", "an_archive_was_used", "a_cache_that_is_a_file", "no_room"])
def test_nothing_is_left_behind_where(cache, trainings, packages, monkeypatch, tmp_path, reason):
    if reason == "off":
        monkeypatch.setenv("BURLER_SPARK_ARCHIVE", "off")
    elif reason == "ci":
        monkeypatch.setenv("CI", "true")
    elif reason == "an_archive_was_used":
        monkeypatch.setattr(launch, "_bare", [])
    elif reason == "no_room":
        monkeypatch.setattr(training, "NEEDED_BYTES", shutil.disk_usage(tmp_path).total * 2)
    else:
        (tmp_path / "cache").write_text("a file")

    training.offer()

    assert trainings == []


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_says_what_is_there_and_removes_it(cache, burler, packages):
    java = find_java()
    found = archive.archive_for(java, launch.spark_home())

    none = burler("spark", "archive")
    cache.mkdir(parents=True)
    (cache / "work").write_bytes(b"classes" * 1_000_000)
    found.put(cache / "work", {"java": java.version, "trained": "2024-01-01T00:00:00+00:00"})
    ready = burler("spark", "archive", "--status")
    removed = burler("spark", "archive", "--remove")

    assert (none.returncode, ready.returncode, removed.returncode) == (0, 0, 0)
    assert "--train makes it" in none.stdout
    assert ready.stdout == f"ready  {found.path}  7 MB, made 2024-01-01T00:00:00+00:00\n"
    assert removed.stdout == f"{found.path}  7 MB, removed\n"
    assert list(cache.iterdir()) == []


def test_training_while_it_is_off_is_an_error(burler, packages):
    done = burler("spark", "archive", "--train", BURLER_SPARK_ARCHIVE="off")

    assert done.returncode == 2
    assert "Unset it first" in done.stderr
