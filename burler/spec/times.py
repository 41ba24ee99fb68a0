"""``time_extracted`` of a stream's rows (M210, M211), and how long reading took by it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence

from burler import times
from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.saying import say_lines


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
        known = {text: text for text in different}
        if not times.are_lake_form(list(different)):
            known = self._normal(different, texts, first)
            if not known:
                return
        least, greatest = min(known.values()), max(known.values())
        latest = now + dt.timedelta(seconds=self._limits.future_seconds)
        if times.moment(greatest) > latest:
            late = {text for text, time in known.items() if times.moment(time) > latest}
            self._say("M211", texts, first, late, lambda text: f"time_extracted {known[text]} lies in the future")
        self._least = min(self._least or least, least)
        self._greatest = max(self._greatest, greatest)

    def _normal(self, different: set[str], texts: Sequence[str | None], first: int) -> dict[str, str]:
        """Texts that are times, each as one."""
        known: dict[str, str] = {}
        said: dict[str, str] = {}
        for text in different:
            try:
                known[text], assumed = times.lake(text)
                if assumed:
                    said[text] = f"time_extracted {text[:40]!r} has no zone: who reads it must guess"
            except ValueError as error:
                said[text] = f"time_extracted: {error}"
        self._say("M210", texts, first, said.keys(), said.__getitem__)
        return known

    def _say(
        self,
        code: str,
        texts: Sequence[str | None],
        first: int,
        odd: Collection[str],
        words: Callable[[str], str],
    ) -> None:
        lines = [at for at, one in enumerate(texts) if one in odd]
        if lines:
            message = words(str(texts[lines[0]]))
            say_lines(self._findings, code, message, [first + at for at in lines], stream=self._stream)

    @property
    def seconds(self) -> float:
        """From the first row's time to the last one's."""
        if not self._least or self._least == self._greatest:
            return 0.0
        return (times.moment(self._greatest) - times.moment(self._least)).total_seconds()
