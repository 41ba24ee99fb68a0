"""Rows that no column can hold: how many an export may leave out, and where they are kept."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from burler.errors import ExportError
from burler.spark import quarantine
from burler.spark.export_options import ExportOptions
from burler.spark.lakefiles import LakeStream
from burler.spark.readrows import ReadReport
from burler.words import counted


@dataclass(slots=True)
class BadRows:
    """The quarantine of one stream in one export. ``place``: its file, once there is one."""

    lake: LakeStream
    options: ExportOptions
    folder: Path
    export_id: str = field(default_factory=lambda: secrets.token_hex(8))
    place: str | None = None
    _refused: bool = field(default=False, init=False)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Around a publication: where it fails, the file goes again, unless it is what the user must look at."""
        try:
            yield
        except BaseException:
            if self.place is not None and not self._refused:
                Path(self.place).unlink(missing_ok=True)
                self.place = None
            raise

    def publish(self, report: ReadReport) -> None:
        """Keep the rows, before the table is published: killed in between, an export loses none of them.

        Raises:
            ExportError: there are more than may be; names the first, and the file.
        """
        if not report.quarantined or report.bad is None:
            return
        first = next(quarantine.read_bad(report.bad))
        path = next((file.path for file in self.lake.files if file.name == first.file), first.file)
        file = quarantine.publish(
            report.bad,
            self.folder.joinpath(*self.lake.folders),
            tap_id=self.lake.tap_id,
            stream=self.lake.stream,
            export_id=self.export_id,
        )
        self.place = str(file)
        most = self.options.read.max_bad_rows
        if report.quarantined <= most:
            return
        self._refused = True
        raise ExportError(
            f"stream '{self.lake.stream}': {counted(report.quarantined, 'row')} can't be held exactly, "
            f"{most} may (max_bad_rows). The first: {path}{first.fault.removeprefix(first.file)}.\n"
            f"All of them: {file}. Nothing was published. Correct the schema or the value in the tap, and extract "
            f"again; or go on without these rows: --max-bad-rows {report.quarantined}"
        )

    def refuse_cut_keys(self, report: ReadReport, keys: Sequence[str]) -> None:
        """Raises:
        ExportError: a key's date-time lost digits, by which different keys may have become equal.
        """
        cut = [key for key in keys if report.truncated.get(key)]
        if cut:
            raise ExportError(
                f"stream '{self.lake.stream}': date-times in its key {', '.join(cut)} have more than six digits; cut, "
                "different ones would become equal. Nothing was published. Declare the key as plain text, or export "
                "with --timestamps text"
            )
