"""Errors as Spark shows them: the text alone, behind a page of its own words. So each is one line, without secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from burler.config.secrets import masked, scrub, secret_values
from burler.errors import (
    AppError,
    BatchError,
    BurlerError,
    CatalogError,
    ConfigError,
    DeclarationError,
    ExportError,
    LakeError,
    StateError,
    StorageError,
    StreamError,
    UsageError,
)
from burler.logs import short

_KINDS = (
    AppError,
    CatalogError,
    ConfigError,
    StateError,
    DeclarationError,
    UsageError,
    BatchError,
    LakeError,
    StorageError,
    ExportError,
)
"""Those that are told by their text alone."""


@contextlib.contextmanager
def one_line(config: Mapping[str, Any] | None = None, *, where: str = "format 'burler'") -> Iterator[None]:
    """Errors from here on are of burler's kinds, in one line.

    Args:
        config: whose secrets they must not show, beside those that this process knows of.
        where: begins the text of errors that burler does not know.
    """
    try:
        yield
    except BurlerError as error:
        text = " ".join(masked(scrub(str(error), tuple(secret_values(config or {})))).split())
        if isinstance(error, StreamError):
            raise StreamError(error.stream, text) from None
        kinds = (kind for kind in type(error).__mro__ if kind in _KINDS)
        raise next(kinds, BurlerError)(text) from None
    except (OSError, RecursionError, ValueError, TypeError) as error:
        text = " ".join(masked(scrub(short(error), tuple(secret_values(config or {})))).split())
        raise BurlerError(f"{where}: {text}") from None
