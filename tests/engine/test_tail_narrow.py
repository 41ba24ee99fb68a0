"""The live table of a tail on a small terminal: it fits, the worst streams come first, and no name moves the cursor.
(What stands in it, and that it is gone at the end: tests/cli/test_live.py.)"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tapprocess import PYTHON, environment, write_tap
from terminals import Terminal

TAP = """
import burler
tap = burler.tap("tap-x")

def make(name, failing):
    @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
    def rows(stream):
        if failing:
            raise ValueError(chr(27) + "[2J no luck " * 30)
        yield {"id": (stream.bookmark or 0) + 1}

for number in range(30):
    make(f"a_stream_with_a_long_name_{number}", failing=number in (20, 25))
make(chr(27) + "[2J" + chr(13) + "Z" + chr(252) + "rich", failing=True)
"""


def test_it_fits_and_shows_the_worst(tmp_path: Path):
    app = write_tap(tmp_path, TAP)
    config = {"tail": True, "new_record_polling_interval_ms": 200}
    (tmp_path / "config.json").write_text(json.dumps(config))
    terminal = Terminal(60, 12)
    process = subprocess.Popen(
        [PYTHON, "-m", "burler", "run", str(app), "--config", str(tmp_path / "config.json")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal.theirs,
        env=environment(TERM="xterm"),
    )

    def table(lines: list[str]) -> list[str]:
        """The table, once it is drawn with all streams."""
        heads = [at for at, line in enumerate(lines) if line.startswith("tap-x: 31 streams, 3 failing, ")]
        return lines[heads[-1] :] if heads else []

    try:
        shown = table(terminal.wait(lambda lines: len(table(lines)) > 9))
    finally:
        process.kill()
        process.wait()
    terminal.close()
    assert len(shown) <= 12 and max(map(len, shown)) <= 60
    assert shown[1].split()[:2] == ["stream", "status"] and set(shown[2]) == {"-"}
    worst = [line.split("  ")[0] for line in shown[3:6]]
    assert all(line.isascii() and line.isprintable() for line in shown)
    assert any(line.startswith("\\x1b[2J\\x0dZ\\xfcrich") for line in shown[3:6]), worst
    assert sum("retrying" in line for line in shown[3:6]) == 3, worst
    assert any(line.startswith("... and ") and line.endswith(" more") for line in shown)
