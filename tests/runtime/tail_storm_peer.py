"""The same storm over burler and over the Singer SDK's handler of SIGTERM: same rows, same reader, same moments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from tail_storm_plan import Plan, plan
from tail_storm_process import PATIENCE_SECONDS, ended, reading
from tail_storm_run import until_the_moment
from tail_storm_tables import table
from tail_storm_world import Hub
from tapprocess import PYTHON, environment

HERE = Path(__file__).parent
PROGRAMS = {"singer-sdk": HERE / "tail_storm_sdk.py", "burler": HERE / "tail_storm_taps.py"}


@dataclass(frozen=True, slots=True)
class Judged:
    """How a run of one side ended.

    ``torn``: a line that is no JSON. ``final``: the last whole line is a STATE. ``exact``: it speaks of the last row
    that is out. ``lost``: rows that the last STATE covers and that are not out: a run that goes on never brings them.
    """

    plan: Plan
    code: int
    seconds: float
    rows: int
    torn: bool
    final: bool
    exact: bool
    lost: int


def peer_plan(seed: int) -> Plan:
    """A run that both sides can do: one stream, sorted, a slow reader, SIGTERM."""
    rng = random.Random(f"peer {seed}")
    mode = ("busy", "recv", "sleep")[seed % 3]
    size = (100, 200_000)[seed // 3 % 2]
    rows = 60 if size > 1000 else 18_000
    return replace(
        plan(seed),
        mode=mode,
        inner=mode,
        size=size,
        unbuffered=bool(seed // 6 % 2),
        reader="slow",
        signal="SIGTERM",
        rows=rows,
        work=0,
        stuck=-1 if mode == "busy" else rng.randrange(rows // 6),
        order="asc",
        position=False,
        beside=False,
        interval_ms=20,
        hangups=0,
        abrupt=False,
        paused=False,
        strategy="every_n(1000)",
        moment="begun" if mode == "busy" else rng.choice(["begun", "stuck"]),
        after=rng.random() * 0.5,
    )


def _start(side: str, python: str, made: Plan, told: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    args = [python, str(PROGRAMS[side])]
    if side == "burler":
        config = folder / "config.json"
        config.write_text(json.dumps(made.settings() | {"tail": True}))
        args += ["--config", str(config)]
    variables = {"STORM_PLAN": json.dumps(told), "PYTHONWARNINGS": "default"}
    if made.unbuffered:
        variables["PYTHONUNBUFFERED"] = "1"
    with (folder / f"stderr-{side}.txt").open("wb") as errors:
        return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=errors, env=environment(**variables))


def one(side: str, python: str, seed: int, hub: Hub, folder: Path) -> Judged:
    """One run of one side.

    Raises:
        AssertionError: it did not begin, or did not end.
    """
    made = peer_plan(seed)
    own = folder / f"peer-{seed}-{side}"
    own.mkdir(parents=True)
    with hub.world(seed * 2 + (side == "burler"), own, ["rows"]) as world:
        world.grow("rows", made.rows)
        told = asdict(made) | {"places": made.places, "page_rows": made.page_rows, "rest": False}
        told |= {"folder": str(own), "port": hub.port, "world": world.number}
        process = _start(side, python, made, told, own)
        assert process.stdout is not None
        try:
            reader = reading(process, made)
            until_the_moment(made, world, process, reader)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = ended(process, reader, PATIENCE_SECONDS)
            return judge(bytes(reader.got), made, code, time.monotonic() - begun)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def judge(got: bytes, made: Plan, code: int, seconds: float) -> Judged:
    """What came, seen as a target sees it that drops a line it can't read."""
    out: set[int] = set()
    torn, bookmark, last = False, -1, ""
    for line in got.split(b"\n"):
        if not line:
            continue
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError:
            torn = True
            continue
        last = message["type"]
        if last == "RECORD":
            out.add(message["record"]["id"])
        elif last == "STATE":
            entry = message["value"].get("bookmarks", {}).get("rows", {})
            bookmark = entry.get("id", entry.get("replication_key_value", -1))
    return Judged(
        plan=made,
        code=code,
        seconds=seconds,
        rows=len(out),
        torn=torn,
        final=last == "STATE" or not out,
        exact=bookmark == max(out, default=-1),
        lost=sum(number not in out for number in range(bookmark + 1)),
    )


def side_by_side(seeds: Iterable[int], folder: Path, *, workers: int = 4) -> str:
    """A run of both sides for each seed, as a table.

    Raises:
        AssertionError: a run did not begin, or did not end.
    """
    sys.path.append(str(HERE.parent / "bench"))
    from environments import python_of

    pythons = {"singer-sdk": python_of("singer-sdk"), "burler": PYTHON}
    tasks = [(side, seed) for seed in seeds for side in pythons]
    with Hub() as hub, ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda task: one(task[0], pythons[task[0]], task[1], hub, folder), tasks))
    head = (
        "",
        "runs",
        "exit codes",
        "no final STATE",
        "torn line",
        "both",
        "not exact",
        "rows lost",
        "in runs",
        "worst s",
    )
    rows = []
    for side in pythons:
        own = [judged for (whose, _seed), judged in zip(tasks, found, strict=True) if whose == side]
        groups = {side: own}
        for mode in ("busy", "recv", "sleep"):
            groups[f"  {mode}"] = [judged for judged in own if judged.plan.mode == mode]
        for size in (100, 200_000):
            groups[f"  rows of {size} B"] = [judged for judged in own if judged.plan.size == size]
        for unbuffered in (False, True):
            name = "  PYTHONUNBUFFERED=1" if unbuffered else "  buffered"
            groups[name] = [judged for judged in own if judged.plan.unbuffered == unbuffered]
        rows += [_row(name, some) for name, some in groups.items() if some]
    return table(head, rows) + f"\nload {os.getloadavg()[0]:.1f}"


def _row(name: str, some: list[Judged]) -> tuple[Any, ...]:
    codes = Counter(judged.code for judged in some)
    return (
        name,
        len(some),
        ", ".join(f"{count} x {code}" for code, count in sorted(codes.items())),
        sum(not judged.final for judged in some),
        sum(judged.torn for judged in some),
        sum(judged.torn and not judged.final for judged in some),
        sum(not judged.exact for judged in some),
        sum(judged.lost for judged in some),
        sum(judged.lost > 0 for judged in some),
        max(judged.seconds for judged in some),
    )
