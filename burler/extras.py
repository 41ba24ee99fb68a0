"""Import of optional packages, with the install command in the error."""

from __future__ import annotations

import importlib
from types import ModuleType

from burler.errors import MissingExtra


def require(module: str, *, extra: str, needed_for: str) -> ModuleType:
    """Import ``module`` or raise :class:`MissingExtra` that names the extra to install.

    Only the absence of the package itself counts as missing: an ImportError from inside a
    package that is there goes through unchanged, since hiding it would send the user the wrong way.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(package, extra=extra, needed_for=needed_for) from None
