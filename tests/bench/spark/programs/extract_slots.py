"""A source that waits, extracted at so many slots: ``extract_slots.py SLOTS PARTITIONS SECONDS``.

Prints JSON: ``wall`` is the second extraction in a warm session (its first one has started the workers), ``cold`` the
first one, in seconds; ``rows`` are those committed by one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

TAP = """
import time
import burler

tap = burler.tap("tap-waiting")

@tap.partitions("rows")
def parts():
    return [{"part": n} for n in range(%d)]

@tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def rows(partition):
    time.sleep(%s)
    return [{"id": partition["part"] * 1000 + n} for n in range(1000)]
"""


def main(slots: int, partitions: int, seconds: float) -> None:
    """Extract twice in one session."""
    from burler import spark
    from burler.spark import extract

    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "tap_waiting.py"
        app.write_text(TAP % (partitions, seconds))
        session = spark.session(master=f"local[{slots},3]")
        took, rows = [], 0
        for number in range(2):
            begun = time.monotonic()
            done = extract(session, app, Path(folder) / f"lake{number}", slots=slots)
            took.append(round(time.monotonic() - begun, 3))
            rows = done.rows["rows"]
        session.stop()
    print(json.dumps({"slots": slots, "wall": took[1], "cold": took[0], "rows": rows}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
