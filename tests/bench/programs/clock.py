"""What a measured process says of itself: CPU and wall seconds less imports, and its peak memory.

Programs import much of what they need when they first need it. So one run beforehand notes which modules a run ends
with (``BENCH_LEARN``), and the measured runs import those before their clock starts (``BENCH_MODULES``). That is
done alike for every program.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def measured(*packages: str, children: bool = False) -> Iterator[None]:
    """Measure what runs inside, up to its end or its ``sys.exit``; the figures go to the file ``BENCH_SIDE``.

    Args:
        packages: whose versions are told with the figures.
        children: CPU seconds of the processes that it starts count, too; their memory does not.
    """
    _import_what_a_run_needs()
    profile = _profile()
    wall, used = time.perf_counter(), _used_seconds(children)
    try:
        if profile is not None:
            profile.enable()
        yield
    finally:
        if profile is not None:
            profile.disable()
            profile.dump_stats(os.environ["BENCH_PROFILE"])
        figures = {
            "cpu": _used_seconds(children) - used,
            "wall": time.perf_counter() - wall,
            "peak": _peak_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
            "versions": {name: _version(name) for name in packages},
        }
        if side := os.environ.get("BENCH_SIDE"):
            Path(side).write_text(json.dumps(figures))
        if learned := os.environ.get("BENCH_LEARN"):
            Path(learned).write_text("\n".join(sys.modules))


def _version(name: str) -> str:
    if name == "burler":  # its distribution has another name, and had another one before
        return str(importlib.import_module(name).__version__)
    return metadata.version(name)


def _import_what_a_run_needs() -> None:
    named = os.environ.get("BENCH_MODULES")
    for name in Path(named).read_text().split("\n") if named else ():
        # Some programs make modules at run time, under names that can't be imported.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _profile() -> Any:
    if "BENCH_PROFILE" not in os.environ:
        return None
    import cProfile

    return cProfile.Profile()


def _used_seconds(children: bool) -> float:
    """CPU of this process so far, and of those of its children that have ended."""
    used = [resource.getrusage(resource.RUSAGE_SELF)]
    if children:
        used.append(resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak_bytes(maxrss: int) -> int:
    """The peak of this program. ``ru_maxrss`` would also count the process that started it (Linux keeps it over
    exec), so it is used only where there is nothing better."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return maxrss * (1 if sys.platform == "darwin" else 1024)
