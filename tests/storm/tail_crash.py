"""The stories of ``crash`` as tail runs: SIGKILL, SIGTERM and broken sources, over streams of every kind.

    python tests/runtime/tail_storm_crash.py 200 [first seed]

Each run polls one to three times. What holds of plain runs must hold here: nothing is missing, no STATE is ahead, no
table is emptied. A row may come again in a later round of the same run, where a part of the round before has failed.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

from crash import Story
from crashclaims import Ledger
from crashstory import Chapter, story_of
from crashworld import Row


class TailChapter(Chapter):
    """A run that polls, from one to three times."""

    def config(self, unchanged: list[str]) -> dict[str, Any]:
        """burler's config, with tail mode."""
        rng = random.Random(f"tail {self.number} {self.at}")
        return super().config(unchanged) | {
            "tail": True,
            "tail_max_rounds": rng.randint(1, 3),
            "new_record_polling_interval_ms": rng.choice([1, 20]),
            "state_message_min_interval_ms": rng.choice([1, 50, 60_000]),
        }


class TailLedger(Ledger):
    """What came, where a row may come again in a later round."""

    def _row(self, row: Row, message: dict[str, Any], came: Counter[Any]) -> None:
        if came[row.uid]:
            self.figures["twice in one run"] += 1
            came = Counter()
        super()._row(row, message, came)


class TailStory(Story):
    """One seed, run by run."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.ledger = TailLedger(self.lines)

    def tell(self) -> Counter[str]:
        """All runs; figures of what happened.

        Raises:
            AssertionError: with where to look.
        """
        for chapter in story_of(self.seed):
            try:
                self._run(TailChapter(**{one.name: getattr(chapter, one.name) for one in fields(chapter)}))
            except AssertionError as error:
                told = f"seed {self.seed}: {error}\n  {chapter}\n  {self.folder}\n{self.stderr[-3000:]}"
                raise AssertionError(told) from error
        return self.ledger.figures


def one_seed(seed: int, folder: Path) -> Counter[str]:
    """One story; raises AssertionError with everything one wants to know."""
    own = folder / f"seed-{seed}"
    own.mkdir(parents=True, exist_ok=True)
    return TailStory(seed, own).tell()


def main() -> int:
    """The stories from the command line; those that fail are told one by one, and their files are kept."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="tail-crash-"))

    def told(seed: int) -> Counter[str] | None:
        try:
            return one_seed(seed, folder)
        except AssertionError as error:
            print(error, "\n", flush=True)
            return None

    with ThreadPoolExecutor(2) as pool:
        figures = list(pool.map(told, range(first, first + seeds)))
    for what, count in sorted(sum((one for one in figures if one), Counter()).items()):
        print(f"{count:9}  {what}")
    failed = [seed for seed, one in enumerate(figures, first) if one is None]
    print(f"{seeds} seeds, {time.monotonic() - begun:.0f} s, {len(failed)} failed {failed} {folder if failed else ''}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
