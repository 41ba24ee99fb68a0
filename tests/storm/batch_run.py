"""The runs of a story of the batch storm: processes that are killed, told to stop, cut off, or left without a disk."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batch_storm_checks import Ledger, Output
from batch_storm_plan import Chapter, Plan, plan
from batch_storm_store import Bucket, Disk, Store
from tapprocess import PYTHON, environment

PROGRAM = Path(__file__).with_name("batch_storm_taps.py")
TAP = "tap-batch-storm"
PATIENCE_SECONDS = 120.0
_LAST_WORD = re.compile(r"INFO BATCH: \d+ files? of ")  # the sink is closed; nothing is left to be stopped
_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT, "stopped": signal.SIGTERM}
_CODES = {
    "closed": (0, 4),
    "stopped": (0, 143),
    "term": (0,),
    "int": (0,),
    "kill": (0, -9),
    "full": (0, 1),
    "rest": (0,),
}


@dataclass
class Told:
    """How a story went. ``failure``: what was wrong."""

    plan: Plan
    figures: Counter[str] = field(default_factory=Counter)
    failure: str = ""


def story(seed: int, folder: Path, *, make: Callable[[int], Plan] = plan, server: Any = None) -> Told:
    """One story: its chapters, then a run to the end. ``server``: an S3 server, if files are to lie there."""
    made = make(seed)
    own = folder / f"seed-{seed}"
    own.mkdir(parents=True)
    ledger = Ledger(made)
    store: Store = Disk(own / "batches") if server is None else Bucket(server, own.name)
    told = Told(made, ledger.figures)
    run = None
    try:
        for number, chapter in enumerate(made.chapters):
            run = Run(made, own, str(number), ledger, store)
            run.chapter(chapter)
        run = Run(made, own, "rest", ledger, store)
        run.rest()
    except AssertionError as error:
        said = run.stderr[-3000:] if run is not None else ""
        told.failure = f"seed {seed}: {run and run.name}: {error}\n{made}\n{own}\n{said}"
    else:
        shutil.rmtree(own)
    return told


class Run:
    """One run of the tap."""

    def __init__(self, made: Plan, folder: Path, name: str, ledger: Ledger, store: Store) -> None:
        self.plan, self.name, self._folder, self._ledger, self._store = made, name, folder, ledger, store
        self._errors = bytearray()
        self._early: list[str] = []  # what was wrong the moment it came

    @property
    def stderr(self) -> str:
        """What it has said."""
        return self._errors.decode(errors="replace")

    def chapter(self, chapter: Chapter) -> None:
        """A run that does not come to its end, or hardly.

        Raises:
            AssertionError: something that must not be.
        """
        before = set(self._ledger.named)
        with self._disk(chapter):
            got, code = self._go(chapter)
            self._judge(chapter.ending, got, code, chapter)
            if self._is_small():  # it goes with its files
                self._ledger.named = before
        self._ledger.figures[f"runs: {chapter.ending}"] += 1

    def rest(self) -> None:
        """A run to the end, from the last STATE.

        Raises:
            AssertionError: it does not get there, or something is missing.
        """
        got, code = self._go(None)
        output = self._judge("rest", got, code, None)
        self._ledger.finish(output)

    def _judge(self, ending: str, got: bytes, code: int, chapter: Chapter | None) -> Output:
        whole, _, torn = got.rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        (self._folder / f"out-{self.name}.jsonl").write_bytes(got)
        # A signal to a process that has not begun, or is over, does what it does to any program.
        over = f"{TAP}: " in self.stderr.replace(f"{TAP}: start", "") or _LAST_WORD.search(self.stderr) is not None
        outside = not got or over
        late = code in (-signal.SIGTERM, -signal.SIGINT) and outside
        assert code in _CODES[ending] or late, f"{ending}: exit code {code}"
        assert not self._early, self._early[0]
        # An interruption that meets a callback of Python's own is eaten there, and told; the run ends all the same.
        eaten = self.stderr.count("Exception ignored in: ")
        self._ledger.figures["interruptions eaten by a callback"] += eaten
        assert late or ending == "kill" or self.stderr.count("Traceback") <= eaten, f"a traceback, {code}"
        if code in (0, 1):
            assert not torn or ending == "closed", f"a torn line: {torn[-200:]!r}"
        output = self._ledger.take(lines, self._store, chapter.cut if chapter else 1.0)
        if ending in ("term", "int", "rest") and output.named:
            output.check_end()
        self._ledger.figures["given up, for nobody read"] += code == 143
        if ending == "full" and code == 1:
            self._ledger.figures["disks that were full"] += 1
            assert "CRITICAL " in self.stderr, "nothing was said"
        lanes = len(self.plan.places) + 2
        killed = ending == "kill" or code == 143
        most = lanes if killed else 0
        self._ledger.check_files(self._store, ending, most, after_kill=killed)
        return output

    @contextlib.contextmanager
    def _disk(self, chapter: Chapter) -> Iterator[None]:
        """A disk of its own, that is soon full, where this may be made. Else files may not grow; the figures tell."""
        if chapter.ending != "full" or not chapter.disk or isinstance(self._store, Bucket):
            yield
            return
        place = self._folder / "disk"
        place.mkdir(exist_ok=True)
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={max(chapter.limit, 8_192)}", "none", place]
        if os.geteuid() or subprocess.run(mounting, capture_output=True, check=False).returncode:
            self._ledger.figures["no disk may be mounted: a limit of bytes in its place"] += 1
            yield
            return
        self._ledger.figures["disks of their own"] += 1
        self._store = Disk(place)
        try:
            yield
        finally:
            subprocess.run(["umount", place], check=True)

    def _is_small(self) -> bool:
        return self._store.root.endswith("/disk")

    def _go(self, chapter: Chapter | None) -> tuple[bytes, int]:
        """The process, from its beginning to its end; what came out of it, and its exit code."""
        config, state = self._folder / f"config-{self.name}.json", self._folder / f"state-{self.name}.json"
        settings = self.plan.config(self._store.root)
        tail = self.plan.tail and (chapter is not None or "log" not in self.plan.streams)
        if chapter is None and tail:
            settings["tail_max_rounds"] = 1
        config.write_text(json.dumps(settings))
        state.write_text(json.dumps(self._ledger.state))
        args = [PYTHON, str(PROGRAM), "--config", str(config), "--state", str(state), *(["--tail"] if tail else [])]
        told = json.dumps(self.plan.told() | {"rest": chapter is None})
        # A signal may leave a file half opened: that is no fault of anybody's.
        variables = {"STORM_PLAN": told, "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
        variables |= {"PYTHONUNBUFFERED": "1"} if self.plan.unbuffered else {}
        limit = chapter.limit if chapter and chapter.ending == "full" and not self._is_small() else None

        def small_files() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit or 0, limit or 0))

        with subprocess.Popen(
            args,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**variables, **self._store.environment),
            preexec_fn=None if limit is None else small_files,
        ) as process:
            assert process.stderr is not None
            listener = threading.Thread(target=self._listen, args=(process.stderr.fileno(),), daemon=True)
            listener.start()
            guard = threading.Timer(PATIENCE_SECONDS, process.kill)
            guard.start()
            try:
                got = self._read(process, chapter)
                code = process.wait()
            finally:
                timed_out = not guard.is_alive()
                guard.cancel()
                process.kill()
            listener.join()
        assert not timed_out, f"it hung: {PATIENCE_SECONDS} s"
        return got, code

    def _listen(self, pipe: int) -> None:
        while chunk := os.read(pipe, 1 << 16):
            self._errors += chunk

    def _read(self, process: subprocess.Popen[bytes], chapter: Chapter | None) -> bytes:
        """Whatever comes; strikes when it is time."""
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        if self.plan.small_pipe or (chapter and chapter.ending == "stopped"):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        got = bytearray()
        ending = chapter.ending if chapter else ""
        if chapter is None or ending == "full":
            if chapter is not None and self.plan.tail:  # without an end: it has to be told
                self._until(pipe, got, 1 << 40)
                process.send_signal(signal.SIGTERM)
            self._all(pipe, got)
            return bytes(got)
        if ending == "kill" and chapter.lines is None and chapter.after < 0.05:
            _later(process, signal.SIGKILL, chapter.after * 10)  # before the first byte, or a little later
            self._all(pipe, got)
            return bytes(got)
        self._until(pipe, got, chapter.lines or 1)
        if chapter.lines is None:
            self._for(pipe, got, chapter.after)
        if ending == "closed":
            process.send_signal(signal.SIGSTOP)  # so that nothing comes between the last look and the end
            _stopped(process)
            self._for(pipe, got, 0)
            process.stdout.close()
            process.send_signal(signal.SIGCONT)
            return bytes(got)
        if ending == "stopped":
            time.sleep(0.2)
        process.send_signal(_SIGNALS[ending])
        if ending == "stopped":
            process.wait(PATIENCE_SECONDS)
        self._all(pipe, got)
        return bytes(got)

    def _some(self, pipe: int, got: bytearray) -> bool:
        """Read what is there; False at the end. Files that are named must be there this very moment."""
        chunk = os.read(pipe, 1 << 16)
        seen = got.rfind(b"\n") + 1
        got += chunk
        for line in got[seen : got.rfind(b"\n") + 1].split(b"\n"):
            if b'"BATCH"' in line:
                message = json.loads(line)
                for url in message["manifest"]:
                    if not self._store.has(url):
                        self._early.append(f"named before it was there: {url}")
        return bool(chunk)

    def _all(self, pipe: int, got: bytearray) -> None:
        while self._some(pipe, got):
            pass

    def _until(self, pipe: int, got: bytearray, lines: int) -> None:
        deadline = time.monotonic() + 20  # whatever the plan wants: there may be fewer
        quiet = 1.0 + self.plan.batch_age_seconds if self.plan.tail and self.plan.batch_age_seconds < 10 else 5.0
        while got.count(b"\n") < lines and time.monotonic() < deadline:
            if not select.select([pipe], [], [], quiet if got else 20.0)[0]:
                return
            if not self._some(pipe, got):
                return

    def _for(self, pipe: int, got: bytearray, seconds: float) -> None:
        end = time.monotonic() + seconds
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            if not self._some(pipe, got):
                return


def _stopped(process: subprocess.Popen[bytes]) -> None:
    """Wait until a signal has stopped it, or it has ended."""
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "TZX":
        time.sleep(0.001)


def _later(process: subprocess.Popen[bytes], number: int, seconds: float) -> None:
    def strike() -> None:
        if process.poll() is None:
            process.send_signal(number)

    timer = threading.Timer(seconds, strike)
    timer.daemon = True
    timer.start()


def summed(found: list[Told]) -> dict[str, Any]:
    """The figures of many stories."""
    return dict(sorted(sum((told.figures for told in found), Counter()).items()))
