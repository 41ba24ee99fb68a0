"""The four lakes: how each was filled, what it is asked, and how it goes on."""

from __future__ import annotations

import concurrent.futures
import json
from pathlib import Path
from typing import Any

from contract import apps
from contract.files import HERE, Ended, burler, several, write_json

NAMES = ("shop", "compacted", "foreign", "writers")


def good(done: Ended) -> str:
    """The output of a command that must not fail."""
    assert done.code == 0, done
    return done.out


def extract(lake: Path, app: str) -> None:
    """Run the shop into a lake, from the state beside it."""
    state = lake.with_name(f"{lake.name}-state.json")
    more = ("--state", state) if state.exists() else ()
    good(burler("run", f"{HERE / 'apps.py'}:{app}", "--sink", f"lake:{lake}", *more, "-o", state))


def write(lake: Path, tap: str, messages: str, *more: Any) -> str:
    """Write the messages of any tap into a lake: the STATEs that came out."""
    return good(burler("lake", "write", lake, "--tap-id", tap, *more, stdin=messages))


def many(run: int) -> str:
    """Rows for many small files."""
    out = apps.line("SCHEMA", "rows", schema={"properties": {"id": apps.ID}}, key_properties=["id"])
    for number in range(10):
        time = f"2024-05-0{run}T00:00:0{number}.000000Z"
        out += apps.line("RECORD", "rows", record={"id": run * 5 + number}, time_extracted=time)
    return out + f'{{"type":"STATE","value":{{"run":{run}}}}}\n'


def fill(name: str, lake: Path, half: Path) -> None:
    """Make a lake. ``half``: a file for the state of who has read what was there half way."""
    if name == "shop":
        extract(lake, "first")
        extract(lake, "second")
        read_half(lake, half)
        extract(lake, "third")
        good(burler("lake", "describe", lake, "--tap", "tap-shop", "--owner", "sales", "--description", "Orders, é"))
    elif name == "compacted":
        write(lake, "tap-many", many(1), "--max-file-records", 2)
        read_half(lake, half)
        write(lake, "tap-many", many(2), "--max-file-records", 3)
        good(burler("lake", "compact", lake))
        good(burler("lake", "vacuum", lake, "--older-than", "0s", "--yes"))
        write(lake, "tap-many", many(3), "--max-file-records", 4)
        good(burler("lake", "compact", lake, "--below-bytes", "1KiB"))  # these single files stay
    elif name == "foreign":
        write(lake, "tap-foreign", apps.foreign(1), "--encoding", "base85")
        read_half(lake, half)
        write(lake, "tap-foreign", apps.foreign(2), "--state-values")
    else:
        options = ((), ("--compression", "bz2"), ("--compression", "none"), ("--max-file-records", 1))
        with concurrent.futures.ThreadPoolExecutor(len(apps.ODD)) as pool:  # processes, at one time
            jobs = [
                pool.submit(write, lake, tap, apps.odd(i, 1), *options[i]) for i, (tap, _stream) in enumerate(apps.ODD)
            ]
            for job in jobs:
                job.result()
        read_half(lake, half)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # two take turns in one stream
            for job in [pool.submit(write, lake, apps.ODD[0][0], apps.odd(0, run), "--tail") for run in (2, 3)]:
                job.result()


def go_on(name: str, lake: Path) -> int:
    """A further run into a lake: how many rows it wrote."""
    if name == "shop":
        extract(lake, "fourth")
        return 3 + 1 + 4
    if name == "compacted":
        write(lake, "tap-many", many(4))
        return 10
    if name == "foreign":
        write(lake, "tap-foreign", apps.foreign(3))
        return 3 + 4
    for i, (tap, _stream) in enumerate(apps.ODD):
        write(lake, tap, apps.odd(i, 4))
    return 3 * len(apps.ODD)


def read_half(lake: Path, half: Path) -> None:
    """Keep the state of somebody who has read all that is there."""
    last = [message for message in burler("lake", "read", lake).lines() if message["type"] == "STATE"][-1]
    write_json(half, last["value"])


def said(lake: Path, half: Path) -> dict[str, Any]:
    """All that a lake is asked, and what it answers. Where the lake lies is left out."""
    asked: dict[str, tuple[Any, ...]] = {
        "read": ("read", lake),
        "read since half": ("read", lake, "--state", half),
        "read of a day": ("read", lake, "--since", "2024-05-02", "--until", "2024-05-03"),
        "read of a version": ("read", lake, "--schema", "v2.."),
        "catalog": ("read", lake, "--discover"),
        "ls": ("ls", lake, "--json"),
        "check": ("check", lake, "--json"),
    }
    ended = dict(zip(asked, several([("lake", *words) for words in asked.values()]), strict=True))
    said: dict[str, Any] = {
        what: done.lines() if what.startswith("read") else json.loads(done.out) for what, done in ended.items()
    }
    said["codes"] = {what: done.code for what, done in ended.items()}
    del said["ls"]["url"]
    return said
