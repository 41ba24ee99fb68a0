"""A run by the command line, whose STATE lines are the state of the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract.files import HERE, burler
from contract.taps import told


def count(folder: Path, upto: int, scope: str, lines: Path | None = None) -> list[dict[str, Any]]:
    """The messages of a run of the tap that counts, from the STATE lines of a file on."""
    config = folder / "config.json"
    config.write_text(json.dumps({"upto": upto, "state_scope": scope}))
    state = () if lines is None else ("--state", lines)
    done = burler("run", f"{HERE / 'apps.py'}:counting", "--config", config, *state)
    assert done.code == 0, done
    return told(done.lines())
