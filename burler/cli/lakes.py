"""``burler lake ...``: the group; each command has a module of its own."""

from __future__ import annotations

import click

from burler.cli import lake_care
from burler.cli.lake_docs import docs
from burler.cli.lake_read import read
from burler.cli.lake_write import write


@click.group()
def lake() -> None:
    """A raw lake of Singer messages."""


lake.add_command(docs)
lake.add_command(read)
lake.add_command(write)
for command in lake_care.COMMANDS:
    lake.add_command(command)
