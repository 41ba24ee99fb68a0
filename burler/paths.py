"""The path from a JSON document to its rows, as the author writes it."""

from __future__ import annotations

from collections.abc import Sequence


def path_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names on the way to the rows, from ``"a.b"`` or ``["a", "b"]``.

    Raises:
        ValueError: an empty name, or something that is no name.
    """
    names = given.split(".") if isinstance(given, str) and given else given or ()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"records_path must be names with dots between them, or a list of names, not {given!r}")
    return tuple(names)
