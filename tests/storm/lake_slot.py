"""One place among the writers of a storm: one process after the other, each goes on where the last STATE says."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tapprocess import PYTHON, environment

TAP = "tap-storm"
PATIENCE_SECONDS = 150.0
ROWS_A_STATE = 3
MOST_ROWS = 240  # a run's rows fit into a pipe, so that nobody waits for a process that is stopped

ENDINGS = {"end": 3, "kill": 6, "pause": 4, "pause and kill": 1, "term": 1, "closed": 1}
"""How runs end, and how often of all: at the end of input; SIGKILL; SIGSTOP for longer than the ttl, then SIGCONT; the
same without SIGCONT; SIGTERM; the reader of its STATEs goes away."""

CODES = {
    "end": {0, 3},
    "kill": {-signal.SIGKILL, 0, 3},
    "pause": {0, 3},
    "pause and kill": {-signal.SIGKILL, 0, 3},
    "term": {0, 3, 143, -signal.SIGTERM},
    "closed": {0, 3, 4},
}


@dataclass(frozen=True)
class Part:
    """What a slot writes: ``variant`` makes schema versions of one stream."""

    number: int
    streams: tuple[str, ...]
    variant: int = 0


PARTS = (
    Part(0, ("one",)),
    Part(1, ("one",)),
    Part(2, ("one",), variant=1),
    Part(3, ("two",)),
    Part(4, ("two",), variant=1),
    Part(5, ("one", "two", "three"), variant=1),
)
"""Two writers of one schema version, one of another; and one of several streams, among them those of others."""


@dataclass
class Ledger:
    """What a slot knows. ``acked``: number of the last row that a STATE has covered; ``sent``: the last ever.
    ``tails``: runs that give their locks back after each commit."""

    part: Part
    acked: int = 0
    sent: int = 0
    runs: int = 0
    states: int = 0
    tails: set[int] = field(default_factory=set)
    figures: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Slot:
    """The runs of one part, from one thread.

    Args:
        ttl_seconds: of locks.
        url: the lake.
        variables: for the processes.
        folder: for what they say on stderr.
    """

    def __init__(
        self, part: Part, *, url: str, ttl_seconds: float, variables: Mapping[str, str], folder: Path, seed: int
    ) -> None:
        self.ledger = Ledger(part)
        self._part, self._url, self._ttl = part, url, ttl_seconds
        self._variables, self._folder = variables, folder
        self._chance = random.Random(f"{seed}-{part.number}")

    def go(self, until: float) -> None:
        """Runs, one after the other, until then (``time.monotonic``)."""
        while time.monotonic() < until and not self.ledger.failures:
            ending = self._chance.choices(list(ENDINGS), list(ENDINGS.values()))[0]
            self.run(ending, self._chance.randrange(ROWS_A_STATE, MOST_ROWS))

    def rest(self) -> None:
        """A last run that nobody disturbs."""
        self.run("end", 3 * ROWS_A_STATE, codes={0})

    def run(self, ending: str, rows: int, *, codes: set[int] | None = None) -> None:
        """One process, from its beginning to its end."""
        ledger = self.ledger
        ledger.runs += 1
        errors = self._folder / f"stderr-{self._part.number}-{ledger.runs}.txt"
        with (
            errors.open("wb") as said,
            subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment(PYTHONFAULTHANDLER="1", **self._variables),
            ) as process,
        ):
            watch = threading.Thread(target=self._listen, args=(process, ending), daemon=True)
            watch.start()
            guard = threading.Timer(PATIENCE_SECONDS, process.send_signal, (signal.SIGABRT,))  # says where it stands
            guard.start()
            try:
                self._drive(process, ending, rows)
                code = process.wait()
            finally:
                hung = not guard.is_alive()
                guard.cancel()
                process.kill()
            watch.join()
        text = errors.read_text(errors="replace")
        allowed = codes or CODES[ending]
        if hung:
            ledger.failures.append(f"{self._name(ending)}: hung for {PATIENCE_SECONDS} s\n{text}")
        elif code not in allowed or (code >= 0 and "Traceback" in text):
            ledger.failures.append(f"{self._name(ending)}: exit code {code}\n{text}")
        ledger.figures[f"ended by {ending}"] += 1
        ledger.figures[f"exit code {code}"] += 1
        if code == 3:
            ledger.figures["waited in vain" if "waited" in text else "put aside"] += 1

    def _name(self, ending: str) -> str:
        return f"slot {self._part.number}, run {self.ledger.runs}, {ending}"

    def _command(self) -> list[str]:
        most = self._chance.choice((ROWS_A_STATE, 10, 40))
        options = {
            "--tap-id": TAP,
            "--max-file-records": most,
            "--max-file-age-seconds": self._chance.choice((0.1, 0.5)),
            "--lock-ttl-seconds": self._ttl,
            "--lock-timeout-seconds": 30,
        }
        command = [
            PYTHON,
            "-m",
            "burler",
            "lake",
            "write",
            self._url,
            *(str(x) for pair in options.items() for x in pair),
        ]
        if self._chance.random() < 0.2:
            self.ledger.tails.add(self.ledger.runs)
            command.append("--tail")
        return command

    def _listen(self, process: subprocess.Popen[bytes], ending: str) -> None:
        """STATE lines, as they come out."""
        assert process.stdout is not None
        leave_after = self._chance.randrange(1, 6) if ending == "closed" else None
        with contextlib.suppress(ValueError):
            for line in process.stdout:
                if not line.endswith(b"\n"):
                    break  # torn by a kill
                message = json.loads(line)
                number = message["value"]["n"]
                if message["type"] != "STATE" or not self.ledger.acked <= number <= self.ledger.sent:
                    self.ledger.failures.append(f"{self._name(ending)}: {line!r} after {self.ledger.acked}")
                self.ledger.acked = number
                self.ledger.states += 1
                if leave_after is not None and self.ledger.states % 7 >= leave_after:
                    break
        process.stdout.close()

    def _drive(self, process: subprocess.Popen[bytes], ending: str, rows: int) -> None:
        assert process.stdin is not None
        states = self.ledger.states
        self._send(process, b"".join(self._schema(stream) for stream in self._part.streams))
        first = number = self.ledger.acked + 1
        strike = self._chance.random() * 3.0 if self._chance.random() < 0.2 else None  # else: once a STATE is out
        begun, after = time.monotonic(), self._chance.random() * 0.5
        struck = ending in ("end", "closed")
        while number < first + rows and process.poll() is None:
            self._send(process, self._rows(number))
            number += ROWS_A_STATE
            time.sleep(self._chance.choice((0.0, 0.0, 0.01, 0.05)))
            if not struck and strike is None and self.ledger.states > states:
                strike = time.monotonic() - begun + after
            if not struck and strike is not None and time.monotonic() - begun >= strike:
                struck = True
                self._strike(process, ending)
        deadline = time.monotonic() + 5
        while not struck and process.poll() is None:
            due = strike is not None and time.monotonic() - begun >= strike
            if due or self.ledger.states > states or time.monotonic() > deadline:
                struck = True
                self._strike(process, ending)
            time.sleep(0.01)
        with contextlib.suppress(OSError):
            process.stdin.close()

    def _strike(self, process: subprocess.Popen[bytes], ending: str) -> None:
        if process.poll() is not None:
            return
        if ending == "term":
            process.send_signal(signal.SIGTERM)
        elif ending == "kill":
            process.kill()
        elif ending.startswith("pause"):
            process.send_signal(signal.SIGSTOP)
            time.sleep(self._ttl * self._chance.uniform(1.1, 3.0))
            if ending == "pause":
                process.send_signal(signal.SIGCONT)
            else:
                process.kill()

    def _send(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended
            process.stdin.write(data)
            process.stdin.flush()

    def _schema(self, stream: str) -> bytes:
        properties = {"slot": {"type": "integer"}, "run": {"type": "integer"}, "n": {"type": "integer"}}
        extra = {f"v{self._part.variant}": {"type": ["null", "string"]}} if self._part.variant else {}
        schema = {"type": "object", "properties": properties | extra}
        return _line({"type": "SCHEMA", "stream": stream, "key_properties": ["slot", "n"], "schema": schema})

    def _rows(self, number: int) -> bytes:
        """Some rows, one stream after the other, and the STATE behind them."""
        lines = []
        for n in range(number, number + ROWS_A_STATE):
            record = {"slot": self._part.number, "run": self.ledger.runs, "n": n}
            stream = self._part.streams[n % len(self._part.streams)]
            lines.append(_line({"type": "RECORD", "stream": stream, "record": record}))
        last = number + ROWS_A_STATE - 1
        self.ledger.sent = max(self.ledger.sent, last)
        lines.append(_line({"type": "STATE", "value": {"slot": self._part.number, "n": last}}))
        return b"".join(lines)


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
