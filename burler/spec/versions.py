"""Versions of a full table: what rows carry and what ACTIVATE_VERSION says (M212)."""

from __future__ import annotations

from burler.spec.finding import Findings


class Versions:
    """Takes the versions of a stream's rows and its ACTIVATE_VERSIONs, in their order.

    Args:
        resumed: the run was given a state, so targets may hold an older version, with rows.
        held: the version that the state given speaks of: targets' rows have it.
        was_whole: and all of its rows were out.
    """

    def __init__(
        self, stream: str, findings: Findings, *, resumed: bool, held: int | None = None, was_whole: bool = True
    ) -> None:
        self._held, self._was_whole = held, was_whole
        self.current: int | None = None
        self.batched = False  # many targets know no version of batched rows: an ACTIVATE_VERSION would delete them
        self._stream, self._findings, self._resumed = stream, findings, resumed
        self._rows: dict[int | None, int] = {}
        self._activated: list[int] = []
        self._activated_behind: set[int] = set()  # once their rows were out
        self._before_rows: tuple[int, int] | None = None
        self._empty: list[tuple[int, int]] = []

    def rows(self, version: int | None, count: int, line: int) -> bool:
        """Some rows; whether they begin a new version."""
        begins = version not in self._rows
        if begins and self._rows:
            if version is None:
                self._say(
                    "rows with a version are followed by rows without one: targets drop or keep them at random", line
                )
            elif None in self._rows:
                self._say(
                    "rows without a version are followed by rows with one: targets that activate it drop the others",
                    line,
                )
            elif any(other is not None and version < other for other in self._rows):
                self._say(f"the version goes back to {version}: targets take rows of older versions for dead", line)
            elif self.current not in (None, self._held) and self.current not in self._activated_behind:
                self._say(
                    f"{self._rows[self.current]} rows of version {self.current} are followed by rows of version "
                    f"{version}, and were never activated: targets drop them",
                    line,
                )
        if self._before_rows is not None and version != self._before_rows[0]:
            self._say(
                f"ACTIVATE_VERSION says {self._before_rows[0]}, and the rows after it carry {version}: the first drops "
                "all rows, the others are never activated",
                line,
            )
        elif self._before_rows is not None and self._resumed and version != self._held:
            self._say(
                "ACTIVATE_VERSION comes before the rows of its version, in a run that was given a state: targets drop "
                "the table's rows before the new ones are there",
                self._before_rows[1],
            )
        elif version in self._activated_behind and self._resumed and version != self._held:
            self._say(
                f"ACTIVATE_VERSION {version} comes before all rows of it are out, in a run that was given a state: "
                "until they are there the table lacks them",
                line,
            )
        self._before_rows = None
        self._rows[version] = self._rows.get(version, 0) + count
        self.current = version
        return begins

    def activate(self, version: int | None, line: int) -> None:
        """An ACTIVATE_VERSION."""
        if version is None:
            self._say("an ACTIVATE_VERSION without a whole number as version", line)
            return
        if not self._rows:
            self._before_rows = version, line  # of an empty table no rows follow
        elif version not in self._rows and version not in self._activated:
            self._empty.append((version, line))
        self._activated.append(version)
        if version in self._rows:
            self._activated_behind.add(version)

    def finish(self, *, whole: bool, full_table: bool) -> None:
        """The end of the messages."""
        # A log tells of a table that was emptied by a version without rows; a full table has rows, or never had some.
        for version, line in self._empty if full_table else ():
            if version not in self._rows:
                self._say(
                    f"ACTIVATE_VERSION says {version}, and no row carries it: targets drop all rows of the stream", line
                )
        carried = [version for version in self._rows if version is not None]
        if not whole or not carried or self.batched:
            return
        if carried[-1] in self._activated and carried[-1] not in self._activated_behind:
            # An incremental stream replaces nothing: it says at its start that its rows count, and goes on later.
            if not full_table or (carried[-1] == self._held and self._was_whole):
                return
            self._say(
                f"version {carried[-1]} is activated before its rows, and not once they are out: meanwhile the table "
                "is empty, and stays half full if the run breaks off",
                None,
            )
        elif carried[-1] not in self._activated and not self._is_held(carried[-1], full_table):
            self._say(
                f"the rows carry version {carried[-1]}, and no ACTIVATE_VERSION follows: rows that are gone at the "
                "source stay in the target for ever",
                None,
            )

    @property
    def replaced(self) -> int | None:
        """The version that stands in place of the one that was held; None where there is none."""
        return self._activated[-1] if self._activated and self._activated[-1] != self._held else None

    def _is_held(self, version: int, full_table: bool) -> bool:
        """Whether rows belong to the table as it stands: those of increments, and of a source that has sent a part of
        its rows, since the others have not changed."""
        return version == self._held and (self._was_whole or not full_table)

    def _say(self, message: str, line: int | None) -> None:
        self._findings.add("M212", message, stream=self._stream, place=None if line is None else f"line {line}")
