"""Python's garbage collector while rows go by."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def calm_collector(objects: int) -> Iterator[None]:
    """What was loaded is left alone, and the collector comes less often: after so many new ``objects``.

    A page of rows is thousands of new objects, which go again without the collector's help; each of its visits, by
    Python's own settings several a page, looks at them in vain.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(before[0], objects), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
