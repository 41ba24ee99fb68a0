"""Taps as processes that tell on stderr when they have come to where they block."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tapprocess import PYTHON, environment, write_tap


@contextmanager
def started(
    folder: Path, source: str, *args: str, config: Mapping[str, Any] | None = None, **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """``burler run`` of a tap, killed at the end. Rows wait 50 ms at the most."""
    app = write_tap(folder, source)
    path = folder / "config.json"
    path.write_text(json.dumps({"page_max_age_seconds": 0.05, **(config or {})}))
    process = subprocess.Popen(
        [PYTHON, "-m", "burler", "run", str(app), "--config", str(path), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**env),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def wait_for(process: subprocess.Popen[bytes], text: bytes, count: int) -> bytes:
    """Read stderr until a text has come so often. Nobody reads stdout meanwhile: the tap must give less than 60 kB."""
    assert process.stderr is not None
    said = b""
    while said.count(text) < count:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said
