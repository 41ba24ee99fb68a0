"""What the stories of the storm over batch files are like: a plan for each seed, always the same one."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict, dataclass
from typing import Any

ENCODINGS = (
    ("jsonl", "none"), ("jsonl", "gzip"), ("jsonl", "zstd"), ("csv", "none"), ("csv", "gzip"),
    ("parquet", "zstd"), ("parquet", "none"), ("arrow", "none"), ("arrow", "zstd"),
)  # fmt: skip
FORMS = ("rows", "lists", "bytes", "arrow")
STREAMS = ("rising", "table", "parts", "log")
ENDINGS = ("kill", "term", "int", "closed", "stopped", "full")
PARTS = "abc"


@dataclass(frozen=True, slots=True)
class Chapter:
    """How one run ends.

    ``ending``: one of ``ENDINGS``. The blow comes ``after`` seconds behind the first byte or, if ``lines`` is not None,
    when so many lines are out. ``limit``: bytes of a file, or of the whole disk (``disk``), when it is full. ``cut``:
    the reader has taken only so much of what came (1: all), and goes on from a STATE in there.
    """

    ending: str
    after: float
    lines: int | None
    limit: int
    disk: bool
    cut: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One story.

    ``form``: what the functions yield. ``size``: bytes of a row. ``count``: rows of a place. ``page``: rows of a page.
    ``nap``: seconds between two pages. ``strategy``: of bookmarks. ``table_rows``: of the full table.
    """

    seed: int
    streams: tuple[str, ...]
    form: str
    size: int
    count: int
    page: int
    nap: float
    strategy: str
    format: str
    compression: str
    batch_size: int
    batch_bytes: int
    batch_age_seconds: float
    dialect: str
    workers: int
    tail: bool
    unbuffered: bool
    small_pipe: bool
    chapters: tuple[Chapter, ...]

    @property
    def places(self) -> dict[str, int]:
        """Streams, and partitions of one (``parts-a``), with their rows."""
        named = itertools.chain(*([f"parts-{part}" for part in PARTS] if s == "parts" else [s] for s in self.streams))
        return {place: self.count // (3 if "-" in place else 1) for place in named}

    def config(self, root: str) -> dict[str, Any]:
        """The tap's config."""
        return {
            "batch_config": {
                "encoding": {"format": self.format, "compression": self.compression},
                "storage": {"root": root, "prefix": "storm-"},
                "batch_size": self.batch_size,
                "batch_bytes": self.batch_bytes,
                "batch_age_seconds": self.batch_age_seconds,
                "dialect": self.dialect,
                "activate_version": True,
            },
            "workers": self.workers,
            "partition_workers": self.workers,
            **({"state_message_min_interval_ms": 100, "new_record_polling_interval_ms": 50} if self.tail else {}),
        }

    def told(self) -> dict[str, Any]:
        """What the tap's process needs of it."""
        return {name: value for name, value in asdict(self).items() if name != "chapters"} | {"places": self.places}


def plan(seed: int, *, endings: tuple[str, ...] = ENDINGS) -> Plan:
    """The plan of a seed."""
    rng = random.Random(f"batch storm {seed}")
    format, compression = ENCODINGS[seed % len(ENCODINGS)]
    big = rng.random() < 0.25
    tail = rng.random() < 0.3
    known = STREAMS if tail else STREAMS[:3]
    streams = tuple(sorted(rng.sample(known, rng.randint(1, len(known)))))
    form = rng.choice(FORMS)
    count = rng.choice([40, 90] if big else [300, 3_000, 12_000])
    batch_size = rng.choice([1, 5, 20] if big else [7, 50, 400, 5_000, 100_000])
    files = len(streams) * count / min(count, batch_size)
    if files > 600:
        batch_size = 50
    return Plan(
        seed=seed,
        streams=streams,
        form=form,
        size=rng.choice([20_000, 120_000]) if big else rng.choice([10, 100]),
        count=count,
        page=rng.choice([1, 4] if big else [40, 333, 1_000]),
        nap=rng.choice([0.0, 0.002, 0.02]),
        strategy=rng.choice(["end_of_sync", "every_n(10)", "every_n(333)", "on_page"]),
        format=format,
        compression=compression,
        batch_size=batch_size,
        batch_bytes=rng.choice([50_000, 1 << 27, 1 << 27]),
        batch_age_seconds=rng.choice([0.05, 0.3, 60.0]),
        dialect=rng.choice(["both", "sip", "meltano"]),
        workers=rng.choice([1, 1, 3]),
        tail=tail,
        unbuffered=rng.random() < 0.3,
        small_pipe=rng.random() < 0.4,
        chapters=tuple(_chapter(rng, int(files), endings) for _ in range(rng.randint(1, 4))),
    )


def _chapter(rng: random.Random, files: int, endings: tuple[str, ...]) -> Chapter:
    ending = rng.choice(endings)
    return Chapter(
        ending=ending,
        after=rng.choice([0.0, 0.02, 0.1, 0.4]) * rng.random(),
        lines=rng.randrange(1, max(2, files)) if rng.random() < 0.5 else None,
        limit=rng.choice([0, 2_000, 30_000, 200_000]),
        disk=rng.random() < 0.5,
        cut=rng.random() if rng.random() < 0.3 else 1.0,
    )
