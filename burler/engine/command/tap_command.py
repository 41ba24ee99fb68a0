"""A tap's command: its words and environment, where its config stands in them, and what of all that nobody may read."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from burler.config.loading import FROM_ENVIRONMENT, read_config_file
from burler.config.secrets import looks_secret, mask, raw_secrets, scrub, spellings
from burler.errors import UsageError
from burler.logs import without_time
from burler.suggest import did_you_mean

PREFIX = "burler-tap-"
"""Names of folders for temporary files begin with it."""
_OPERATORS = "|&;<>()"
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_CONFIG = ("--config", "-c")
_LINE_CHARACTERS, _ALL_CHARACTERS = 300, 1200
_LOOKED_AT_CHARACTERS = 10_000
_OURS = re.compile(r"[^\s'\"=]{0,200}" + PREFIX + r"\w+/")  # the folder of our files has another name each time
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\r")


@dataclass(frozen=True, slots=True)
class TapCommand:
    """A tap's command. It can be sent to other machines.

    Attributes:
        words: the program and its own options, such as ``--config config.json``.
        discover_words: the command that discovers; None: ``words`` and ``--discover``.
        environment: what is added to that of the process that runs it.
        secrets: what is masked wherever it shows, and looked for in what the tap says; the config's secrets.
        secret_keys: the key that a secret stands under, where it is known.
        folder: for temporary files; None: the system's own place for them.
    """

    words: tuple[str, ...] = field(repr=False)
    discover_words: tuple[str, ...] | None = field(default=None, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    secret_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Path | None = None

    @classmethod
    def of_command(
        cls,
        text: str,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        option: str = "--exec",
        strict: bool = True,
    ) -> Self:
        """The command that a text names, as ``tap-foo --config config.json``; ``NAME=value`` may stand before it.

        It is split as a shell would split it, and no shell ever sees it. The program is looked for on PATH, then
        beside this Python.

        Args:
            option: where the text comes from, for errors.
            strict: a config file that it names must be here, and JSON; else its secrets are hidden where it is.

        Raises:
            UsageError: empty, a shell's operators in it, no such program. ConfigError: a config that can't be read.
        """
        words = _split(text, option)
        added = dict(environment or {})
        while words and _ASSIGNED.match(words[0]):
            name, _, added[name] = words.pop(0).partition("=")
        if not words:
            raise UsageError(f'{option} is empty. Give a tap\'s command, such as "tap-gitlab --config config.json".')
        program = program_of(words[0], option)
        words[0] = program if os.sep in words[0] else words[0]  # a bare name may lie elsewhere on other machines
        configs: list[Mapping[str, Any]] = [added, _of_flags(words)]
        for _, _, file in config_places(words):
            with contextlib.nullcontext() if strict else contextlib.suppress(UsageError):
                configs += [read_config_file(file)] if file != FROM_ENVIRONMENT else []
        # A value that stands under an open key, too, is none: a user's name that is its password as well.
        shown = set(_texts(mask(configs)))
        secrets = {text: key for text, key in _secrets_of(configs).items() if text not in shown}
        return cls(tuple(words), environment=added, secrets=tuple(secrets), secret_keys=secrets, folder=folder)

    @property
    def name(self) -> str:
        """What is run, for errors: the program, of Python's the script or module. Other arguments may hold what nobody
        should read."""
        more = self.words[1:]
        if not (self.program.startswith("python") and more):
            return self.program
        script = more[1] if more[0] == "-m" and len(more) > 1 else more[0]
        return "python" if script.startswith("-") else Path(script).name

    @property
    def program(self) -> str:
        """The program's own name."""
        return Path(self.words[0]).name

    @property
    def discovering(self) -> tuple[str, ...]:
        """The words of the command that discovers."""
        return self.discover_words or (*self.words, "--discover")

    @property
    def shown(self) -> str:
        """The command for people, secrets masked."""
        return self.clean(" ".join((self.program, *self.words[1:])))

    def hiding(self, config: Mapping[str, Any] | None) -> Self:
        """The same; the secrets of a config that it is given in a file are masked, too."""
        keys = {**self.secret_keys, **_secrets_of([config or {}])}
        return replace(self, secrets=tuple(dict.fromkeys((*self.secrets, *keys))), secret_keys=keys)

    def clean(self, text: str) -> str:
        """A text of the tap's that may be shown: without secrets, control characters spelled out."""
        spelled = {spelling for secret in self.secrets for spelling in spellings(secret)}
        text = scrub(text, tuple(spelled)) if spelled else text
        return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)

    def end_of(self, stderr: bytes, *, lines: int = 1) -> str:
        """The last lines of what the tap has said there, in one that may be shown; "nothing" if there was none."""
        text = _COLOURS.sub("", stderr.decode("utf-8", "replace"))
        last = [line.strip()[:_LOOKED_AT_CHARACTERS] for line in text.splitlines() if line.strip()][-lines:]
        said = [self.clean(_OURS.sub("", without_time(line))) for line in last]
        cut = [line if len(line) <= _LINE_CHARACTERS else line[:_LINE_CHARACTERS] + "..." for line in said]
        return " | ".join(cut)[-_ALL_CHARACTERS:].strip() or "nothing"


def _split(text: str, option: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise UsageError(f"{option} can't be split into words: {error}. Close its quotes.") from None
    for word in words:
        if word and set(word) <= set(_OPERATORS):
            raise UsageError(
                f"{option}: '{word}' is for a shell, and no shell runs the command. Give the tap alone, or put the "
                "line into a script; a sign that is part of a value needs quotes round it."
            )
    return words


def program_of(word: str, option: str) -> str:
    """The whole path of a program, on this machine.

    Raises:
        UsageError: it is not here.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    found = shutil.which(word, path=path)
    if found is not None:
        return str(Path(found).absolute())
    if Path(word).is_file():
        raise UsageError(
            f"{option}: {word} is a file that can't be executed. Run it by its interpreter: 'python {word} ...'"
        )
    hint = (
        did_you_mean(word, sorted(set(_programs(path)))) or " Install the tap there, or give the program's whole path."
    )
    raise UsageError(f"{option}: there is no program '{word}' on PATH of {os.uname().nodename}.{hint}")


def _programs(path: str) -> Iterator[str]:
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


def _secrets_of(configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What nobody may read of configs: value -> the key it stands under."""
    found: dict[str, str] = {}
    for config in configs:
        for key, value in config.items():
            for text in raw_secrets({key: value}):
                found.setdefault(text, key)
    return found


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
