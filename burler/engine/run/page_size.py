"""How many rows make a page: few bytes in memory, and few seconds until they are out."""

from __future__ import annotations

from burler.settings import Settings

_PAGE_BYTES = 4 * 1024 * 1024
_FIRST_PAGE_ROWS = 10


class PageSize:
    """Starts small and follows what it sees of the stream's rows and of the time they take."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rows = min(_FIRST_PAGE_ROWS, settings.page_max_rows)
        self._rows_before = self._size_before = 0

    def adapt(self, *, rows: int, size: int, seconds: float) -> None:
        """Take in what a page has shown.

        Args:
            rows, size: how many rows, and bytes of lines, the stream has had so far.
            seconds: how long the last page took to come together.
        """
        limit = self._settings.page_max_rows
        new, new_size = rows - self._rows_before, size - self._size_before
        if new > 0:
            limit = min(limit, max(1, _PAGE_BYTES // max(1, new_size // new)))
            self._rows_before, self._size_before = rows, size
        age = self._settings.page_max_age_seconds / 2
        if seconds > age:
            limit = min(limit, int(self.rows / seconds * age))
        self.rows = max(1, min(limit, self.rows * 4))
