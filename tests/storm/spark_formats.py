"""Publications killed at random moments while somebody reads: ``python formats_storm.py 20``.

For each format a process publishes version after version; it is killed with SIGKILL at a random moment, some twenty
times. A reader that is not burler looks all the while. At the end each version that a process had told about is there,
no reader ever saw half of one, and nothing that a killed process left lies about. The publications need no Spark: what
is shown here is the last step of an export, and ``export_storm.py`` beside it kills whole exports.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
for _folder in (HERE, HERE.parents[1]):
    sys.path.append(str(_folder))

ROWS = 50


def storm(format: Any, rounds: int, dice: random.Random) -> list[str]:
    """Faults found with one format; none is right."""
    from format_readers import reader

    faults: list[str] = []
    over = threading.Event()
    read = reader(format)

    def look() -> None:
        while not over.is_set():
            try:
                faults.extend(judged(read()))
            except Exception as error:
                faults.append(f"{format.kind}: a reader failed: {error!r}")
            time.sleep(0.01)

    told = 0
    _publish(format, 1)  # a table to look at
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(rounds):
            told = max(told, _killed(format, dice.uniform(0.1, 1.2)))
            target = format.target()
            number = target.open().numbers["n"]
            if number < told:
                faults.append(f"{format.kind}: version {told} had been told, and the table is at {number}")
            if {text for _, text in read()} != {f"round {number}"}:
                faults.append(f"{format.kind}: the rows are not those of round {number}")
    finally:
        over.set()
        watcher.join()
    left = [str(path) for path in format.folder.rglob("_pending-*")]
    if format.ask:
        left += [str(row) for row in format.ask("select tablename from pg_tables where tablename like '%stage%'")]
    print(f"{format.kind}: {rounds} kills, {told} publications, {len(faults)} faults, {len(left)} leftovers")
    return faults + [f"{format.kind}: left behind: {one}" for one in left]


def judged(rows: list[tuple[int, str]]) -> list[str]:
    """What is wrong with the rows that a reader saw."""
    texts = {text for _, text in rows}
    if len(rows) == ROWS and len(texts) == 1:
        return []
    return [f"a reader saw {len(rows)} rows of {sorted(texts)}"]


def _publish(format: Any, rounds: int) -> subprocess.Popen[str]:
    about = {"kind": format.kind, "place": format.place, "options": dict(format.options), "rows": ROWS}
    about |= {"change": "replace", "rounds": rounds}
    command = [sys.executable, str(HERE / "publishing.py"), json.dumps(about)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if rounds == 1:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    return process


def _killed(format: Any, seconds: float) -> int:
    """Publish until killed ``seconds`` after the first publication; the last number that was told."""
    process = _publish(format, 100_000)
    assert process.stdout is not None and process.stderr is not None
    first = process.stdout.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    lines = [line for line in (first, *process.stdout.readlines()) if line.endswith("]\n")]
    said = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL, said
    return max(json.loads(line)[1] for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if anything was wrong."""
    from format_names import FILES

    from support import postgres

    sys.path.append(str(HERE.parents[2]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=20, help="kills of each format")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--formats", default=",".join((*FILES, "postgres")))
    said = parser.parse_args(arguments)
    print(f"seed {said.seed}")
    dice, faults = random.Random(said.seed), []
    for name in said.formats.split(","):
        with contextlib.ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="burler-storm-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server = stack.enter_context(postgres.running()) if name == "postgres" else None
            faults += storm(_format(name, folder, server), said.rounds, dice)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def _format(name: str, folder: Path, server: Any) -> Any:
    from format_places import Format

    from support.internals import opening

    if server is None:
        # A reader here may be slower than many publications.
        options = {"keep_versions": "100000"} if name == "parquet" else {}
        return Format(name, opening.place_of(name, str(folder), "tap-x", "things", "tap-x", "things"), options, folder)
    from support import postgres

    database = server.new_database()
    url = f"postgresql://burler@127.0.0.1:{server.port}/{database}"
    place = opening.place_of("jdbc", url, "", "", "tap-x", "things")
    return Format("jdbc", place, {"password": postgres.PASSWORD}, folder, lambda text: server.ask(text, database))


if __name__ == "__main__":
    raise SystemExit(main())
