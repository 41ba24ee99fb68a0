"""burler's side with a lake: the same tap, and a lake as its sink.

Run as: tap_burler_lake.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import json
import os
import sys

import clock
import filing
from tap_burler_batch import make_tap

if __name__ == "__main__":
    tap = make_tap("lake", int(sys.argv[3]))
    with filing.folder() as folder:
        config = folder / "config.json"
        config.write_text(json.dumps({"max_file_records": 1000} if "BENCH_FILES" in os.environ else {}))
        with clock.measured("burler", "msgspec"):
            tap.cli(["--config", str(config), "--sink", f"lake:{folder / 'lake'}"])
