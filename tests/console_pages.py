"""Pages of docs as sessions in a shell: files are saved as the text says, commands typed, outputs compared.

A block behind a line that says "as `NAME`" near its end, which is a colon, is saved as NAME. In a ``console`` block a
line with ``$ `` in front is typed; what follows it is what it prints. ``...`` stands for any text, alone in a line for
any lines. Moments, versions and sizes of files are the page's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"as `([^`\n]+)`[^`\n]*:\n\n$")
_OWN = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z"), "MOMENT"),
    (re.compile(r"  \d+\.\d  "), "  SECONDS  "),
    (re.compile(r'"version":\d{13}'), '"version":N'),
    (re.compile(r"\d+(\.\d)? (B|KiB)  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "SIZE  MOMENT"),
)


class Shell:
    """A bash in a folder, in which burler's commands are known."""

    def __init__(self, folder: Path, **environment: str) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, command: str) -> str:
        """Type a command; gives what stood on the screen until it was done (a program in the background: until it has
        said something)."""
        mark = uuid.uuid4().hex
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{command}\nprintf '%s\\n' {mark}\n")
        self._process.stdin.flush()
        said: list[str] = []
        for line in self._process.stdout:
            if line.strip() == mark:
                break
            said.append(line)
        if command.endswith("&") and not said:
            said.append(self._process.stdout.readline())
        return "".join(said)

    def close(self) -> None:
        """End all that was begun in it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        os.killpg(self._process.pid, 15)
        self._process.kill()
        self._process.wait(30)
        self._process.stdin.close()
        self._process.stdout.close()


def steps(page: str) -> Iterator[tuple[str, str, str]]:
    """What a reader does: ``("save", name, text)`` and ``("type", command, output)``, in order."""
    for found in _BLOCK.finditer(page):
        kind, body = found[1], found[2]
        saved = _SAVED.search(page[: found.start()])
        if kind == "console":
            yield from _typed(body)
        elif saved:
            yield "save", saved[1], body


def _typed(body: str) -> Iterator[tuple[str, str, str]]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield "type", command, output


def matches(shown: str, said: str) -> bool:
    """Whether a page shows what a command has said."""
    parts = []
    for line in _plain(shown).rstrip("\n").split("\n"):
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(map(re.escape, line.split("..."))) + "\n")
    text = _plain(said).rstrip("\n") + "\n"
    return re.fullmatch("".join(parts), text) is not None


def _plain(text: str) -> str:
    for pattern, word in _OWN:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))
