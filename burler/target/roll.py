"""When files roll, the time by which they do, and how much of a page still goes into one."""

from __future__ import annotations

from dataclasses import dataclass

from burler.errors import UsageError


@dataclass(frozen=True, slots=True)
class RollSettings:
    """When a file is ended, committed, and the next one begun.

    ``max_file_bytes``: uncompressed, the SCHEMA line included; one line may exceed it. ``max_file_records``:
    None is no limit. ``max_file_age_seconds``: since its first message, also while nothing comes in.
    ``max_open_files``: beyond it the oldest is ended (a process may hold only so many). ``max_open_bytes``: of all
    open files, compressed, as they lie on disk or in memory; beyond it the greatest is ended.
    """

    max_file_bytes: int = 64 * 1024 * 1024
    max_file_records: int | None = None
    max_file_age_seconds: float = 60.0
    max_open_files: int = 100
    max_open_bytes: int = 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value > 0:  # so that NaN does not pass
                raise UsageError(f"{name} is {value}; it must be greater than 0.")


def fitting(
    lines: bytes | bytearray, start: int, left: int, *, room_bytes: int, room_records: int | None, fresh: bool
) -> tuple[int, int]:
    """(end, count) of the lines from ``start`` on that still go into a file; a fresh file takes one at least.

    ``left`` is the number of lines from ``start`` to the end of the page.
    """
    end, count = len(lines), left
    if end - start > room_bytes:
        end = lines.rfind(b"\n", start, start + max(0, room_bytes)) + 1
        if end <= start:
            return (lines.index(b"\n", start) + 1, 1) if fresh else (start, 0)
        count = lines.count(b"\n", start, end)
    if room_records is not None and count > room_records:
        end, count = start, room_records
        for _ in range(count):
            end = lines.index(b"\n", end) + 1
    return end, count
