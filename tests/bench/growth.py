"""What is measured where there is a lot of something: the rows of the tables with their bars, and what they come to.

Cost per row is CPU seconds less those of a run with one thing (one partition, one parent): what opening and closing a
run costs does not make the few look dear.
"""

from __future__ import annotations

from dataclasses import dataclass

import cases
from cases import Case, Program
from measure import States, Summary
from results import MB, MISS, NONE, PASS, Results

FLAT = 1.3  # cost per row with many, over that with few
WORKERS_LEAST = 0.8  # speed-up, over the number of workers
REPLY_SECONDS = 0.05


@dataclass(frozen=True)
class GrowthRow:
    """Cost and STATE with few things and with many.

    Attributes:
        thing: what there are few or many of.
        rows_each: rows of one thing.
        peers: with the numbers of things that they are given.
    """

    name: str
    title: str
    thing: str
    case: Case
    rows_each: int
    few: int
    many: int
    peers: tuple[tuple[Case, tuple[int, ...]], ...] = ()

    def scaled(self, number: int, scale: float) -> int:
        """A number of things, as this run has it: a quick run has fewer."""
        least = 2 * self.scaled(self.few, scale) if number > self.few else 2
        return max(least, round(number * (scale if number > self.few else min(1.0, scale * 5))))

    def counts(self, case: Case, scale: float) -> tuple[int, ...]:
        """How many things a case is measured with, beside one."""
        wanted = (self.few, self.many) if case == self.case else dict(self.peers)[case]
        return tuple(self.scaled(number, scale) for number in wanted)

    @property
    def cases(self) -> tuple[Case, ...]:
        """All that is measured for the row."""
        return (self.case, *(case for case, _counts in self.peers))


@dataclass(frozen=True)
class WorkersRow:
    """Wall seconds of a whole process that waits for its source, with more and more workers.

    Attributes:
        bare: the same replies fetched by so many threads that do nothing else, each with the number of threads.
    """

    name: str
    title: str
    cases: tuple[tuple[int, Case], ...]
    bare: tuple[tuple[int, Case], ...]
    rows: int

    def scaled_rows(self, scale: float) -> int:
        """Rows in all, as this run has it; never fewer than a reply for each of 16 workers."""
        return max(1_600, round(self.rows * scale))


BURLER_MANY = Program("burler", "tap_burler_many.py", cases.BURLER.does)
SDK_MANY = Program("singer-sdk", "tap_sdk_many.py", cases.SDK.does, environment="singer-sdk")
SDK_ONE = Program(
    "singer-sdk, one bookmark",
    "tap_sdk_many.py",
    "singer-sdk with `state_partitioning_keys = ()` on the child stream",
    variant="one-bookmark",
    environment="singer-sdk",
)
THREADS = Program("bare threads", "threads.py", "fetch the replies and throw them away")
PROGRAMS = (SDK_ONE, THREADS)
_WORKERS = (1, 2, 4, 8, 16)

GROWTH = (
    GrowthRow(
        "partitions",
        "partitions of 50 rows, own bookmark each",
        "partitions",
        Case(BURLER_MANY, "parts-50"),
        50,
        100,
        4_000,
        ((Case(SDK_MANY, "parts-50"), (100, 4_000)),),
    ),
    GrowthRow(
        "partitions-asc",
        'the same, `order="asc"`',
        "partitions",
        Case(BURLER_MANY, "parts-50-asc"),
        50,
        100,
        4_000,
    ),
    GrowthRow(
        "small-partitions",
        "partitions of 5 rows, own bookmark each",
        "partitions",
        Case(BURLER_MANY, "parts-5"),
        5,
        1_000,
        100_000,
    ),
    GrowthRow(
        "small-partitions-asc",
        'the same, `order="asc"`, 5 rows',
        "partitions",
        Case(BURLER_MANY, "parts-5-asc"),
        5,
        1_000,
        100_000,
    ),
    GrowthRow(
        "children",
        "parents with 5 child rows each, `every_n(1000)`",
        "parents",
        Case(BURLER_MANY, "children-5"),
        6,
        2_000,
        40_000,
        ((Case(SDK_MANY, "children-5"), (2_000,)), (Case(SDK_ONE, "children-5"), (2_000,))),
    ),
)
WORKERS = (
    WorkersRow(
        "workers",
        "512 replies of 100 rows over HTTP, 50 ms each",
        tuple((number, Case(BURLER_MANY, f"workers-{number}")) for number in _WORKERS),
        tuple((number, Case(THREADS, f"workers-{number}")) for number in (1, 16)),
        51_200,
    ),
)
NAMES = tuple(row.name for row in (*GROWTH, *WORKERS))


def summary(results: Results, case: Case, things: int) -> Summary | None:
    """What was measured with so many things."""
    return results.growth.get((case, things))


def microseconds(results: Results, row: GrowthRow, case: Case, things: int) -> float | None:
    """CPU microseconds that a row costs, less those of a run with one thing; None if that was not measured."""
    one, some = summary(results, case, 1), summary(results, case, things)
    if one is None or some is None:
        return None
    return (some.cpu - one.cpu) / ((things - 1) * row.rows_each) * MB


def grown(results: Results, row: GrowthRow, case: Case) -> float | None:
    """Cost per row with the most things, over that with the fewest."""
    counts = row.counts(case, results.scale)
    costs = [microseconds(results, row, case, things) for things in (counts[0], counts[-1])]
    if len(counts) < 2 or costs[0] is None or costs[1] is None:
        return None
    return costs[1] / max(costs[0], 1e-6)


def state_share(states: States) -> float:
    """Bytes of STATE for each other byte."""
    return states.state_bytes / max(states.other_bytes, 1)


def growth_verdict(results: Results, row: GrowthRow) -> str:
    """The cost per row is flat, and STATE lines don't outweigh the rest."""
    ratio = grown(results, row, row.case)
    found = [summary(results, row.case, things) for things in row.counts(row.case, results.scale)]
    if ratio is None or any(one is None or one.states is None for one in found):
        return NONE
    shares = [state_share(one.states) for one in found if one is not None and one.states is not None]
    return PASS if ratio <= FLAT and max(shares) <= 1 else MISS


def speed_up(results: Results, cases_: tuple[tuple[int, Case], ...], number: int) -> float | None:
    """How many times as fast as with one worker, over the number of workers."""
    named = dict(cases_)
    one, some = results.workers.get(named[1]), results.workers.get(named[number])
    return one.whole / some.whole / number if one is not None and some is not None else None


def workers_verdict(results: Results, row: WorkersRow) -> str:
    """Each number of workers is worth it."""
    found = [speed_up(results, row.cases, number) for number, _case in row.cases]
    if any(one is None for one in found):
        return NONE
    return PASS if all(one is not None and one >= WORKERS_LEAST for one in found) else MISS
