"""Where the files of a measured program go: a folder that is gone afterwards, or one that was asked for."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder in the working directory, so that all programs write to one disk; or ``BENCH_FILES``, which stays."""
    kept = os.environ.get("BENCH_FILES")
    if kept is not None:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(dir=".") as made:
        yield Path(made).resolve()


def small_files() -> dict[str, int]:
    """More of a ``batch_config`` where files are looked at: several of them."""
    return {"batch_size": 1000} if "BENCH_FILES" in os.environ else {}
