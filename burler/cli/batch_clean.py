"""``burler batch clean``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from burler.cli.helping import Command, argument, option
from burler.words import counted

if TYPE_CHECKING:
    AgeType = click.ParamType[float]
else:
    AgeType = click.ParamType  # older ones have no type argument

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw]?)", re.ASCII)
_FORM = "Write it as 7d, 12h, 30m or 90s."


class Age(AgeType):
    """An age, as ``7d``, ``12h``, ``30m``, ``90s``; gives seconds. Only ``0`` needs no unit: who writes ``7`` may
    mean days, and what is removed does not come back."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See the class."""
        found = _AGE.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail(f"{value!r} is no age. {_FORM}", param, ctx)
        number = float(found[1])
        if number and not found[2]:
            self.fail(f"{value!r} has no unit: days or seconds? {_FORM}", param, ctx)
        return number * _UNITS.get(found[2], 0)


@click.command("clean", cls=Command)
@argument("root", metavar="ROOT")
@option("--older-than", type=Age(), required=True, metavar="AGE", help="Since the last change: 7d, 12h, 30m, 90s.")
@option("--prefix", default="", metavar="TEXT", help="Only files whose path below ROOT begins so (storage.prefix).")
@option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@option("--storage-options", metavar="JSON|FILE", help="For the library that reaches ROOT; secrets belong in a FILE.")
def clean(root: str, older_than: float, prefix: str, dry_run: bool, storage_options: str | None) -> int:
    """Remove batch files below ROOT (a folder, or a URL such as s3://bucket/batches) that are older than AGE.

    Only files that burler named, also in folders below ROOT, and what killed runs have left of them. Runs do not remove
    their own files: targets may read them later, or again. Take an AGE above the time that the slowest target needs.

    \b
    burler batch clean ./batches --older-than 7d
    """
    from burler.batch.storage import prune
    from burler.cli.options_batch import read_options

    removed = prune(
        root,
        older_than_seconds=older_than,
        prefix=prefix,
        dry_run=dry_run,
        options=read_options("--storage-options", storage_options),
    )
    for file in removed:
        click.echo(f"{file.url}  {file.size_bytes:,} bytes")
    what = "would be removed" if dry_run else "removed"
    click.echo(f"{counted(len(removed), 'file')} {what}, {sum(file.size_bytes for file in removed):,} bytes.")
    return 0
