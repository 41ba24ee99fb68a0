"""A page for each package of burler whose names stand on no page written by hand: all that it makes public."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGES = {
    "files": "files.md",
    "graphql": "graphql.md",
    "http": "http.md",
    "lake": "lake.md",
    "soap": "soap.md",
    "spark": "spark.md",
    "sql": "sql.md",
}
"""Package -> the page that says how it is used."""
_SAME_NAME = {"burler.soap.Client"}
"""Classes that annotations do not mean by their last name: that would be ambiguous."""


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    return {f"{name}.md": _page(import_module(f"burler.{name}"), guide) for name, guide in PACKAGES.items()}


def _page(package: ModuleType, guide: str) -> str:
    doc = inspect.getdoc(package) or ""
    parts = [
        f"# {package.__name__}",
        " ".join(doc.split("\n\n")[0].split()).replace("``", "`"),
        f"How it is used: [{guide}](../../{guide}).",
        "```{eval-rst}\n" + "\n".join(_directive(package, name) for name in package.__all__) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _directive(package: ModuleType, name: str) -> str:
    value = getattr(package, name)
    full = f"{package.__name__}.{name}"
    if not inspect.isclass(value):
        return f".. autofunction:: {full}" if callable(value) else f".. autodata:: {full}"
    lines = [f".. autoclass:: {full}"]
    members = _members(value)
    if members:
        lines.append(f"   :members: {', '.join(members)}")
    if issubclass(value, BaseException) or full in _SAME_NAME:  # errors stand in the reference, too
        lines.append("   :no-index:")
    return "\n".join(lines)


def _members(cls: type) -> list[str]:
    """Methods and properties of a class, and of burler's classes below it, that say what they do."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("burler."):
            found.update(vars(base))
    return [
        name
        for name, value in found.items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod))
        and inspect.getdoc(value)
    ]
