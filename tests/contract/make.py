"""Makes the contract files: what one commit wrote and said, for later ones to be held against.

It is run in an environment of that commit, from any folder, and writes beside itself::

    git clone . ../c550d9f && cd ../c550d9f && git checkout c550d9f
    python3.11 -m venv .venv && .venv/bin/pip install -e '.[lake,spark,java,test]'
    .venv/bin/python HERE/tests/contract/make.py [states] [lakes] [tables] [offsets] [batch] [interface]

Without words it makes all of them; tables and offsets are made of the lakes.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract import taps
from contract.files import CONTRACT, write_lines


def states() -> None:
    """A file a kind: the STATEs of the first run, then from each of them the messages of the second."""
    logging.disable(logging.CRITICAL)
    for name in taps.KINDS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            first = taps.run(name, 1)
            lines = [{"states": first.states}]
            for state in taps.starts(name, first.states):
                messages = taps.told(taps.run(name, 2, state).messages)
                if len(lines) > 1:  # the schemas are the same each time
                    messages = [message for message in messages if message["type"] != "SCHEMA"]
                lines.append({"from": state, "messages": messages})
            write_lines(CONTRACT / "states" / f"{name}.jsonl", lines)
            os.chdir("/")
    logging.disable(logging.NOTSET)


PARTS: dict[str, Callable[[], None]] = {"states": states}


def main(words: list[str]) -> None:
    """Make what is asked for."""
    for word in words or PARTS:
        for old in CONTRACT.glob(word):
            shutil.rmtree(old)
        PARTS[word]()


if __name__ == "__main__":
    main(sys.argv[1:])
