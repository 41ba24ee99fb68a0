"""``time_extracted`` of a stream's rows (M210, M211), and how long reading took by it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.target.timestamps import are_all_canonical, normalise_time


class TimeWatch:
    """Takes the times of rows, a page at a time."""

    def __init__(self, stream: str, findings: Findings, limits: Limits) -> None:
        self._stream, self._findings, self._limits = stream, findings, limits
        self._least = self._greatest = ""

    def page(self, texts: Sequence[str | None], first: int, now: dt.datetime) -> None:
        """Times of neighbouring rows; None where a row has none, which it need not."""
        different = {text for text in texts if text is not None}
        if not different:
            return
        times = different if are_all_canonical(list(different)) else self._normal(different, texts, first)
        if not times:
            return
        least, greatest = min(times), max(times)
        if dt.datetime.fromisoformat(greatest) > now + dt.timedelta(seconds=self._limits.future_seconds):
            self._say("M211", f"time_extracted {greatest} lies in the future", texts, first, greatest)
        self._least = min(self._least or least, least)
        self._greatest = max(self._greatest, greatest)

    def _normal(self, different: set[str], texts: Sequence[str | None], first: int) -> set[str]:
        times = set()
        for text in different:
            try:
                time, assumed = normalise_time(text)
            except ValueError as error:
                self._say("M210", f"time_extracted: {error}", texts, first, text)
                continue
            if assumed:
                self._say(
                    "M210", f"time_extracted {text[:40]!r} has no zone: who reads it must guess", texts, first, text
                )
            times.add(time)
        return times

    def _say(self, code: str, message: str, texts: Sequence[str | None], first: int, text: str) -> None:
        place = next((at for at, one in enumerate(texts) if one == text), 0)
        self._findings.add(code, message, stream=self._stream, place=f"line {first + place}")

    @property
    def seconds(self) -> float:
        """From the first row's time to the last one's."""
        if not self._least or self._least == self._greatest:
            return 0.0
        return (dt.datetime.fromisoformat(self._greatest) - dt.datetime.fromisoformat(self._least)).total_seconds()
