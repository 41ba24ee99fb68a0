"""Commands whose ``--help`` has its options under headings, suggests the right word for a wrong one, and whose options
know what a shell may complete.

``burler`` and a tap's own script are made of these; each command's examples are paragraphs of its docstring that begin
with a line ``\\b``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from burler.cli.completing import Completer, for_metavar
from burler.suggest import did_you_mean, nearest

OPTIONS, OTHER = "Options", "Other"
"""The headings of options that have no other."""
_HELP_NAMES = ["-h", "--help"]


class Option(click.Option):
    """An option of the command line.

    Args:
        section: the heading of ``--help`` under which it stands.
        only_with_equals: its value may be left out, and stands behind a ``=`` else: the next word is none.
        shell_complete: what a shell offers for its value; by default what its metavar says (FILE: files).
    """

    def __init__(
        self,
        *args: Any,
        section: str = OPTIONS,
        only_with_equals: bool = False,
        shell_complete: Completer | None = None,
        **kwargs: Any,
    ) -> None:
        complete = shell_complete or for_metavar(kwargs.get("metavar"))
        super().__init__(*args, shell_complete=complete, **kwargs)
        self.section, self.only_with_equals = section, only_with_equals

    def get_help_extra(self, ctx: click.Context) -> Any:
        """See click, which puts a default that is said in words into parentheses."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


option = functools.partial(click.option, cls=Option)
"""``click.option`` with ``section``."""


class Argument(click.Argument):
    """An argument; what a shell offers for it is what its metavar says, unless ``shell_complete`` does."""

    def __init__(self, *args: Any, shell_complete: Completer | None = None, **kwargs: Any) -> None:
        complete = shell_complete or for_metavar(kwargs.get("metavar"))
        super().__init__(*args, shell_complete=complete, **kwargs)


argument = functools.partial(click.argument, cls=Argument)
"""``click.argument`` that completes."""


if TYPE_CHECKING:
    Words = click.Choice[str]
else:
    Words = click.Choice  # older ones have no type argument


class Choice(Words):
    """One of some words: a wrong one is answered with the nearest that is right."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(value, map(str, self.choices))
            if not near or "Did you mean" in error.message:
                raise
            raise click.BadParameter(f"{error.message}{near}", ctx, param) from None


class Command(click.Command):
    """A command with its options under their headings; defaults are shown, and ``-h`` is ``--help``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        defaults = {"show_default": True, "help_option_names": _HELP_NAMES}
        kwargs["context_settings"] = {**defaults, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click, which takes the next word for an option's value even where that may be left out."""
        whole = {
            name: f"{name}={one.flag_value}"
            for one in self.get_params(ctx)
            if getattr(one, "only_with_equals", False) and isinstance(one, click.Option)
            for name in one.opts
        }
        return super().parse_args(ctx, [whole.get(word, word) for word in args])

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options that ``--help`` shows, by their headings, in the order in which they were declared. Those without
        one come first, unless there is only ``--help``."""
        plain: list[click.Option] = []
        found: dict[str, list[click.Option]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and not param.hidden:
                section = getattr(param, "section", OPTIONS)
                (plain if section == OPTIONS else found.setdefault(section, [])).append(param)
        if found and all(set(one.opts) <= set(ctx.help_option_names) for one in plain):
            return {**found, OTHER: plain}
        return {OPTIONS: plain, **found}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click."""
        for title, options in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl([row for one in options if (row := one.get_help_record(ctx)) is not None])


class Group(click.Group):
    """A group of commands: a word that is none of them is answered with the nearest that is, at any depth."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"help_option_names": _HELP_NAMES, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click, which cuts their first sentences."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(self.commands[name])) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click.

        Raises:
            click.UsageError: there is no such command; the nearest ones are named.
        """
        word = args[0]
        if word in self.commands or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        path = ctx.command_path
        near = list(_near(word, self))
        hint = f"Did you mean: {' or '.join(f'{path} {name}' for name in near)}?" if near else _known(self)
        raise click.UsageError(f"No such command '{word}'. {hint}", ctx)


def first_sentence(command: click.Command) -> str:
    """What a command's help opens with."""
    paragraph = " ".join((command.help or "").strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", paragraph)[0]


def _near(word: str, group: click.Group) -> Iterator[str]:
    """The commands below a group that are spelt nearly so: ``check`` is ``lake check``."""
    below = sorted((path for path, _ in _paths(group) if " " in path), reverse=True)
    last = {path.rpartition(" ")[2]: path for path in below}
    if near := nearest(word, group.commands):
        yield near
    if word in last:
        yield from (path for path in reversed(below) if path.rpartition(" ")[2] == word)
    elif near := nearest(word, last, cutoff=0.75):
        yield last[near]


def _paths(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if not command.hidden:
            yield before + name, command
            if isinstance(command, click.Group):
                yield from _paths(command, f"{before}{name} ")


def _known(group: click.Group) -> str:
    return f"There are: {', '.join(sorted(name for name, one in group.commands.items() if not one.hidden))}."
