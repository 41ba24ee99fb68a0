"""Where the contract's files are, and how they are read and written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
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


def burler(*words: Any, stdin: str = "") -> Ended:
    """Run the command line of the environment that this runs in, as a process."""
    return several([words], stdin)[0]


def several(commands: Sequence[Sequence[Any]], stdin: str = "") -> list[Ended]:
    """Run several commands, each in a process of its own, two at a time.

    They are forked from one that has imported the command line: that costs half a second, for all of them once.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = {"commands": [[str(word) for word in words] for words in commands], "stdin": stdin}
        Path(folder, "asked").write_text(json.dumps(asked))
        environment = {**os.environ, "COLUMNS": "80"}
        server = [sys.executable, HERE / "forked.py", folder]
        done = subprocess.run(server, capture_output=True, text=True, env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        codes = json.loads(Path(folder, "codes").read_text())
        return [
            Ended(code, *(Path(folder, f"{i}-{name}").read_text() for name in ("out", "err")))
            for i, code in enumerate(codes)
        ]


def compact(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_lines(path: Path) -> list[Any]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    """A file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(compact(line) + "\n" for line in lines))


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
