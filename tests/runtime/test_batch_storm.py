"""A small storm over batch files; the whole one: ``python tests/runtime/batch_storm.py``."""

from dataclasses import replace
from pathlib import Path

import batch_storm
import pytest
from batch_storm_plan import ENCODINGS, Plan, plan
from batch_storm_run import Told, summed
from batch_storm_store import s3_server


def quick(seed: int, *endings: str) -> Plan:
    """A plan with few rows, and one run before the last."""
    made = plan(seed, endings=endings or ("kill", "term", "int", "closed", "full"))
    return replace(made, count=min(made.count, 1000), chapters=made.chapters[:1])


def clean(found: list[Told]) -> dict[str, int]:
    """The figures of stories, none of which has failed."""
    assert not (failed := [told.failure for told in found if told.failure]), "\n\n".join(failed)
    return summed(found)


def test_a_quick_storm_over_batch_files(tmp_path: Path):
    """Each format and compression once. A reader that stops takes ten seconds, and comes in the next test."""
    seeds = range(207, 207 + len(ENCODINGS))
    plans = [quick(seed) for seed in seeds]
    assert {(made.format, made.compression) for made in plans} == set(ENCODINGS)
    assert len({chapter.ending for made in plans for chapter in made.chapters}) == 5
    figures = clean(batch_storm.storm(seeds, tmp_path, make=quick))
    assert figures["batches"] > 100
    assert figures["disks that were full"] > 0


def test_a_reader_that_stops_amid_batches(tmp_path: Path):
    def make(seed: int) -> Plan:
        made = quick(seed, "stopped")
        return replace(made, chapters=(replace(made.chapters[0], lines=3),))

    figures = clean(batch_storm.storm([27], tmp_path, make=make))
    assert figures["given up, for nobody read"] == 1


def test_a_quick_storm_over_batch_files_on_s3(tmp_path: Path):
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with s3_server() as server:
        figures = clean(
            batch_storm.storm(
                range(2), tmp_path, make=lambda seed: quick(seed, "kill", "term", "closed"), server=server
            )
        )
    assert figures["batches"] > 20
