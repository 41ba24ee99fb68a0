"""Lakes in the memory of this process, each empty and of its own."""

from __future__ import annotations

import itertools

from burler.lake import Store, open_store

_NUMBERS = itertools.count(1)


def in_memory() -> Store:
    """An empty store that no other test has."""
    return open_store(f"memory://of-a-test-{next(_NUMBERS)}")
