"""What a reading program was given, and how it shows what it read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN = "BENCH_SHOW" in os.environ


def lake() -> Path:
    """The folder of the lake."""
    return Path(os.environ["BENCH_GIVEN"]) / "lake"


def files() -> list[Path]:
    """Its data files, in the order of their names."""
    return sorted(lake().rglob("*.singer.gz"))


def show(rows: Iterable[Any]) -> None:
    """Write rows to stdout, one JSON object a line: exact numbers with all their digits, times in RFC 3339."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.Encoder(decimal_format="number").encode_lines(list(rows)))


def count(read: int, wanted: int) -> None:
    """Raises: SystemExit: not all rows were read."""
    if read != wanted:
        raise SystemExit(f"{read:,} rows were read, not {wanted:,}")
