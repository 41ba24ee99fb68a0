"""``burler lake ...``: the group; each command has a module of its own."""

from __future__ import annotations

import click

from burler.cli import lake_care
from burler.cli.helping import Group
from burler.cli.lake_docs import docs
from burler.cli.lake_read import read
from burler.cli.lake_write import write


@click.group(cls=Group)
def lake() -> None:
    """A raw lake of Singer messages: fill it, read it, look after it.

    \b
    tap-any --config c.json | burler lake write ./lake --tap-id tap-any
    burler lake ls ./lake
    burler lake read ./lake | target-anything
    """


lake.add_command(docs)
lake.add_command(read)
lake.add_command(write)
for command in lake_care.COMMANDS:
    lake.add_command(command)
