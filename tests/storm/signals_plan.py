"""What the stories of the storm of signals are like: a plan for each seed, always the same one."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from typing import Any

MODES = ("busy", "recv", "sleep", "page", "lazy", "partitions", "streams", "rounds", "tail", "tails")
"""Where the tap is when the signal comes.

In a sync function on the main thread that is busy, blocked in recv, or asleep; between the rows of its pages; in a lazy
iterator that it gave; in partitions with ``partition_workers``; in polled streams with ``workers``; between rounds; in
a tail function on the main thread; in several tail functions, of which all but one run in threads.
"""
SIZES = (100, 200_000)
INNER = ("busy", "recv", "sleep", "lock")
READERS = ("fast", "slow", "stopped")
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
SLOW_BYTES_PER_SECOND = 1_000_000


def _combined(modes: tuple[str, ...], signals: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = list(itertools.product(modes, SIZES, (False, True), READERS, signals))
    random.Random(19).shuffle(found)
    return found


COMBINATIONS = {True: _combined(MODES, SIGNALS), False: _combined(MODES[:7], SIGNALS[:2])}
"""Of tails; and of plain runs, which have an end, and in which SIGHUP says nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One story: a run that a signal meets, or several (``kills``), and one that goes on.

    ``tail``: else the runs end where the source does. ``size``: bytes of a row. ``inner``: what the function does at
    row ``stuck`` (-1: it never gets stuck) as long as its client is the first one: ``busy``, ``recv``, ``sleep``,
    ``lock``. ``rows``: at each place, in the beginning. ``work``: how much the function computes for each row.
    ``position``: it keeps ``stream.state`` and has no replication key. ``moment``: the signal comes ``after`` seconds
    behind the first byte (``begun``), or behind the moment in which the tap got ``stuck``. ``stop_at``: bytes after
    which a stopped reader reads nothing more. ``hangups``: so many SIGHUP. ``hold``: seconds for which the reader stays
    stopped after SIGHUP. ``abrupt``: SIGTERM follows right behind it. ``paused``: SIGSTOP and SIGCONT come before the
    signal. ``flag``: tail mode is said by flags, else by the config. ``loose``: what is blocked in recv goes on with
    its rows once the client is closed, in a thread that the run has left behind. ``hiccup``: a stopped reader goes on
    so many seconds behind the signal (0: it does not). ``wake``: polled streams have a wake function. ``batch``: a tail
    function has a sync function beside it: ``first``, ``overlap``, or none ("").
    """

    seed: int
    tail: bool
    kills: int
    mode: str
    size: int
    unbuffered: bool
    reader: str
    signal: str
    inner: str
    rows: int
    work: int
    stuck: int
    strategy: str
    order: str
    position: bool
    beside: bool
    interval_ms: int
    state_ms: int
    moment: str
    after: float
    stop_at: int
    hangups: int
    hold: float
    abrupt: bool
    paused: bool
    flag: bool
    loose: bool
    hiccup: float
    wake: bool
    batch: str

    @property
    def places(self) -> list[str]:
        """The streams, and the partitions of a stream (``rows-a``)."""
        return {
            "partitions": [f"rows-{part}" for part in "abcdef"],
            "streams": ["s1", "s2", "s3", "s4"],
            "tail": ["t1", *(["rows"] if self.beside else [])],
            "tails": ["t1", "t2", "t3", *(["rows"] if self.beside else [])],
        }.get(self.mode, ["rows"])

    @property
    def lanes(self) -> int:
        """How many functions run at a time, at the most."""
        return {"partitions": 3, "streams": 3, "tail": 1 + self.beside, "tails": 3 + self.beside}.get(self.mode, 1)

    @property
    def tail_at_rest(self) -> bool:
        """Whether the run that goes on is a tail, too: tail functions have no other."""
        return self.tail and (self.mode in ("tail", "tails") or self.seed % 2 == 0)

    @property
    def blocks_workers(self) -> bool:
        """Whether threads other than the main one may be in the author's code, where nothing can interrupt them."""
        return self.lanes > 1 or self.wake

    @property
    def page_rows(self) -> int:
        """Rows of a list, where the function gives lists."""
        return 40 if self.size < 1000 else 4

    @property
    def most_behind(self) -> int:
        """Bytes that may come behind a signal: what a pipe holds, and a page of each function that runs."""
        return 65_536 + 20_000 + self.lanes * min(1000 * (self.size + 100), 5_000_000)

    def settings(self) -> dict[str, Any]:
        """burler's settings."""
        said: dict[str, Any] = {
            "state_message_min_interval_ms": self.state_ms,
            "new_record_polling_interval_ms": self.interval_ms,
        }
        if self.mode == "partitions":
            said["partition_workers"] = 3
        if self.mode == "streams":
            said["workers"] = 3
        return said


def plan(seed: int, *, tail: bool = True, kill: bool = False) -> Plan:
    """The plan of a seed. 360 seeds in a row (of plain runs 168) have every combination once.

    Args:
        kill: for SIGKILL, up to four times: the reader is fast.
    """
    known = COMBINATIONS[tail]
    mode, size, unbuffered, reader, signal = known[seed % len(known)]
    rng = random.Random(f"storm {tail} {seed}")
    big = size > 1000
    if kill:
        reader, signal = "fast", "SIGKILL"
    inner = {"busy": "busy", "recv": "recv", "sleep": "sleep"}.get(mode) or rng.choice(INNER)
    made = Plan(
        seed=seed,
        tail=tail,
        kills=rng.randint(1, 4) if kill else 0,
        mode=mode,
        size=size,
        unbuffered=unbuffered,
        reader=reader,
        signal=signal,
        inner=inner,
        rows=60 if big else 18_000,
        work=rng.choice([0, 200_000, 800_000] if big else [0, 1500, 4000]),
        stuck=-1,
        strategy=rng.choice(["end_of_sync", "every_n(1)" if big else "every_n(333)", "every_n(1000)", "every_n(10)"]),
        order="asc" if rng.random() < 0.85 else "none",
        position=rng.random() < 0.3 and mode in ("tail", "tails"),
        beside=mode in ("tail", "tails") and rng.random() < 0.5,
        interval_ms=rng.choice([20, 200] if signal == "SIGHUP" or kill else [20, 200, 60_000]),
        state_ms=rng.choice([50, 500, 60_000]),
        moment=rng.choice(["begun", "stuck"]),
        after=rng.choice([0.0, 0.02, 0.1, 0.5]) * rng.random(),
        stop_at=rng.choice([1, 5_000, 300_000]),
        hangups=rng.choice([1, 1, 2, 3]) if signal == "SIGHUP" else 0,
        hold=rng.choice([0.1, 0.5, 1.5, 1.5, 11.5]),
        abrupt=rng.random() < 0.15,
        paused=rng.random() < 0.15,
        flag=rng.random() < 0.5,
        loose=rng.random() < 0.5,
        hiccup=rng.choice([0.0, 0.0, 0.0, 0.5, 3.0, 7.0]) if reader == "stopped" and signal != "SIGHUP" else 0.0,
        wake=rng.random() < 0.25 and tail and mode not in ("partitions", "tail", "tails"),
        batch=rng.choice(["", "first", "overlap"]),
    )
    return _fitted(made, rng)


def _fitted(made: Plan, rng: random.Random) -> Plan:
    """How many rows and where it gets stuck, as its mode and its reader need it."""
    rows = max(10, made.rows // len(made.places))
    if made.mode == "rounds":
        rows = 3 if made.size > 1000 else 100
    never = made.mode in ("rounds", "page") or (made.mode == "busy" and rng.random() < 0.7)
    # A slow reader must not be waited for until the function has got to where it blocks.
    reach = rows // 6 if made.reader == "slow" else rows
    long = 800_000 if made.size > 1000 else 4000  # a round takes some 0.8 s then
    order = "asc" if made.mode in ("tail", "tails") else made.order
    strategy = "end_of_sync" if order == "none" else made.strategy
    stuck = -1 if never else rng.randrange(max(1, reach))
    work = made.work if not never else 0 if made.mode == "rounds" else rng.choice([long // 2, long])
    moment = "begun" if never else made.moment
    batch = "" if made.position or made.mode not in ("tail", "tails") else made.batch
    return replace(made, batch=batch, rows=rows, stuck=stuck, order=order, strategy=strategy, work=work, moment=moment)
