"""What the commands of a lake have in common: the options of its store, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler.cli.helping import OPTIONS, option
from burler.cli.options_batch import read_options

if TYPE_CHECKING:
    from burler.storage.base import Store

LAKE_OPTIONS = "--lake-options"


def lake_options_in(section: str = OPTIONS) -> Callable[[Any], Any]:
    """The decorator that gives a command ``--lake-options``, under a heading of its help."""
    return option(
        LAKE_OPTIONS,
        section=section,
        metavar="JSON|FILE",
        help="For the library that reaches the lake's store; secrets belong in a FILE or the environment.",
    )


lake_options = lake_options_in()


def open_lake(url: str, options: str | None, *, must_exist: bool = False) -> Store:
    """The lake's store. ``options``: what ``--lake-options`` was given.

    Raises:
        UsageError: options that are no JSON object; and what ``open_store`` raises.
    """
    from burler.lake.store import open_store

    return open_store(url, must_exist=must_exist, options=read_lake_options(options))


def read_lake_options(text: str | None) -> dict[str, Any] | None:
    """What ``--lake-options`` was given, as an object.

    Raises:
        UsageError: it is no JSON object, nor a file that holds one.
    """
    return read_options(LAKE_OPTIONS, text)
