"""A small storm of signals over tail runs; the whole one: ``python tests/runtime/tail_storm.py``."""

import functools
from pathlib import Path

import tail_storm
from tail_storm_kill import kill
from tail_storm_plan import MODES, READERS, SIGNALS, SIZES, plan, quick
from tail_storm_run import run


def test_a_quick_storm(tmp_path: Path):
    """Each mode with both sizes of rows, each reader with each signal. Only the whole storm is strict about seconds:
    here, another program may have the processor."""
    seeds = quick()
    plans = [plan(seed) for seed in seeds]
    assert {(made.mode, made.size) for made in plans} == {(mode, size) for mode in MODES for size in SIZES}
    assert {(made.reader, made.signal) for made in plans} == {(one, two) for one in READERS for two in SIGNALS}
    found = tail_storm.storm(seeds, tmp_path, functools.partial(run, limit_seconds=20.0))
    assert not (failed := [told.failure for told in found if told.failure]), "\n\n".join(failed)
    assert sum(told.inside for told in found) > len(found) / 2  # the signals have met functions at work
    assert {told.ended for told in found} == {"clean", "killed by the stopped reader"}


def test_a_quick_storm_of_sigkill(tmp_path: Path):
    found = tail_storm.storm(range(5), tmp_path, kill)
    assert not (failed := [told.failure for told in found if told.failure]), "\n\n".join(failed)
    assert sum(told.kills for told in found) >= 5
