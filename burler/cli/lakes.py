"""``burler lake ...``: the group; each command has a module of its own."""

from __future__ import annotations

import click

from burler.cli.lake_write import write


@click.group()
def lake() -> None:
    """A raw lake of Singer messages."""


lake.add_command(write)
