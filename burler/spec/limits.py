"""The figures that rules go by. Each can be set in ``[tool.burler.verify.limits]`` of pyproject.toml."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The figures.

    Attributes:
        min_advance_ratio: seconds that a date-time bookmark must advance for each second of the run (B306).
        min_advance_seconds: a run shorter than this says nothing about how fast it advances (B306).
        future_seconds: clocks may differ by so much (M211, B307).
        state_bytes_per_row: so many bytes a row may a STATE grow by (B308).
        state_bytes: a STATE smaller than this may grow as it likes (B308).
        keys_in_memory: keys of a stream that are held in memory before they go to a temporary file.
        requests_per_row: more requests than this for each row are too many (H703), once there were
            ``requests_counted``.
        requests_counted: see there.
        stop_seconds: how long a tap may take to end once it is told to (P606).
    """

    min_advance_ratio: float = 1.0
    min_advance_seconds: float = 10.0
    future_seconds: float = 300.0
    state_bytes_per_row: float = 4.0
    state_bytes: int = 16_384
    keys_in_memory: int = 250_000
    requests_per_row: float = 0.5
    requests_counted: int = 20
    stop_seconds: float = 10.0
