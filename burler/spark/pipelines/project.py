"""The files of a declarative-pipelines project for a lake: plain code that is its owner's from then on.

Rows come in as a stream by the lake's manifest (``format("singerlake")``), so a second run reads
only new commits; the latest row of each key is a view of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from burler.errors import StorageError, UsageError
from burler.lake.lake import Lake
from burler.lake.store import open_store
from burler.localfile import new_folder
from burler.spark.lakefiles import LakeStream, load_stream
from burler.spark.pipelines import texts


@dataclass(frozen=True, slots=True)
class _Table:
    """A stream and the name of its table: letters, digits and ``_``, once in the project whatever the case."""

    name: str
    stream: LakeStream


def write_project(
    lake: str, folder: Path, *, streams: Sequence[str] | None = None, taps: Sequence[str] | None = None
) -> list[Path]:
    """Write the project; gives the paths of its files.

    Args:
        folder: made anew; nothing in it is replaced.
        streams, taps: names to write tables for; all when left out.

    Raises:
        UsageError: no such lake, tap or stream; the folder holds something. LakeError: a manifest is broken.
        StorageError: the folder can't be written. Nothing of it is left then.
    """
    store = open_store(lake, must_exist=True)
    place = lake if "://" in lake else str(Path(lake).resolve())
    tables = _named(load_stream(store, *one.names) for one in Lake(store).wanted(taps=taps, streams=streams))
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: there is something already. Name a new folder: nothing is replaced")
    files = {
        "README.md": texts.readme([table.name for table in tables], place),
        "spark-pipeline.yml": texts.spec(folder.name, folder),
        "spark.conf": texts.conf(folder),
        ".gitignore": texts.IGNORED,
        **{f"transformations/{table.name}.py": _transformation(table, place) for table in tables},
    }
    try:
        _write(folder, files)
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}. Nothing is left there.") from None
    return [folder / name for name in files]


def _write(folder: Path, files: dict[str, str]) -> None:
    """All files or none: a folder beside it is filled, and takes its name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as made:
        for name, text in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _named(streams: Iterable[LakeStream]) -> list[_Table]:
    taken: set[str] = set()
    tables = []
    for stream in streams:
        plain = re.sub(r"[^a-z0-9]+", "_", f"{stream.tap_id}_{stream.stream}".lower()).strip("_") or "stream"
        plain = plain if plain[0].isalpha() else f"s_{plain}"
        number, name = 1, plain
        while {name, f"{name}_rows"} & taken:
            number += 1
            name = f"{plain}_{number}"
        taken |= {name, f"{name}_rows"}
        tables.append(_Table(name, stream))
    return tables


def _transformation(table: _Table, lake: str) -> str:
    stream = table.stream
    if not stream.versions:
        raise UsageError(f"stream '{stream.stream}': the lake knows no schema of it, so there is no table to make")
    newest = stream.versions[-1]
    versions = any(file.versions or file.activate_version is not None for file in stream.files)
    return texts.transformation(
        name=table.name,
        lake=lake,
        tap=stream.tap_id,
        stream=stream.stream,
        keys=newest.key_properties,
        order=[one for one in newest.bookmark_properties if one in (newest.schema.get("properties") or {})],
        full_table=versions,
    )
