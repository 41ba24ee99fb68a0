"""Which files of a lake hold rows that a table lacks, also once files have been compacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from burler.spark.lakefiles import LakeFile, LakeStream


def news(lake: LakeStream, taken: int, *, upsert: bool) -> tuple[LakeFile, ...] | None:
    """The files with the rows that the table lacks, in replay order; None if that can't be told."""
    found: list[LakeFile] = []
    for file in lake.files:
        known = _had(file, taken)
        if known == "some":
            names = [name for name, sequence in (file.replaces or {}).items() if sequence > taken]
            parts = [lake.replaced[name] for name in names if name in lake.replaced]
            if len(parts) == len(names) and all(part.records is not None for part in parts):
                found += parts
                continue
            if not upsert:
                return None
        if known != "all":
            found.append(file)  # to an upsert rows that the table has already are no harm
    return tuple(sorted(found, key=lambda file: file.rank))


def held(lake: LakeStream, taken: int) -> Iterator[LakeFile]:
    """The files with the rows that a table may hold already."""
    for file in lake.files:
        known = _had(file, taken)
        names = [name for name, sequence in (file.replaces or {}).items() if sequence <= taken]
        if known == "some" and all(name in lake.replaced for name in names):
            yield from (lake.replaced[name] for name in names)
        elif known is not None:
            yield file


def _had(file: LakeFile, taken: int) -> Literal["all", "some"] | None:
    """How many of a file's rows a table has that holds everything up to commit ``taken``; None: not one."""
    parts = (file.replaces or {}).values()
    if file.committed <= taken or (parts and max(parts) <= taken):
        return "all"
    return "some" if parts and min(parts) <= taken else None
