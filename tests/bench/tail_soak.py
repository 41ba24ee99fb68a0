"""A tail for an hour at a high pace: does its memory stay flat, does every row come out?

    python tests/bench/tail_soak.py                     an hour
    python tests/bench/tail_soak.py --minutes 2
    python tests/bench/tail_soak.py --trace grown.txt   what of Python's memory has grown, too (slower)

It runs tail_soak_tap.py (polled streams, substreams, partitions, full tables, streams that push, one that fails), reads
all it writes, sends a SIGHUP each minute and a SIGTERM at the end, and prints a line each minute. Exit code 1: a row is
missing, a version is not whole, the last STATE does not say what is out, or memory, files or threads have grown.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import orjson

TAP = Path(__file__).with_name("tail_soak_tap.py")
SAMPLE_SECONDS, WARM_SECONDS = 5.0, 300.0
# Rows at the end that the last STATE need not cover: those of a place that is set behind ten rows, of a parent whose
# children are not all out, of a poll in no order that was cut. All other streams are in order: none.
LAG = {"events": 10, "bells": 1, "orders": 20} | {f"plain{n}": 100 for n in range(1, 8, 2)}
GROWTH = 1.15  # of the median RSS of the last tenth, over that of the tenth behind the first five minutes


class Reader(threading.Thread):
    """Reads what the tap writes, and keeps no row: of each stream the last one, in their order 1, 2, 3."""

    def __init__(self, pipe) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.rows: Counter[str] = Counter()
        self.repeated: Counter[str] = Counter()
        self.last: dict[tuple[str, str], int] = {}
        self.ahead: dict[tuple[str, str], set[int]] = {}
        self.states = self.schemas = self.versions = 0
        self.wrong: list[str] = []
        self.state: dict = {}
        self._table: tuple[int, int] = (0, 0)
        self._table_rows: set[int] = set()

    def run(self) -> None:
        """Until the tap closes its stdout."""
        for line in self.pipe:
            try:
                self._take(orjson.loads(line))
            except Exception as error:
                self.wrong.append(f"{error}: {line[:200]!r}")
                if len(self.wrong) > 20:
                    return

    def _take(self, message: dict) -> None:
        kind = message["type"]
        if kind == "RECORD":
            self.rows[message["stream"]] += 1
            self._row(message["stream"], message["record"], message.get("version"))
        elif kind == "STATE":
            self.states += 1
            self.state = message["value"]
            if held := {key for key, ids in self.ahead.items() if len(ids) > 5000}:
                self.wrong.append(f"{held} miss the row after {[self.last.get(key) for key in held]}")
        elif kind == "SCHEMA":
            self.schemas += 1
        elif kind == "ACTIVATE_VERSION" and message["stream"] == "table":
            self.versions += 1
            if self._table_rows and message["version"] == self._table[0] and len(self._table_rows) != 2000:
                self.wrong.append(f"version {message['version']} is active with {len(self._table_rows)} rows")

    def _row(self, name: str, row: dict, version: int | None) -> None:
        number = row["id"]
        if name == "table":
            if version != self._table[0]:
                if version < self._table[0]:
                    self.wrong.append(f"version {version} comes after {self._table[0]}")
                self._table, self._table_rows = (version, 0), set()
            self._table_rows.add(number)
            return
        key = name, row.get("shop", "")
        last, ahead = self.last.get(key, 0), self.ahead.setdefault(key, set())
        if number <= last or number in ahead:
            self.repeated[name] += 1
        else:
            ahead.add(number)
            while last + 1 in ahead:
                last += 1
                ahead.remove(last)
            self.last[key] = last

    def check_end(self) -> None:
        """What must be true once all is read: no row is missing, and the last STATE covers exactly what is out."""
        bookmarks = self.state.get("bookmarks", {})
        for (name, shop), last in self.last.items():
            entry = bookmarks.get(name, {})
            if shop:
                entry = entry.get("partitions", {}).get(shop, {})
            said = entry.get("stream_state", {}).get("place", entry.get("id"))
            left = self.ahead[name, shop]
            if name == "lines":
                continue  # has no bookmark: its parent's speaks for it
            # A poll that was cut leaves rows of a stream in no order that no STATE covers, with holes among them.
            if said is None or said > last or last - said > LAG.get(name, 0) or (left and name not in LAG):
                self.wrong.append(
                    f"{name} {shop}: the last STATE says {said}, rows are out to {last}, {len(left)} more"
                )


def sample(pid: int) -> tuple[float, int, int]:
    """RSS in MB, open files, threads."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(status["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])  # noqa: PTH208


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median(values: list) -> float:
    """The one in the middle."""
    return sorted(values)[len(values) // 2]


def soak(seconds: float, *, trace: str | None, hangup_seconds: float, log: Path) -> tuple[Reader, list, int]:
    """Run the tap for so long; the reader, the samples (seconds, RSS, files, threads), the exit code."""
    command = [sys.executable, "-m", "burler", "run", str(TAP), "--tail", "--state-message-min-interval-ms", "1000"]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BURLER_", "SOAK_"))}
    env |= {"SOAK_TRACE": str(Path(trace).absolute())} if trace else {}
    samples: list[tuple[float, float, int, int]] = []
    with log.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=env) as child:
        reader = Reader(child.stdout)
        reader.start()
        begun = told = hung_up = time.monotonic()
        while (now := time.monotonic()) - begun < seconds and child.poll() is None and not reader.wrong:
            time.sleep(min(SAMPLE_SECONDS, seconds))
            samples.append((time.monotonic() - begun, *sample(child.pid)))
            if now - hung_up >= hangup_seconds:
                child.send_signal(signal.SIGHUP)
                hung_up = now
            if now - told >= 60:
                told = now
                tell(reader, samples[-1], cpu_seconds(child.pid))
        child.send_signal(signal.SIGTERM)
        reader.join(60)
        code = child.wait(30)
    return reader, samples, code


def tell(reader: Reader, now: tuple[float, float, int, int], cpu: float) -> None:
    """A line of figures."""
    seconds, rss, files, threads = now
    rows, repeated = sum(reader.rows.values()), sum(reader.repeated.values())
    print(
        f"{seconds / 60:5.1f} min  RSS {rss:6.1f} MB  files {files:3d}  threads {threads:2d}  rows {rows:9d} "
        f"({rows / seconds:6.0f}/s, {repeated} twice)  STATE {reader.states}  versions {reader.versions}  "
        f"CPU {cpu / seconds:4.0%}  load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def growth(samples: list[tuple[float, float, int, int]]) -> list[str]:
    """What has grown between the tenth behind the first five minutes and the last tenth."""
    warm = [one for one in samples if one[0] > WARM_SECONDS]
    if len(warm) < 20:
        print("too short to say what grows")
        return []
    tenth = max(1, len(warm) // 10)
    found = []
    for at, name, bound in ((1, "RSS", GROWTH), (2, "open files", 1.0), (3, "threads", 1.0)):
        first, last = median([one[at] for one in warm[:tenth]]), median([one[at] for one in warm[-tenth:]])
        print(f"{name}: {first:.1f} then, {last:.1f} at the end")
        if last > first * bound + (2 if at > 1 else 0):
            found.append(f"{name} has grown from {first:.1f} to {last:.1f}")
    return found


def main(args: list[str] | None = None) -> int:
    """Soak; gives the exit code."""
    parser = argparse.ArgumentParser(description="A tail at a high pace: memory, files, threads, rows.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--hangup-seconds", type=float, default=60, help="between two SIGHUPs")
    parser.add_argument("--trace", help="a file for what tracemalloc says each minute")
    given = parser.parse_args(args)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        log = Path(folder) / "log"
        reader, samples, code = soak(
            given.minutes * 60, trace=given.trace, hangup_seconds=given.hangup_seconds, log=log
        )
        said = log.read_text(errors="replace")
    reader.check_end()
    wrong = [*reader.wrong, *growth(samples)]
    if code:
        wrong.append(f"exit code {code}; its log ends with:\n{said[-1500:]}")
    levels = Counter(line.partition(" ")[0] for line in said.splitlines())
    rows = dict(reader.rows)
    print(f"rows {rows}\ntwice {dict(reader.repeated)}")
    print(f"SCHEMA {reader.schemas}, STATE {reader.states}, log lines {dict(levels)}")
    print("\n".join(wrong) if wrong else "nothing is missing, nothing has grown too much")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
