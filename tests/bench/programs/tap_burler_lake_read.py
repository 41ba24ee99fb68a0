"""burler reads a lake: its command, pages of lines, dicts, or Arrow.

Run as: tap_burler_lake_read.py VARIANT readlines|readpages|readrows|readarrow ROWS (VARIANT is not looked at).
"""

from __future__ import annotations

import sys

import clock
import given

import burler.lake


def main(work: str, rows: int) -> None:
    """Read all of it; the rows are let go at once, or shown where they are compared."""
    if work == "readlines":
        from burler.__main__ import main as command

        sys.argv[1:] = ["lake", "read", str(given.lake())]
        command()
    reading = burler.lake.read(str(given.lake()))
    read = 0
    if work == "readpages":
        for page in reading.pages():
            read += page.count
            if given.SHOWN:
                sys.stdout.buffer.write(page.lines)
    elif work == "readrows":
        if given.SHOWN:
            given.show(reading.rows())
        for _row in reading.rows():
            read += 1
    else:
        for batch in reading.arrow():
            read += batch.num_rows
            if given.SHOWN:
                given.show(batch.to_pylist())
    given.count(read, rows)


if __name__ == "__main__":
    with clock.measured("burler", "msgspec"):
        main(sys.argv[2], int(sys.argv[3]))
