"""Where bytes lie: one interface (``base``) for a folder (``local``), and for objects (``objects``) in a ``bucket`` of
``s3``, ``gcs``, ``azure``, ``fsspec_store`` or this process (``memory``). URLs: ``location``; errors of stores:
``faults``; when files changed: ``times``; which files fit a pattern: ``find``; one file by
its URL: ``reading``, ``web``.
"""

from __future__ import annotations

import importlib

from burler.storage.base import FileStore
from burler.storage.location import Location

_MODULES = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}


def open_location(location: Location, *, probing: bool = True) -> FileStore:
    """The store of a place. Nothing is asked of it so far.

    Args:
        probing: see ``ObjectStore``.

    Raises:
        MissingExtra: the store's package is not installed. ``words.wrong``: no store has such URLs, or it does not take
            the options.
    """
    if location.folder is not None:
        from burler.storage.local import LocalStore

        return LocalStore(location.folder, location.words)
    from burler.storage.objects import ObjectStore

    module = importlib.import_module(f"burler.storage.{_MODULES.get(location.scheme, 'fsspec_store')}")
    return ObjectStore(location, module.connect, probing=probing)
