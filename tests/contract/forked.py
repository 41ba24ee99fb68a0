"""Runs commands of burler's: ``python forked.py FOLDER``, see ``contract.files.several``.

A command whose first word is ``tap-shop`` is that of the tap itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path


def ended(words: list[str]) -> int:
    """Run one command in this process: its exit code."""
    from burler.__main__ import main

    sys.argv = ["burler", *words]
    try:
        if words[0] == "tap-shop":
            import apps

            sys.argv = words
            apps.first.cli()
        else:
            main()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


def forked(folder: Path, number: int, words: list[str]) -> int:
    """The same in a process of its own: its id."""
    child = os.fork()
    if child:
        return child
    for fd, (path, flags) in enumerate(
        (
            (folder / "stdin", os.O_RDONLY),
            (folder / f"{number}-out", os.O_WRONLY | os.O_CREAT),
            (folder / f"{number}-err", os.O_WRONLY | os.O_CREAT),
        )
    ):
        os.dup2(os.open(path, flags, 0o600), fd)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(fd, mode) for fd, mode in ((0, "r"), (1, "w"), (2, "w")))
    code = ended(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve(folder: Path) -> None:
    """Run what is asked for."""
    asked = json.loads((folder / "asked").read_text())
    (folder / "stdin").write_text(asked["stdin"])
    with contextlib.redirect_stdout(io.StringIO()):
        ended(["--help"])  # imports what all of them need, and nothing that begins threads
    running: dict[int, int] = {}
    codes: dict[int, int] = {}
    for number, words in enumerate(asked["commands"]):
        running[forked(folder, number, words)] = number
        while len(running) == 2 or (running and number + 1 == len(asked["commands"])):
            child, status = os.wait()
            codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
    (folder / "codes").write_text(json.dumps([codes[number] for number in range(len(codes))]))


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
