"""Any tap's command as a process: run with a catalog, a state or none, listened to, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from burler.config.secrets import scrub, spellings
from burler.errors import UsageError
from burler.logs import without_time
from burler.verify.program_running import Disturbance, Ended, NotStarted, Running, follow
from burler.verify.program_words import config_places, is_sure, other_config, secrets_of_words, split

__all__ = ["Disturbance", "Ended", "Program", "flags_of"]

FLAGS = ("--config", "--discover", "--catalog", "--properties", "--state")
HELP_SECONDS = 60.0
"""A program that does not know ``--help`` may begin to work; it is ended then."""
_MOST_OUTPUT = 1 << 28  # bytes of a catalog
_MOST_HELP = 1 << 20
_LAST_CHARACTERS = 300
PREFIX = "burler-verify-"
"""Names of folders for temporary files begin with it."""
_LOOKED_AT_CHARACTERS = 10_000
_OURS = re.compile(r"[^\s'\"=]{0,200}" + PREFIX + r"\w+/")  # the folder of our files has another name each time
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\r")


def never() -> bool:
    """It goes on."""
    return False


@dataclass(frozen=True, slots=True)
class Program:
    """A tap's command.

    Attributes:
        words: the program and its own options, such as ``--config config.json``.
        discover_words: the command that discovers; None: ``words`` and ``--discover``.
        environment: what is added to this process's own.
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
        cls, text: str, *, environment: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> Program:
        """The command that a text names, as ``tap-foo --config config.json``; ``NAME=value`` may stand before it.

        Raises:
            UsageError: empty, a shell's operators in it, no such program, or a config that can't be read.
        """
        found = split(text)
        added = {**(environment or {}), **found.assigned}
        secrets = secrets_of_words(found.words, added)
        return cls(found.words, environment=added, secrets=tuple(secrets), secret_keys=dict(secrets), folder=folder)

    @property
    def shown(self) -> str:
        """The command for people, secrets masked."""
        name = Path(self.words[0]).name
        return self.clean(" ".join((name, *self.words[1:])))

    @property
    def has_config(self) -> bool:
        """Whether the command names a config."""
        return bool(config_places(self.words))

    def with_config(self, file: Path | None) -> Program:
        """The same with another config file, or without one."""
        named = None if file is None else str(file)
        return replace(self, words=other_config(self.words, named))

    def with_environment(self, more: Mapping[str, str]) -> Program:
        """The same with more in its environment."""
        return replace(self, environment={**self.environment, **more})

    def clean(self, text: str) -> str:
        """A text of the tap's that may be shown: without secrets, control characters spelled out."""
        spelled = {spelling for secret in self.secrets for spelling in spellings(secret)}
        text = scrub(text, tuple(spelled)) if spelled else text
        return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)

    def last_words(self, ended: Ended) -> str:
        """The last line that a run has said on stderr, for messages; "nothing" if there was none."""
        text = _COLOURS.sub("", ended.stderr.decode("utf-8", "replace"))
        line = next((line for line in reversed(text.splitlines()) if line.strip()), "nothing").strip()
        line = without_time(line[:_LOOKED_AT_CHARACTERS])  # a progress bar may be one line of megabytes
        last = self.clean(_OURS.sub("", line) if PREFIX in line else line).strip() or "nothing"
        return last if len(last) <= _LAST_CHARACTERS else last[:_LAST_CHARACTERS] + "..."

    def discover(self, deadline_seconds: float | None) -> tuple[Ended, bytes]:
        """Run discovery; how it ended, and what it has written."""
        words = self.discover_words or (*self.words, "--discover")
        return self._whole(words, deadline_seconds, _MOST_OUTPUT)

    def help(self, deadline_seconds: float | None = HELP_SECONDS) -> tuple[Ended, bytes]:
        """Run ``--help``; how it ended, and what it has written."""
        return self._whole((*self.words, "--help"), deadline_seconds, _MOST_HELP)

    def run(
        self,
        *,
        catalog: Any = None,
        properties: Any = None,
        state: Any = None,
        take: Callable[[bytes], object],
        stop: Callable[[], bool] = never,
        deadline_seconds: float | None = None,
        disturbance: Disturbance | None = None,
    ) -> Ended:
        """A sync.

        Args:
            catalog, properties, state: JSON values that are given by these flags, in files; None leaves a flag out.
            take: gets what the tap writes, in pieces as they come.
            stop: asked after each piece; once it says yes the tap is ended.
            deadline_seconds: so long it may take; None: for ever.
            disturbance: what is done to it on the way. The pipe is made small then, so that there is a middle.
        """
        with self._files(catalog=catalog, properties=properties, state=state) as given:
            return self._follow((*self.words, *given), take, stop, deadline_seconds, disturbance)

    def _whole(self, words: tuple[str, ...], deadline_seconds: float | None, most: int) -> tuple[Ended, bytes]:
        blocks: list[bytes] = []
        ended = self._follow(words, blocks.append, lambda: sum(map(len, blocks)) > most, deadline_seconds, None)
        return ended, b"".join(blocks)

    def _follow(
        self,
        words: tuple[str, ...],
        take: Callable[[bytes], object],
        stop: Callable[[], bool],
        deadline_seconds: float | None,
        disturbance: Disturbance | None,
    ) -> Ended:
        needles = {
            spelling.encode(errors="replace"): self.secret_keys.get(secret, "")
            for secret in self.secrets
            if is_sure(secret)
            for spelling in spellings(secret)
        }
        environment = {**os.environ, **self.environment}
        small = disturbance is not None
        try:
            with Running(words, environment=environment, needles=needles, small_pipe=small) as running:
                return follow(running, take=take, stop=stop, deadline_seconds=deadline_seconds, disturbance=disturbance)
        except NotStarted as error:
            raise UsageError(f"{self.shown}: can't be started: {error}.") from None

    @contextlib.contextmanager
    def _files(self, **values: Any) -> Iterator[tuple[str, ...]]:
        """The flags, and their files while the tap runs."""
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.folder))
        try:
            given: list[str] = []
            for name, value in values.items():
                if value is not None:
                    path = folder / f"{name}.json"
                    path.write_text(json.dumps(value), encoding="utf-8")
                    given += [f"--{name}", str(path)]
            yield tuple(given)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def flags_of(program: Program, *, deadline_seconds: float | None = HELP_SECONDS) -> frozenset[str]:
    """Which of Singer's flags a command knows, as its ``--help`` names them.

    Where that fails or names none, all but ``--properties`` are assumed: taps of today know them. One of
    ``--catalog`` and ``--properties`` is always among them.
    """
    ended, text = program.help(deadline_seconds)
    text += b"\n" + ended.stderr
    found = {flag for flag in FLAGS if re.search(rb"(?<![\w-])" + flag.encode() + rb"(?![\w-])", text)}
    if ended.timed_out or not found:
        found = set(FLAGS) - {"--properties"}
    if not found & {"--catalog", "--properties"}:
        found.add("--catalog")
    if program.discover_words is not None:
        found.add("--discover")
    return frozenset(found)
