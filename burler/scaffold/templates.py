"""Templates: files of this package, in which a few words stand for the tap's name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from burler.scaffold.kinds import Kind
from burler.scaffold.names import TapName

_SUFFIX = ".tmpl"
_SCHEMAS = '\n[tool.setuptools.package-data]\n"tap_example.schemas" = ["*.json"]\n'


def render(kind: Kind, name: TapName) -> dict[str, str]:
    """The files of a new project: relative paths (with ``/``) and their text. The README still has its places for
    what the tap says of itself: see ``readme.fill``."""
    words = {
        "{{description}}": kind.description,
        "{{dependencies}}": ", ".join(f'"{requirement}"' for requirement in kind.dependencies),
        # setuptools takes a folder of data for a package, and warns of one that is not named.
        "{{packages}}": '"tap_example", "tap_example.schemas"' if kind.schemas else '"tap_example"',
        "{{package_data}}": _SCHEMAS if kind.schemas else "",
        "tap-example": name.command,
        "tap_example": name.package,
    }
    root = files("burler.scaffold") / "templates"
    made: dict[str, str] = {}
    for folder in (root / "common", root / kind.name):
        for path, text in _texts(folder, ""):
            for word, meant in words.items():
                path, text = path.replace(word, meant), text.replace(word, meant)
            made[path] = text
    return dict(sorted(made.items()))


def _texts(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _texts(item, f"{above}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            # Tools treat real dot files in a package in ways of their own.
            plain = item.name.removesuffix(_SUFFIX).replace("dot-", ".", 1)
            yield above + plain, item.read_text(encoding="utf-8")
