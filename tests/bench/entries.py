"""What an entry of the benchmark's tables is made of: programs, cases, rows and their bars."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """Something that reads the standard rows and gives them on.

    Attributes:
        script: a file in ``programs``, run as ``script variant work rows``.
        environment: the name of its virtual environment (see ``environments``); None is the Python that runs this.
        does: what it does with a row, and what it leaves out: for the docs.
        given: a file in ``programs`` that makes what this one reads, run as ``given folder rows`` once for each number
            of rows and not measured; the folder is named by ``BENCH_GIVEN``.
    """

    name: str
    script: str
    does: str
    variant: str = "default"
    environment: str | None = None
    given: str | None = None


@dataclass(frozen=True)
class Case:
    """A program, the work it does (``pages``, ``rows``, ``keyed``, ``bytes``, ``arrow``, ``big``, a format of files, or
    one of a kind that comes in several sizes, as ``parts-50``), and the share of the run's rows that it is given: slow
    programs get fewer, and their figures are scaled."""

    program: Program
    work: str
    share: float = 1.0

    def rows(self, base: int) -> int:
        """How many rows, if a whole case has ``base``."""
        return max(1, round(base * self.share))

    @property
    def kind(self) -> str:
        """The work without its size."""
        return self.work.partition("-")[0]

    @property
    def label(self) -> str:
        """Short name in tables of figures."""
        return f"{self.program.name}: {self.work}"


@dataclass(frozen=True)
class Bar:
    """What a row must reach: at least ``least`` times the rows/s of ``against``."""

    against: Case
    least: float
    said: str


@dataclass(frozen=True)
class RateRow:
    """Rows per second of CPU, against the floor and against peers."""

    name: str
    title: str
    case: Case
    floor: Case
    bars: tuple[Bar, ...]
    peers: tuple[Case, ...] = ()
    needs: str | None = None  # a package without which neither side runs

    @property
    def cases(self) -> tuple[Case, ...]:
        """All that is measured for the row."""
        return tuple(dict.fromkeys((self.case, self.floor, *(bar.against for bar in self.bars), *self.peers)))


@dataclass(frozen=True)
class MemoryRow:
    """Peak memory with few rows and with many. Flat: peak(many) <= 1.1 x peak(few) + 10 MB.

    Attributes:
        most: MB that the peak may not pass at all, or None.
        peers: with the number of rows that stands for "many": slow programs are given fewer.
    """

    name: str
    title: str
    case: Case
    few: int
    many: int
    most: float | None
    peers: tuple[tuple[Case, int], ...] = ()
    needs: str | None = None


@dataclass(frozen=True)
class StartRow:
    """Wall seconds of a whole process (``startup.commands``), as they are or less or over those of another.

    Attributes:
        less: a command whose seconds are taken off.
        over: a command whose seconds it is divided by.
    """

    name: str
    title: str
    command: str
    most: float
    less: str | None = None
    over: str | None = None
    commands: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = (self.command, self.less, self.over)
        object.__setattr__(self, "commands", tuple(name for name in named if name is not None))
