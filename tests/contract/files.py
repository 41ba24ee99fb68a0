"""Where the contract's files are, and how they are read and written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
CONTRACT = HERE / "c550d9f"


class Ended(NamedTuple):
    """A command that has come to its end."""

    code: int
    out: str
    err: str

    def lines(self) -> list[Any]:
        """stdout, a JSON text a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def burler(*words: Any, stdin: str = "", cwd: Path | None = None) -> Ended:
    """Run the command line of the environment that this runs in, as a process."""
    command = [sys.executable, "-m", "burler", *map(str, words)]
    done = subprocess.run(command, input=stdin, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def read_lines(path: Path) -> list[Any]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    """A file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))


def read_json(path: Path) -> Any:
    """A file that holds one JSON text."""
    return json.loads(path.read_text())


def write_json(path: Path, value: Any) -> None:
    """A file that holds one JSON text, on many lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def parts(folder: Path) -> list[Path]:
    """All files below a folder, hidden ones too."""
    return sorted(path for path in folder.rglob("*") if path.is_file())
