"""Readers and writers of file formats: one of each, for BATCH, ``burler.files`` and the lake.

A reader takes an object with ``read(size)`` and gives record batches of pyarrow, or lines. What it raises says what is
wrong and in which row; whoever asked adds the file's name. What a JSON Schema wants of columns is not known here.
"""

from __future__ import annotations


class FormatError(Exception):
    """A file is not what it should be.

    Attributes:
        fact: what is wrong, without a point.
        place: where, as ``row 3`` or ``line 4``; empty if it is of the whole file.
        kind: one word that stays the same, by which callers add a cure.
    """

    def __init__(self, fact: str, place: str = "", kind: str = "") -> None:
        super().__init__(f"{place}: {fact}." if place else f"{fact}.")
        self.fact, self.place, self.kind = fact, place, kind
