"""The settings that are options of the command line, too, all made from the one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, replace
from typing import Any

import click

from burler.cli.helping import option
from burler.errors import ConfigError
from burler.settings import Settings, default_text, option_of, read_value

SETTINGS: tuple[Field[Any], ...] = tuple(item for item in fields(Settings) if item.metadata["flag"] is not None)
"""Those settings, in the table's order."""

_COUNT_IN_A_TAIL_RUN = ("tail_max_rounds", "tail_max_seconds")  # who gives them expects the run to be one


TAIL = "Tail (each is a setting, too: in the config with _ for -; an option here comes before it)"


def option_of_setting(item: Field[Any]) -> Any:
    """The decorator that gives a command the option of a setting."""
    about = item.metadata["about"].removeprefix("Tail: ").replace("`", "")
    name = option_of(item.name)
    group = item.metadata["group"]
    return option(
        f"{name}/--no-{name[2:]}" if str(item.type).startswith("bool") else name,
        section=TAIL if group == "Tail" else group,
        default=None,
        metavar=item.metadata["flag"] or None,
        callback=_check,
        help=f"{about[0].upper()}{about[1:]}  [default: {default_text(item)}]",
    )


def _check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """The text of a value as it is: ``with_flags`` reads it, since None stands for "not given" here.

    Raises:
        click.BadParameter: the setting can't have it.
    """
    if value is not None:
        try:
            read_value(str(param.name), value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r:.60} must be {error}.", ctx, param) from None
    return value


def with_flags(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with what options of the command line say on top: they win over environment and config.

    Args:
        given: the settings' names, with values or text.

    Raises:
        ConfigError: every value that is of the wrong kind, too small or too big.
    """
    read: dict[str, Any] = {}
    problems = []
    for name, value in given.items():
        try:
            read[name] = read_value(name, value)
        except ValueError as error:
            problems.append(f"{option_of(name)} must be {error}")
    if problems:
        raise ConfigError("\n  ".join(problems))
    return replace(settings, **read)


def remarks(settings: Settings, given: Mapping[str, Any]) -> list[str]:
    """What of these settings has no effect: a sentence each. A config may serve runs with and without tail, so
    only what somebody gave for this run, or would wait for in vain, is told.

    Args:
        given: what options of the command line said.
    """
    told = []
    if not settings.tail:
        idle = [
            name
            for name, item in Settings.__dataclass_fields__.items()
            if item.metadata["about"].startswith("Tail: ")
            and (name in given or (name in _COUNT_IN_A_TAIL_RUN and getattr(settings, name) is not None))
        ]
        if idle:
            named = ", ".join(option_of(name) if name in given else f"setting '{name}'" for name in idle)
            told.append(f"{named}: without effect in a run without tail. Add --tail, or leave it out.")
    elif not settings.tail_retry and settings.tail_max_retries != Settings().tail_max_retries:
        told.append(
            "tail_max_retries: without effect, since tail_retry is false: the first failure of a stream counts."
        )
    return told
