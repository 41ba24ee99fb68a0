"""The options that say how batch files are to be, and the ``batch_config`` that they make."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from burler.batch_config import CODECS, DIALECTS, FORMATS, PACKINGS, BatchConfig, read_batch_config
from burler.cli import completing
from burler.cli.helping import Choice, option
from burler.cli.sizes import SizeType
from burler.errors import ConfigError

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed

Command = TypeVar("Command", bound=Callable[..., Any])

JSON = "JSON|FILE"
FORM, PLACE, SIZES, MESSAGES = "What the files are", "Where they go", "When one ends", "The messages"
"""Headings of options."""
_COMPRESSIONS = tuple(dict.fromkeys((*PACKINGS, *(name for names in CODECS.values() for name in names))))

_NEW_FILES = (
    option(
        "-c",
        "--config",
        "files",
        multiple=True,
        metavar="FILE",
        help="File that holds a batch_config; options go before it.",
    ),
    option(
        "--format",
        "form",
        section=FORM,
        type=Choice(FORMATS),
        show_default="jsonl",
        help="Format of the files.",
    ),
    option(
        "--compression",
        section=FORM,
        type=Choice(_COMPRESSIONS),
        show_default="none; parquet: zstd",
        help="none, gzip or zstd; inside of Parquet and Arrow what those know.",
    ),
    option("--format-options", section=FORM, metavar=JSON, help='Of csv: {"delimiter": ";"}.'),
    option("--level", section=FORM, type=int, metavar="N", help="How hard to compress."),
    option(
        "--storage",
        section=PLACE,
        metavar="URL",
        shell_complete=completing.folders,
        show_default="./batches",
        help="Folder or URL for the files.",
    ),
    option("--prefix", section=PLACE, metavar="TEXT", help="Begins the names of the files."),
    option(
        "--storage-options",
        section=PLACE,
        metavar=JSON,
        help="For the library that reaches --storage; secrets belong in a FILE.",
    ),
    option(
        "--batch-size",
        section=SIZES,
        type=click.IntRange(min=1),
        metavar="N",
        show_default="100000",
        help="Rows in a file at most.",
    ),
    option(
        "--batch-bytes",
        section=SIZES,
        type=SizeType(),
        metavar="SIZE",
        show_default="128MiB",
        help="Of a file, before compression.",
    ),
    option(
        "--batch-age-seconds",
        section=SIZES,
        type=float,
        metavar="SECONDS",
        show_default="60",
        help="Since a file's first row.",
    ),
    option(
        "--dialect",
        section=MESSAGES,
        type=Choice(DIALECTS),
        show_default="both",
        help="Keys of the messages.",
    ),
    option(
        "--activate-version/--no-activate-version",
        section=MESSAGES,
        default=None,
        show_default="in --dialect sip",
        help="Whether ACTIVATE_VERSION goes on.",
    ),
    option(
        "--presign-seconds",
        section=MESSAGES,
        type=click.IntRange(min=1),
        metavar="SECONDS",
        help="Sign URLs, for so long (--dialect sip).",
    ),
)


def allow_in(section: str) -> Callable[[Command], Command]:
    """Decorator: ``--allow``, which says what manifests may name; it reaches the command as ``allow``, read."""
    return option(
        "--allow",
        section=section,
        multiple=True,
        metavar="URL-PREFIX",
        callback=_read_allow,
        shell_complete=completing.folders,
        help="Read files of BATCH messages below this folder or URL alone (repeatable; or BURLER_ALLOW).",
    )


def _read_allow(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> Allowed:
    from burler.batch.allowed import Allowed

    return Allowed.of(value or None)


def new_files(command: Command) -> Command:
    """Decorator: how the new files are to be; all options together reach the command as ``config``."""

    @functools.wraps(command)
    def with_config(**given: Any) -> Any:
        names = {parameter.name for made in _NEW_FILES for parameter in _parameters(made)}
        said = {name: given.pop(name) for name in list(given) if name in names}
        return command(config=batch_config(**said), **given)

    decorated: Any = with_config
    for made in reversed(_NEW_FILES):
        decorated = made(decorated)
    return cast(Command, decorated)


def _parameters(made: Callable[[Any], Any]) -> list[click.Parameter]:
    def bare() -> None:
        """Holds an option."""

    return cast(list[click.Parameter], cast(Any, made(bare)).__click_params__)


def batch_config(
    files: tuple[str, ...],
    form: str | None,
    compression: str | None,
    format_options: str | None,
    level: int | None,
    storage: str | None,
    prefix: str | None,
    storage_options: str | None,
    **plain: Any,
) -> BatchConfig:
    """The ``batch_config`` of files, with what options say in its place.

    Raises:
        ConfigError: see ``read_batch_config``; or files that hold none.
    """
    given = _batch_config_of(files)
    encoding, place = dict(given.get("encoding") or {}), dict(given.get("storage") or {})
    if form is not None and form != encoding.get("format", "jsonl"):
        encoding = {}  # its compression and options are those of another format
    said = {
        "format": form,
        "compression": compression,
        "format_options": read_options("--format-options", format_options),
        "compression_options": None if level is None else {"level": level},
    }
    encoding.update({key: value for key, value in said.items() if value is not None})
    said = {"root": storage, "prefix": prefix, "options": read_options("--storage-options", storage_options)}
    if storage is not None and storage != place.get("root"):
        place.pop("options", None)  # those of another store
    place.update({key: value for key, value in said.items() if value is not None})
    given.update({key: value for key, value in plain.items() if value is not None})
    return read_batch_config({**given, "encoding": encoding or None, "storage": place})


def _batch_config_of(files: tuple[str, ...]) -> dict[str, Any]:
    from burler.config.loading import merged, read_config_file
    from burler.config.secrets import hide_config

    config: dict[str, Any] = {}
    for path in files:
        config = merged(config, read_config_file(path))
    hide_config(config)
    given = config.get("batch_config")
    if files and given is None:
        raise ConfigError(
            f"--config {files[-1]}: there is no batch_config in it. See docs/batch.md, or leave --config out"
        )
    if given is not None and not isinstance(given, dict):
        raise ConfigError("batch_config must be an object")
    return dict(given or {})


def read_options(option: str, said: str | None) -> dict[str, Any] | None:
    """A JSON object: as text, or in a file. Its secrets are kept out of the log.

    Raises:
        ConfigError: neither; the content is not quoted.
    """
    from burler.config.loading import parse_object
    from burler.storage.location import hide_options

    if said is None:
        return None
    if said.lstrip().startswith("{"):
        options = parse_object(said.encode("utf-8", "replace"), what=option)
    else:
        try:
            options = parse_object(Path(said).read_bytes(), what=f"{option} {said}")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise ConfigError(f"{option} {said} is no JSON object, and no file that can be read: {reason}.") from None
    hide_options(options)
    return options
