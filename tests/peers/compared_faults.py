"""What the programs of docs/comparison.md do when something is not as it should be.

As a script: ``python tests/peers/compared_faults.py``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import compared
import compared_shop
import peers_environment


class _Faulty(compared_shop.Shop):
    def __init__(self, fault: str) -> None:
        super().__init__(_rows(fault))
        self.kind = fault

    def fault(self, path: str) -> int:
        if self.kind == "busy" and len(self.asked) == 1:
            return 503
        return 400 if self.kind == "broken" and "page=3" in path else 0


def _rows(fault: str) -> list[dict[str, Any]]:
    rows = [dict(row) for row in compared_shop.ORDERS]
    if fault == "misfit":
        rows[3]["total"] = "a lot"
    return [{**row, "color": "red"} for row in rows] if fault == "new field" else rows


def _found(name: str, fault: str) -> str:
    """What came of a run, in a few words."""
    python = None if name == "burler" else peers_environment.make_compared(name) / "python"
    with tempfile.TemporaryDirectory() as folder, compared_shop.serving(_Faulty(fault)) as server:
        (Path(folder) / "config.json").write_text(json.dumps({"url": server.url}))
        try:
            rows = compared.PROGRAMS[name][1](Path(folder), python).rows
        except AssertionError as error:
            states = [line for line in str(error).splitlines() if '"STATE"' in line[:20] or '"type":"STATE"' in line]
            return f"fails; {len(states)} STATE, the last: {states[-1][:300] if states else None}"
    return f"{len(rows)} rows, the fourth: {rows[3]}"


if __name__ == "__main__":
    for fault in ("busy", "broken", "misfit", "new field"):
        for name in compared.PROGRAMS:
            sys.stdout.write(f"{fault} | {name} | {_found(name, fault)}\n")
            sys.stdout.flush()
