"""Class-data archives: what a JVM has loaded and worked out once, kept for the next one's start.

Spark's start is loading and checking some twenty thousand classes. Java 17 to 24 store them in a class-data archive,
Java 25 in an AOT cache, which holds method profiles as well. An archive fits one JVM and one list of JARs, so both make
its name. One that does not fit is ignored by the JVM; one that was cut short kills it (SIGBUS), so nothing
is given to a JVM whose size and first bytes are not those that were noted when it was made.

An archive is a help and never a need: whatever fails here, Spark starts without one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.localfile import replace_file, sync_path
from burler.spark.java import Java

_log = logging.getLogger("burler.spark")

SWITCH = "BURLER_SPARK_ARCHIVE"
"""``off`` in the environment: archives are neither used nor made."""

_OFF = ("off", "0", "false", "no")
_AOT_SINCE = 25
_HEAD_BYTES = 1 << 16
_MOST_BYTES = 1 << 30
"""What all archives together may take on disk; the least recently used go first."""

NEEDED_BYTES = 1 << 30
"""Free disk that making one asks for: Java 25 writes a recording beside its cache, each up to 400 MB."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the archive for one JVM and one Spark lies, whether it is there or not."""

    path: Path
    java: Java

    @property
    def note(self) -> Path:
        """The file that says what the archive must look like."""
        return self.path.with_suffix(".json")

    def is_whole(self) -> bool:
        """Whether it is there, is ours, and is as it was made."""
        try:
            noted = json.loads(self.note.read_bytes())
            return _is_ours(self.note) and _is_ours(self.path) and noted["file"] == _look(self.path)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def options(self) -> list[str]:
        """What a JVM is started with to use it; it keeps silent where it can't."""
        if self.java.version >= _AOT_SINCE:
            return [f"-XX:AOTCache={self.path}", "-XX:AOTMode=auto", "-Xlog:disable"]
        return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:disable"]

    @property
    def holds_profiles(self) -> bool:
        """Whether it keeps what the JVM has learned of hot loops, beside the classes."""
        return self.java.version >= _AOT_SINCE

    def training_options(self, out: Path) -> list[str]:
        """What a JVM is started with to write one to ``out`` when it ends.

        Java 25 stores linked classes only from a G1 heap; a JVM with any collector uses them. (An export of 60,000 rows
        took 17.5 CPU seconds with such a cache, 21.8 with one of the parallel collector's, 30.9 with none.)
        """
        if self.holds_profiles:
            return [f"-XX:AOTCacheOutput={out}", "-XX:+UseG1GC", "-Xlog:disable"]
        return [f"-XX:ArchiveClassesAtExit={out}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable"]

    def put(self, made: Path, told: Mapping[str, Any]) -> None:
        """Give a finished archive its name. The note goes away first and comes last: between there is no archive.

        Raises:
            OSError: no room, no right to.
        """
        sync_path(made)
        self.note.unlink(missing_ok=True)
        made.chmod(0o600)
        made.replace(self.path)
        replace_file(self.note, json.dumps({**told, "file": _look(self.path)}).encode())
        self.note.chmod(0o600)  # many a umask lets the group write, and then it would not count

    def remove(self) -> None:
        """Take it away; a JVM that uses it keeps its own hold of the file."""
        for path in (self.note, self.path):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def touch(self) -> None:
        """Note that it was used, for those who choose what to remove."""
        with contextlib.suppress(OSError):
            os.utime(self.note)


def is_on(environ: Mapping[str, str] | None = None) -> bool:
    """Whether archives are used and made."""
    return (os.environ if environ is None else environ).get(SWITCH, "").strip().lower() not in _OFF


def folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of archives in the user's cache folder; None for a user without a home."""
    environ = os.environ if environ is None else environ
    try:
        cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError:
        return None
    return Path(cache) / "burler" / "spark" if Path(cache).is_absolute() else None


def archive_for(java: Java, spark_home: str) -> Archive | None:
    """The archive of a JVM and a Spark; None where there can be none."""
    home = folder()
    if home is None:
        return None
    try:
        name = _key(java, spark_home)
    except OSError:
        return None
    return Archive(home / f"{name}.{'aot' if java.version >= _AOT_SINCE else 'jsa'}", java)


def usable(java: Java, spark_home: str, class_path: list[str]) -> Archive | None:
    """The archive to start a JVM with, if there is a whole one.

    Args:
        class_path: with other JARs in front the JVM would refuse it.
    """
    if not is_on() or class_path != [f"{spark_home}/jars/*"]:
        return None
    found = archive_for(java, spark_home)
    if found is None or not found.path.exists():
        return None
    if not found.is_whole():
        _log.debug("%s is not what was made; removed", found.path)
        found.remove()
        return None
    found.touch()
    return found


def entries() -> Iterator[tuple[Path, dict[str, Any], int]]:
    """Each archive that is there: its path, what its note tells, its size in bytes. The last used comes first."""
    home = folder()
    with contextlib.suppress(OSError):
        notes = sorted(home.glob("*.json") if home else (), key=lambda path: -path.stat().st_mtime)
        for note in notes:
            for path in (note.with_suffix(".jsa"), note.with_suffix(".aot")):
                if path.is_file():
                    with contextlib.suppress(OSError, ValueError):
                        yield path, json.loads(note.read_bytes()), path.stat().st_size


def tidy(keep: Archive | None, *, most_bytes: int = _MOST_BYTES) -> None:
    """Remove what is over the limit, least recently used first, and what killed trainings left a day ago."""
    home = folder()
    if home is None:
        return
    total = 0
    for path, _, size in list(entries()):
        total += size
        if total > most_bytes and (keep is None or path != keep.path):
            Archive(path, keep.java if keep else Java("", 0, "")).remove()
    with contextlib.suppress(OSError):
        for left in home.glob("training-*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > 86_400:
                    remove_tree(left)


def remove_all() -> None:
    """Remove every archive of this user, and the note that one was tried."""
    for path, _, _ in list(entries()):
        Archive(path, Java("", 0, "")).remove()
    home = folder()
    if home is not None:
        with contextlib.suppress(OSError):
            (home / "tried").unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it; what can't be removed stays."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _key(java: Java, spark_home: str) -> str:
    """A name for this JVM, this Spark and its JARs: the JVM checks sizes and times of JARs itself, so they count."""
    home = Path(java.home)
    jars = sorted(entry.name for entry in Path(spark_home, "jars").iterdir() if entry.suffix == ".jar")
    seen = [_stamp(Path(spark_home, "jars", name)) for name in jars]
    said = (home / "release").read_text(encoding="utf-8", errors="replace") if (home / "release").is_file() else ""
    modules = home / "lib" / "modules"
    facts = [
        str(home),
        said,
        _stamp(modules) if modules.is_file() else _stamp(Path(java.executable)),
        spark_home,
        list(zip(jars, seen, strict=True)),
    ]
    return f"java{java.version}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]}"


def _stamp(path: Path) -> list[int]:
    there = path.stat()
    return [there.st_size, there.st_mtime_ns]


def _look(path: Path) -> dict[str, Any]:
    """Size, time and a digest of the first bytes: enough to see that a file was cut, filled or exchanged."""
    with path.open("rb") as file:
        there = os.fstat(file.fileno())
        head = hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()
    return {"size": there.st_size, "mtime_ns": there.st_mtime_ns, "head": head}


def _is_ours(path: Path) -> bool:
    """Whether only this user or root can have written it: what stands in it will run."""
    there = path.stat()
    return there.st_uid in (os.geteuid(), 0) and not there.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
