"""Rows that a table can't hold exactly: kept as they came, with file, line and field, where a person finds them.

``OUT/_quarantine/<tap>/<stream>/<export id>.jsonl``, one JSON object a line: ``tap``, ``stream``, ``file`` (inside the
stream's folder of the lake), ``line`` (from 1), ``field``, ``value`` (its source text, long ones cut), ``wanted``, and
``record``: the whole row as it stands in the lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from burler.errors import StorageError
from burler.localfile import hidden_file

FOLDER = "_quarantine"
_SHOWN = 1_000


class BadRow(msgspec.Struct, frozen=True):
    """One line of a data file whose row is in no table. ``field`` is empty where the line as a whole is at fault."""

    file: str
    line: int
    field: str
    value: str
    wanted: str
    record: str

    @property
    def fault(self) -> str:
        """For an error: what is wrong, in one line. The value stands in the file alone."""
        place = f", field '{self.field}'" if self.field else ""
        what = "its value" if self.field else "it"
        return f"{self.file} line {self.line}{place}: {what} can't be held exactly; wanted: {self.wanted}"


def bad_row(file: str, line: int, path: tuple[str, ...], value: str, wanted: str, record: bytes) -> BadRow:
    """One of a value that does not fit; texts come out as UTF-8 whatever the lake has."""
    return BadRow(file, line, ".".join(path), value[:_SHOWN], wanted, record.decode("utf-8", "backslashreplace"))


def write_bad(rows: Iterable[BadRow], path: Path) -> int:
    """Add rows to a file in a staging folder; how many.

    Raises:
        StorageError: the file can't be written.
    """
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            for row in rows:
                file.write(msgspec.json.encode(row) + b"\n")
                count += 1
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error}") from error
    return count


def read_bad(path: Path) -> Iterator[BadRow]:
    """What ``write_bad`` wrote."""
    decode = msgspec.json.Decoder(BadRow).decode
    with path.open("rb") as file:
        yield from map(decode, file)


def publish(bad: Path, folder: Path, *, tap_id: str, stream: str, export_id: str) -> Path:
    """Put the rows of a staging folder where the user finds them: ``folder/<export_id>.jsonl``, whole or not at all.

    Args:
        folder: ``OUT/_quarantine/<tap>/<stream>``; made if missing.

    Raises:
        StorageError: it can't be written.
    """
    place = folder / f"{export_id}.jsonl"
    head = {"tap": tap_id, "stream": stream}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hidden_file(place) as waiting:
            with open(waiting.fd, "wb", closefd=False) as file:
                for row in read_bad(bad):
                    file.write(msgspec.json.encode(head | msgspec.structs.asdict(row)) + b"\n")
            waiting.sync()
            waiting.path.replace(place)
    except OSError as error:
        raise StorageError(f"{place} can't be written: {error}. The rows are still in the lake") from error
    return place
