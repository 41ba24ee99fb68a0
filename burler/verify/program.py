"""A tap's command under trial: run with a catalog, a state or none, watched, and disturbed on the way."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from burler.config.secrets import spellings
from burler.engine.command.tap_command import TapCommand, config_places
from burler.engine.command.tap_process import (
    CATALOG,
    HELP_SECONDS,
    MOST_CATALOG,
    MOST_HELP,
    PROPERTIES,
    STATE,
    TapProcess,
)

Sigterm = Literal["ignored", "handled", "default", ""]
"""What a process does with SIGTERM; "" where nobody knows."""

_BLOCK_BYTES, _SMALL_BYTES = 1 << 16, 512
_SURE = 8
"""Shorter secrets are not looked for: a word of a sentence may be one by accident."""
_MOMENT_SECONDS = 0.2
_GRACE_SECONDS = 2.0


def never() -> bool:
    """It goes on."""
    return False


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What is done to a tap in the middle of a run.

    Attributes:
        when: asked after each block that came, until it says yes.
        how: "signal": reading stops for a moment, so that the tap stands at a full pipe, as behind a slow target; then
            it gets SIGTERM, and reading goes on. "close": nobody reads any more.
        within_seconds: so long it may take to end after that.
    """

    when: Callable[[], bool]
    how: Literal["signal", "close"]
    within_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        exit_code: negative: the signal that ended it.
        stderr: what it said there; of a long text the beginning and the end. It may hold secrets:
            ``Program.last_words`` gives what may be shown.
        timed_out: it had not ended in its time, and was ended. stopped: so asked by ``stop``.
        disturbed: the disturbance came while it ran.
        sigterm: what it did with SIGTERM when that came: Linux tells; "" elsewhere.
        left: names of the processes that it left running.
        told: the secrets of the config that stood on stderr, by their keys.
        pipe_bytes: so much of what it wrote may have been in the pipe, unread.
    """

    exit_code: int
    seconds: float
    stderr: bytes = b""
    timed_out: bool = False
    stopped: bool = False
    disturbed: bool = False
    sigterm: Sigterm = ""
    left: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    pipe_bytes: int = _BLOCK_BYTES

    @property
    def well(self) -> bool:
        """Whether it ended by itself, and says that all went well."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped


@dataclass(frozen=True, slots=True)
class Program(TapCommand):
    """A tap's command; see ``burler.engine.command.tap_command`` for what it is made of."""

    @property
    def has_config(self) -> bool:
        """Whether the command names a config."""
        return bool(config_places(self.words))

    def with_config(self, file: Path | None) -> Program:
        """The same with another config file, or without one."""
        words: list[str] = []
        at, places = 0, config_places(self.words)
        for first, behind, _ in places:
            words += self.words[at:first]
            if file is not None and first == places[0][0]:
                words += ["--config", str(file)]
            at = behind
        return replace(self, words=(*words, *self.words[at:]))

    def with_environment(self, more: Mapping[str, str]) -> Program:
        """The same with more in its environment."""
        return replace(self, environment={**self.environment, **more})

    def last_words(self, ended: Ended) -> str:
        """The last line that a run has said on stderr, for messages; "nothing" if there was none."""
        return self.end_of(ended.stderr)

    def discover(self, deadline_seconds: float | None) -> tuple[Ended, bytes]:
        """Run discovery; how it ended, and what it has written."""
        return self._whole(self.discovering, deadline_seconds, MOST_CATALOG)

    def help(self, deadline_seconds: float | None = HELP_SECONDS) -> tuple[Ended, bytes]:
        """Run ``--help``; how it ended, and what it has written."""
        return self._whole((*self.words, "--help"), deadline_seconds, MOST_HELP)

    def _needles(self) -> dict[bytes, str]:
        """The secrets to look for in what the tap says, in all their spellings -> the key of each."""
        return {
            spelling.encode(errors="replace"): self.secret_keys.get(secret, "")
            for secret in self.secrets
            if len(secret) >= _SURE
            for spelling in spellings(secret)
        }

    def _whole(self, words: tuple[str, ...], deadline_seconds: float | None, most: int) -> tuple[Ended, bytes]:
        blocks: list[bytes] = []
        with TapProcess(self, words, needles=self._needles(), grace_seconds=_GRACE_SECONDS) as tap:
            ended = _follow(tap, blocks.append, lambda: sum(map(len, blocks)) > most, deadline_seconds, None)
        return replace(ended, told=tap.told), b"".join(blocks)

    def run(
        self,
        *,
        catalog: Any = None,
        properties: Any = None,
        state: Any = None,
        take: Callable[[bytes], object],
        stop: Callable[[], bool] = never,
        deadline_seconds: float | None = None,
        disturbance: Disturbance | None = None,
    ) -> Ended:
        """A sync.

        Args:
            catalog, properties, state: JSON values that are given by these flags, in files; None leaves a flag out.
            take: gets what the tap writes, in pieces as they come.
            stop: asked after each piece; once it says yes the tap is ended.
            deadline_seconds: so long it may take; None: for ever.
            disturbance: what is done to it on the way. The pipe is made small then, so that there is a middle.
        """
        with TapProcess(
            self,
            files={CATALOG: catalog, PROPERTIES: properties, STATE: state},
            needles=self._needles(),
            small_pipe=disturbance is not None,
            grace_seconds=_GRACE_SECONDS,
        ) as tap:
            ended = _follow(tap, take, stop, deadline_seconds, disturbance)
        return replace(ended, told=tap.told)  # of a tap that was stopped, too, all of stderr is read only now


def _follow(
    tap: TapProcess,
    take: Callable[[bytes], object],
    stop: Callable[[], bool],
    deadline_seconds: float | None,
    disturbance: Disturbance | None,
) -> Ended:
    """Hand on what a tap writes until it ends, is no longer wanted, or has had its time."""
    until = None if deadline_seconds is None else time.monotonic() + deadline_seconds
    pipe_bytes = tap.pipe_bytes
    stopped = disturbed = timed_out = False
    waits = disturbance
    sigterm: Sigterm = ""
    while not stopped:
        block = tap.read(until, _BLOCK_BYTES if waits is None else _SMALL_BYTES)
        timed_out = block is None
        if not block:
            break
        take(block)
        stopped = stop()
        if waits is None or stopped or not waits.when():
            continue
        disturbed, sigterm = _disturb(tap, waits)
        if disturbed:
            until = time.monotonic() + waits.within_seconds
            if waits.how == "close":
                break
        waits = None
    if not stopped and not timed_out:
        timed_out = not tap.wait(until)
    return Ended(
        exit_code=tap.exit_code if tap.exited else -signal.SIGKILL,
        seconds=tap.seconds,
        stderr=tap.stderr,
        timed_out=timed_out,
        stopped=stopped,
        disturbed=disturbed,
        sigterm=sigterm,
        left=tap.left() if tap.exited and not stopped else (),
        pipe_bytes=pipe_bytes,
    )


def _disturb(tap: TapProcess, what: Disturbance) -> tuple[bool, Sigterm]:
    """Whether it still ran, and what it does with SIGTERM."""
    if what.how == "close":
        if tap.exited:
            return False, ""  # what is left in the pipe is read all the same
        tap.close_output()
        return True, ""
    if tap.wait(time.monotonic() + _MOMENT_SECONDS):
        return False, ""
    does = _disposition(tap.pid)
    tap.terminate()
    tap.wait(time.monotonic() + _MOMENT_SECONDS)
    return True, does


def _disposition(pid: int | None) -> Sigterm:
    """What a process does with SIGTERM, where Linux tells it."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""
    bit = 1 << (signal.SIGTERM - 1)
    masks = {line[:6]: int(line.split()[1], 16) for line in text.splitlines() if line[:6] in ("SigIgn", "SigCgt")}
    if masks.get("SigIgn", 0) & bit:
        return "ignored"
    return "handled" if masks.get("SigCgt", 0) & bit else "default"
