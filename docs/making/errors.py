"""The page of errors: each class with its exit code, what it means, and what to do."""

from __future__ import annotations

import inspect
import re

from burler import errors

CLASSES = {
    name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, errors.BurlerError)
}
"""Each class of error by its name, a base before those below it."""

_INTRO = (
    "An error of burler names the place, the fact and the cure, in at most three lines, without a traceback; "
    "`BURLER_LOG_LEVEL=DEBUG` shows that as well. The exit code is what the process ends with; where several streams "
    "fail, the whole ends with 1. [Running](../running.md#exit-codes) says what a scheduler should make of each. The "
    "classes stand in `burler.errors`; [the reference](../reference.md#errors) has their attributes."
)


def page() -> str:
    """The page."""
    rows = []
    for name, cls in CLASSES.items():
        depth = sum(base.__name__ in CLASSES for base in cls.__mro__) - 1
        rows.append(f"| {'&emsp;' * depth}{_link(name)} | {cls.exit_code} | {meaning(cls)} |")
    parts = ["# Errors", _INTRO, "| error | exit code | is |\n|---|---|---|\n" + "\n".join(rows)]
    for name, cls in CLASSES.items():
        bases = [_link(base.__name__) for base in cls.__mro__[1:] if base.__name__ in CLASSES]
        facts = f"Exit code {cls.exit_code}." + (f" A kind of {', '.join(bases)}." if bases else "")
        parts += [f"## {name}", f"{meaning(cls)} {facts}", *cure(cls)]
    return "\n\n".join(parts) + "\n"


def meaning(cls: type) -> str:
    """What an error is: the first paragraph of its docstring."""
    return _paragraphs(cls)[0]


def cure(cls: type) -> list[str]:
    """What to do about it: the other paragraphs, but attributes, which are for the reference."""
    return [text for text in _paragraphs(cls)[1:] if not text.startswith("Attributes:")]


def _paragraphs(cls: type) -> list[str]:
    """A docstring as Markdown. A page that it names by its path becomes a link."""
    text = (cls.__doc__ or "").replace("``", "`")
    text = re.sub(r"docs/([\w-]+\.md)", r"[\1](../\1)", inspect.cleandoc(text))
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"
