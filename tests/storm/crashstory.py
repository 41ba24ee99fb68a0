"""What happens to a tap in the crash tests: runs, how each of them ends, and how the source stands by then."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from storm.crashworld import Phase


@dataclass(frozen=True)
class Chapter:
    """One run: how the source stands, and how it ends.

    ``ending``: kill, term, or end (it comes to its end by itself). ``at``: after which share of the bytes that are to
    be expected, or (negative) after how many seconds. ``cut``: a part of what came through is lost with the target.
    """

    number: int
    phase: Phase
    ending: str
    at: float
    cut: float
    share: float  # of the author's functions that break
    reader_nap: float
    small_pipe: bool
    out_file: bool
    settings: dict[str, Any] = field(default_factory=dict)

    def config(self, unchanged: list[str]) -> dict[str, Any]:
        mine = {"grown": self.phase.grown, "shrunk": self.phase.shrunk, "run": self.number, "share": self.share}
        return {**mine, "unchanged": unchanged, **self.settings}


def story_of(seed: int) -> list[Chapter]:
    """What happens, run by run; it closes with a run that comes to its end in peace."""
    rng = random.Random(f"story {seed}")
    scope = rng.choice(["full", "full", "touched"])
    chapters: list[Chapter] = []
    grown = 0
    for part in range(rng.choice([1, 1, 2])):
        endings = [rng.choice(["kill", "kill", "kill", "term", "end"]) for _ in range(rng.randint(1, 4 - 2 * part))]
        for i, ending in enumerate([*endings, "peace"]):
            grown += grown < 3 and (i > 0 or part > 0) and rng.random() < 0.35
            chapters.append(
                Chapter(
                    number=len(chapters),
                    phase=Phase(grown, part > 0),
                    ending="end" if ending == "peace" else ending,
                    at=rng.random() if rng.random() < 0.7 else -rng.choice([0.2, 0.5, 1.0]) * (0.3 + rng.random()),
                    cut=rng.random() if ending == "kill" and rng.random() < 0.5 else 1.0,
                    share=rng.choice([0.02, 0.1, 0.3]) if ending == "end" else 0.0,
                    reader_nap=rng.choice([0.0, 0.0, 0.0, 0.002]),
                    small_pipe=rng.random() < 0.7,
                    out_file=rng.random() < 0.3,
                    settings={"state_scope": scope, **_settings(rng)},
                )
            )
    return chapters


def _settings(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "workers": rng.choice([1, 1, 3]),
        "page_max_rows": rng.choice([1, 3, 20, 1000]),
        "page_max_age_seconds": rng.choice([0.01, 0.1, 1.0]),
        "parent_buffer_rows": rng.choice([1, 4, 100]),
        "parent_buffer_seconds": rng.choice([0.005, 1.0]),
        "nap": rng.choice([0.0, 0.02, 0.2]),
    }
    if rng.random() < 0.2:
        made["partition_workers"] = rng.choice([1, 3])
    return made
