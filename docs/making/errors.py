"""A page for each class of error: what it means, what to do, and every text that burler says with it."""

from __future__ import annotations

import inspect
from collections import defaultdict

from making.guidance import AREAS, CURES
from making.texts import CLASSES, Text, parts, texts

_WARNINGS = "warnings.md"
_GATHERED = "gathered.md"
_PARTS = "parts.md"


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    by_kind: dict[str, list[Text]] = defaultdict(list)
    for text in texts():
        by_kind[text.kind].append(text)
    found = {f"{name.lower()}.md": _page(name, by_kind[name]) for name in CLASSES}
    found[_WARNINGS] = _listing("Warnings", _OF_WARNINGS, by_kind["warning"])
    found[_GATHERED] = _listing("Problems, told several at once", _OF_GATHERED, by_kind["gathered"])
    found[_PARTS] = _listing("Parts of texts", _OF_PARTS, list(parts()))
    return {**found, "index.md": _index({name: len(by_kind[name]) for name in CLASSES})}


_OF_WARNINGS = (
    "What burler logs with `WARNING`: the run goes on. `{...}` stands for what differs. "
    "`BURLER_LOG_LEVEL=ERROR` silences "
    "them, which nobody should do who does not read them elsewhere."
)
_OF_GATHERED = (
    "A config, a catalog or a declaration may be wrong in several places. burler names all of them in "
    "one error, a line each; "
    "these are the lines. The error that has them is one of [class UsageError](usageerror.md) or below it; exit code 2."
)

_OF_PARTS = (
    "Many errors are put together: from the place, a fact that several of them share, and a cure. These are such "
    "pieces, by the part of burler that says them, with words of tables and reports among them. Where a page of an "
    "error has `{...}`, one of these stands there."
)


def _page(name: str, found: list[Text]) -> str:
    cls = CLASSES[name]
    bases = [base.__name__ for base in cls.__mro__[1:] if base.__name__ in CLASSES]
    below = [each for each, other in CLASSES.items() if cls in other.__bases__]
    rows = [f"| exit code | {cls.exit_code} |", f"| import | `from burler.errors import {name}` |"]
    if bases:
        rows.append("| is a | " + ", ".join(_link(base) for base in bases) + " |")
    if below:
        rows.append("| kinds of it | " + ", ".join(_link(each) for each in below) + " |")
    lines = [f"# {name}", _doc(cls), "| | |\n|---|---|\n" + "\n".join(rows), "## What to do", CURES[name]]
    return "\n\n".join([*lines, *_texts("## What it says", found)]) + "\n"


def _doc(cls: type) -> str:
    """The first paragraph of a class's docstring: attributes are for the reference."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split()).replace("``", "`")


def _listing(title: str, intro: str, found: list[Text]) -> str:
    return "\n\n".join([f"# {title}", intro, *_texts("", found)]) + "\n"


def _texts(heading: str, found: list[Text]) -> list[str]:
    if not found:
        return []
    lines = [heading, "`{name}` stands for what differs each time."] if heading else []
    by_area: dict[str, list[str]] = defaultdict(list)
    for text in found:
        by_area[text.area].append(text.text)
    level = "###" if heading else "##"
    for area in sorted(by_area):
        title, guide = AREAS[area]
        lines += [f"{level} {title}", f"More: [{guide}](../{guide})", f"````text\n{_lines(by_area[area])}\n````"]
    return lines


def _lines(found: list[str]) -> str:
    return "\n\n".join("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in sorted(found))


def _link(name: str) -> str:
    return f"[{name}]({name.lower()}.md)"


def _index(counts: dict[str, int]) -> str:
    rows = []
    for name, cls in CLASSES.items():
        depth = sum(base.__name__ in CLASSES for base in cls.__mro__) - 1
        rows.append(f"| {'&emsp;' * depth}{_link(name)} | {cls.exit_code} | {_doc(cls)} |")
    lines = [
        "# Errors",
        _INTRO,
        "```{toctree}\n:hidden:\n\n"
        + "\n".join([*(name.lower() for name in CLASSES), "gathered", "parts", "warnings"])
        + "\n```",
        "| error | exit code | is |\n|---|---|---|\n" + "\n".join(rows),
        f"[Problems told several at once]({_GATHERED}), in one of these errors; [warnings]({_WARNINGS}), "
        f"which end nothing. A text that stands on no page whole is put together of these [parts]({_PARTS}).",
        f"{sum(counts.values())} texts and {len(parts())} parts stand on these pages. They are made from the code by "
        "`python docs/make_pages.py`: what you read there is what burler says. Words that stand on none of them come "
        "from your own code, your source or a library.",
    ]
    return "\n\n".join(lines) + "\n"


_INTRO = (
    "An error of burler names the place, the fact and the cure, in at most three lines, without a traceback; "
    "`BURLER_LOG_LEVEL=DEBUG` shows that as well. To find one here, search for its fixed words (not for "
    "names and values of "
    "yours). The exit code is what the process ends with; where several streams fail, the whole ends with 1. "
    "[Running](../running.md#exit-codes) says what a scheduler should make of each."
)
