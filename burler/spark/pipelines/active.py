"""Which rows of a full table count, for pipelines that keep all of them."""

from __future__ import annotations

from dataclasses import dataclass

from burler.lake.store import open_store
from burler.spark.lakefiles import load_stream


@dataclass(frozen=True, slots=True)
class Active:
    """The last ACTIVATE_VERSION of a stream: its table version, and the lake commit that it came with."""

    version: int
    sequence: int


def active_version(lake: str, *, tap: str, stream: str) -> Active | None:
    """The active version of a stream's full table by the lake's manifest; None where there was none.

    Rows of an older version, and rows without one, no longer count unless they came after it.

    Raises:
        UsageError: no such lake. LakeError: its manifest is broken.
    """
    last = None
    for file in load_stream(open_store(lake, must_exist=True), tap, stream).files:
        if file.activate_version is not None:
            last = Active(file.activate_version, file.sequence)
    return last
