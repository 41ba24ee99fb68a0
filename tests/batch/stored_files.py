"""What tests of storage share."""

from __future__ import annotations

import contextlib
import os

NAME = "tap-crm--contacts-0123456789ab-00001.jsonl"
OTHER = "tap-crm--contacts-0123456789ab-00002.jsonl"


def stored(folder):
    """Name -> content of all that stands below a folder, hidden files too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def nobody():
    """Rights mean nothing to root: for a moment, be nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
