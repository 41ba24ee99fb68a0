"""A command as text becomes words; where its config stands in them, and what of that config nobody may read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.config.loading import FROM_ENVIRONMENT, read_config_file
from burler.config.secrets import looks_secret, mask, raw_secrets
from burler.errors import UsageError
from burler.suggest import did_you_mean

_OPERATORS = "|&;<>()"
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_CONFIG = ("--config", "-c")
_SURE = 8
"""Shorter secrets are not looked for: a word of a sentence may be one by accident."""


@dataclass(frozen=True, slots=True)
class Words:
    """A command, split: ``assigned`` is what stood before the program, as ``NAME=value``."""

    words: tuple[str, ...]
    assigned: Mapping[str, str]


def split(text: str) -> Words:
    """A command's words, as a shell would split them; no shell ever sees them.

    The program is looked for on PATH, then beside this Python.

    Raises:
        UsageError: no words, quotes that do not close, what only a shell understands, or no such program.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise UsageError(f"--exec: the command can't be split into words: {error}. Close its quotes.") from None
    for word in words:
        if word and set(word) <= set(_OPERATORS):
            raise UsageError(
                f"--exec: '{word}' is for a shell, and no shell runs the command. Give the tap alone, or put the line "
                "into a script; a sign that is part of a value needs quotes round it."
            )
    assigned = {}
    while words and _ASSIGNED.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        assigned[name] = value
    if not words:
        raise UsageError("--exec: the command is empty. Give a tap's command: --exec 'tap-gitlab --config config.json'")
    return Words((_program(words[0]), *words[1:]), assigned)


def _program(word: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    found = shutil.which(word, path=path)
    if found is not None:
        return str(Path(found).absolute())
    if Path(word).is_file():
        raise UsageError(
            f"--exec: {word} is a file that can't be executed. Run it by its interpreter: --exec 'python {word} ...'"
        )
    hint = did_you_mean(word, sorted(set(_names(path)))) or " Install the tap, or give the program's whole path."
    raise UsageError(f"--exec: there is no program '{word}' on PATH.{hint}")


def _names(path: str) -> Iterator[str]:
    for folder in path.split(os.pathsep):
        try:
            yield from (path.name for path in Path(folder or ".").iterdir())
        except OSError:
            continue


def config_places(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Where a command names its config: (first word, word behind the last one, the file)."""
    found, i = [], 1
    while i < len(words):
        flag, equals, value = words[i].partition("=")
        more = words[i + 1] if i + 1 < len(words) else None
        if flag == "--config" and equals:
            found.append((i, i + 1, value))
        elif words[i] in _CONFIG and more is not None and (words[i] == "--config" or _is_config(more)):
            found.append((i, i + 2, more))
            i += 1
        i += 1
    return found


def _is_config(word: str) -> bool:
    """``-c`` is a flag of Python and shells, too: with a program behind it, not a file."""
    try:
        return word == FROM_ENVIRONMENT or Path(word).is_file()
    except (OSError, ValueError):
        return False


def other_config(words: Sequence[str], file: str | None) -> tuple[str, ...]:
    """A command with another config, or with none."""
    out: list[str] = []
    at = 0
    places = config_places(words)
    for first, behind, _ in places:
        out += words[at:first]
        if file is not None and first == places[0][0]:
            out += ["--config", file]
        at = behind
    return (*out, *words[at:])


def secrets_of_words(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """What nobody may read of a command, its environment and its config files: value -> the key it stands under.

    A value that stands under an open key, too, is none: a user's name that is its password as well.

    Raises:
        ConfigError: a config file that can't be read.
    """
    configs: list[Mapping[str, Any]] = [environment, _of_flags(words)]
    configs += [read_config_file(file) for _, _, file in config_places(words) if file != FROM_ENVIRONMENT]
    found: dict[str, str] = {}
    for config in configs:
        for key, value in config.items():
            for text in raw_secrets({key: value}):
                found.setdefault(text, key)
    told = set(_texts(mask(configs)))
    return {text: key for text, key in found.items() if text not in told}


def _of_flags(words: Sequence[str]) -> dict[str, str]:
    """``--api-key VALUE`` and ``--api-key=VALUE``."""
    given: dict[str, str] = {}
    for i, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if not flag.startswith("-") or not looks_secret(flag.lstrip("-")):
            continue
        if equals:
            given[flag] = value
        elif i + 1 < len(words) and not words[i + 1].startswith("-"):
            given[flag] = words[i + 1]
    return given


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)


def is_sure(secret: str) -> bool:
    """Whether a secret that is found in a text is one for certain."""
    return len(secret) >= _SURE
