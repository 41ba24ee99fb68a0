"""What the pages are made of: frozen pictures of a lake, its taps, streams and schema versions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from burler.lake.site.changes import Change, View
from burler.lake.site.tally import Tally
from burler.lake.snapshot import DataFile


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read: where (a tap, or ``tap/stream``), and what is wrong."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Status:
    """How the last run of a tap went, as its writer has said (``singerlake.json``). All may be empty."""

    state: str = ""
    writer: str = ""
    started: dt.datetime | None = None
    ended: dt.datetime | None = None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """One schema version. ``changes`` are those since the version before; None where either is unknown."""

    number: int
    label: str
    hash: str
    tally: Tally
    view: View | None
    line: bytes
    changes: tuple[Change, ...] | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One record as it stands in the lake: (field, value) of the top level, as text; ``left_out`` more fields."""

    values: tuple[tuple[str, str], ...]
    left_out: int
    extracted: str


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """One stream. ``view`` is its newest schema, ``current`` the version that has it (None: from the catalogue).

    ``source`` says where the list of files comes from: ``manifest``, ``folder``, or ``catalogue`` (there are no files).
    """

    tap_id: str
    stream: str
    folder: str
    source: str
    tally: Tally
    versions: tuple[Version, ...]
    current: Version | None
    view: View | None
    replication: str = ""
    generation: str = ""
    sequence: int = 0
    newest: tuple[DataFile, ...] = ()
    samples: tuple[Sample, ...] = ()
    samples_from: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A stream in the list of its tap: what is kept of it once its page is written."""

    tap_id: str
    stream: str
    page: str
    description: str
    tally: Tally
    fields: int
    versions: int
    source: str
    broken: bool


@dataclass(slots=True)
class TapFacts:
    """One tap: its notes, its streams, and what they hold together. ``folder`` is ``raw/<tap>``."""

    tap_id: str
    folder: str
    page: str
    owner: str = ""
    description: str = ""
    documentation: str = ""
    status: Status | None = None
    streams: list[StreamLine] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    problems: list[Problem] = field(default_factory=list)
