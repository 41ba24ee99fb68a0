"""How to install what an extra of burler's brings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

DISTRIBUTION = "singer-burler"
"""What burler is called among installed packages."""


def install(extra: str) -> str:
    """The command that installs what an extra brings. It names the packages, not burler: that may have come from a
    clone, a wheel or an index."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # it runs from its clone, and was never installed
        return f"pip install '.[{extra}]' in burler's clone"
    return " ".join(["pip install", *(f"'{one}'" for one in dict.fromkeys(_brought(requirements, extra)))])


def _brought(requirements: Sequence[str], extra: str) -> Iterator[str]:
    """The packages of an extra, and behind them those of the extras that it names."""
    named: list[str] = []
    for line in requirements:
        package, _, condition = line.partition(";")
        if not re.search(rf"""extra == ["']{extra}["']""", condition):
            continue
        if within := re.fullmatch(rf"{DISTRIBUTION}\[(.+)\]", package.strip()):
            named += within[1].split(",")
        else:
            yield package.strip()
    for other in named:
        yield from _brought(requirements, other)
