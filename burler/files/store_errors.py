"""What errors of stores and formats mean: a file that is gone, one that is broken, a store that does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from burler.errors import BurlerError, FileError
from burler.formats import FormatError
from burler.storage.faults import fact, is_gone
from burler.storage.location import shown


@contextmanager
def said(name: str) -> Iterator[None]:
    """What a store says while a file is read becomes a ``FileError`` that names it; a file that is gone stays a
    ``FileNotFoundError``."""
    try:
        yield
    except BurlerError:
        raise
    except FileNotFoundError as error:
        if is_gone(error):
            raise
        raise FileError(f"file '{name}': its store does not answer as it should: {fact(error)}.") from None
    except Exception as error:  # stores have errors of many kinds
        raise FileError(f"file '{name}' can't be read: {fact(error)}.") from None


_LETTERS = "Where quotes are letters like others: csv=burler.files.Csv(quotechar=None)."
_CURES = {
    "other": "Say what it is, with format= or compression=.",
    "cut": "Is it still being written? settle_seconds leaves files alone that changed lately.",
    "limit": "If that is right, raise max_unpacked_bytes.",
    "quote": f"{_LETTERS} Where more may stand behind the quote that ends a field: strict_quotes=False.",
    "open": _LETTERS,
    "return": "Where it ends a row: csv=burler.files.Csv(strict_quotes=False).",
    "width": "Is the file cut off there, or is the delimiter or the quote another one (csv=burler.files.Csv(...))?",
    "long": "If it is right, raise max_line_bytes. Is it a JSON document (format='json'), or are quotes letters like "
    "others (csv=Csv(quotechar=None))?",
    "encoding": "Say which encoding it is in: csv=burler.files.Csv(encoding='latin-1'), 'cp1252', 'utf-16'.",
}


@contextmanager
def named(name: str) -> Iterator[None]:
    """What is wrong with a file's bytes becomes a ``FileError`` that names it, with a cure."""
    try:
        yield
    except FormatError as error:
        place = f", {error.place}" if error.place else ""
        cure = _CURES.get(error.kind)
        fact = f"file '{name}'{place}: {shown(error.fact)}."
        raise FileError(f"{fact}\n  {cure}" if cure else fact) from None
