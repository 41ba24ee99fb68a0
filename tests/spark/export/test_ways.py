"""Without Spark, with Spark, made anew: three ways to one table, shown on random lakes."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

from burler.spark import export
from support.internals import export_options

pytestmark = pytest.mark.usefixtures("packages")

START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
TEXT = {"type": ["null", "string"]}
MOMENT = {"type": ["null", "string"], "format": "date-time"}
KEYS = {"id": {"type": "integer"}, "part": {"type": "string"}}
SCHEMAS = [
    {"properties": {**KEYS, "name": TEXT, "at": MOMENT}},
    {"properties": {**KEYS, "name": TEXT, "at": MOMENT, "tags": {"type": "array", "items": TEXT}}},
]
COLUMNS = ("id", "part", "name", "at", "_sdc_extracted_at", "_sdc_version", "_sdc_sequence", "_sdc_source_file")


class Story:
    """What happens to a lake, by chance; the same for each seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._version = 1

    def commit(self, lake: Any, step: int) -> None:
        """One more file in each of two streams, one with keys and one without."""
        chance = self._chance
        rows = [self._row() for _ in range(chance.randrange(1, 12))]
        activate = None
        if chance.random() < 0.2:
            self._version += 1
            activate = self._version
        for stream, keys, bookmarks in (("keyed", ("id", "part"), ("at",)), ("keyless", (), ())):
            lake.commit(
                stream,
                rows,
                schema=SCHEMAS[step > 2],
                keys=keys,
                bookmarks=bookmarks,
                version=self._version if seeded(step) else None,
                activate=activate if seeded(step) else None,
                time=START + dt.timedelta(seconds=chance.randrange(3)),
                clean=None if chance.random() < 0.7 else False,
            )

    def _row(self) -> dict[str, Any]:
        chance = self._chance
        second = chance.choice([None, "2024-01-01T00:00:00Z", "2024-01-01T00:00:01.5Z"])
        return {
            "id": chance.randrange(4),
            "part": chance.choice("ab"),
            "name": chance.choice([None, "x", "y", "z"]),
            "at": second,
        }


def seeded(step: int) -> bool:
    """Full tables at first, then a stream without versions."""
    return step < 5


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 6))])
def test_small_large_and_anew_give_one_table(spark, lake, tmp_path, rows_of, monkeypatch, seed):
    story = Story(seed)
    for step in range(6):
        for _ in range(1 + step % 2):
            story.commit(lake, step)
        ways = {"small": 50_000, "spark": 0} if step % 3 == 2 else {"small": 50_000}
        for way, most in ways.items():
            monkeypatch.setattr(export_options, "SMALL_ROWS", most)
            export(spark, str(lake.root), str(tmp_path / way))
        monkeypatch.setattr(export_options, "SMALL_ROWS", 50_000 if step != 2 else 0)
        export(spark, str(lake.root), str(tmp_path / f"anew{step}"))

        for stream in ("keyed", "keyless"):
            anew = rows_of(stream, *COLUMNS, out=f"anew{step}")
            for way in ways:
                assert rows_of(stream, *COLUMNS, out=way) == anew, (way, stream, step)
