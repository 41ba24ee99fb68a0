"""A process that publishes a table and is killed on the way: run as ``python publishing.py '<JSON>'``.

It prints one line for each publication that ended, with its version and number.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))


def filling(number: int, width: int) -> str:
    """Text that does not compress, the same in each process."""
    return "".join(hashlib.sha256(b"%d %d" % (number, at)).hexdigest() for at in range(width // 64))


def main(said: dict[str, Any]) -> None:
    """Keys: kind, place, options, change (append, replace, merge), at (where to die: write, check, point; or absent),
    limit (bytes of a file that the disk takes), rounds, rows."""
    from format_samples import arrow, change, row

    from support.internals import opening

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if said.get("limit"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (said["limit"], said["limit"]))
    for _ in range(said.get("rounds", 1)):
        target = opening.open_target(
            said["kind"], said["place"], source="tap-x/things", options=said["options"], spark=lambda: None
        )
        before = target.open()
        if said.get("at") == "point":
            Path.replace = lambda *_names: die()  # the version is published, the pointer not yet
        number = before.numbers.get("n", 0) + 1
        first = 0 if said["change"] != "append" else said["rows"] * (number - 1)
        texts = (f"round {number}" + filling(at, said.get("width", 0)) for at in range(said["rows"]))
        rows = arrow([row(first + at, text) for at, text in enumerate(texts)])
        check = die if said.get("at") == "check" else lambda: None
        made = target.publish(rows, change(said["change"], numbers={"n": number}, check=check))
        print(json.dumps([made.version, number]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
