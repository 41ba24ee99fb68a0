"""Imports that wait: optional packages, with the install command in the error, and names of our own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

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


_STORES = {
    **dict.fromkeys(("s3", "s3a"), ("s3fs", "s3")),
    **dict.fromkeys(("gs", "gcs"), ("gcsfs", "gcs")),
    **dict.fromkeys(("az", "abfs", "abfss"), ("adlfs", "azure")),
}


def store_package(url: str) -> tuple[str, str]:
    """The package by which fsspec reaches the store of a URL, and the extra that brings it; "" and "" for others.

    Args:
        url: also one within another, as ``zip://*.csv::s3://bucket/a.zip``.
    """
    return _STORES.get(url.rpartition("::")[2].partition("://")[0].lower(), ("", ""))


def require_store(url: str, *, needed_for: str) -> None:
    """Import the package that reaches the store of a URL, where burler has an extra for it.

    Raises:
        MissingExtra: it is not there.
    """
    package, extra = store_package(url)
    if package:
        require(package, extra=extra, needed_for=needed_for)


def lazy_names(
    package: str, where: Mapping[str, str], *, packages: Collection[str] = (), others: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``: public names that are imported when somebody first asks for them,
    so that ``import burler`` stays quick, and what ``dir()``, and so the TAB key, shows of them.

    Args:
        where: name -> the module that has it, below ``package``; ".other.module" stands beside the package.
        packages: names below ``package`` that are imported themselves; shown beside ``__all__``.
        others: packages below it that are shown once they are imported.
    """

    def find(name: str) -> Any:
        if name in packages:
            return importlib.import_module(f"{package}.{name}")
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{where[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    def shown() -> list[str]:
        module = sys.modules[package]
        return sorted({*module.__all__, *packages, *(vars(module).keys() & set(others))})

    return find, shown
