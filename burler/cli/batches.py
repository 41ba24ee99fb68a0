"""``burler batch ...``: between any tap and any target, files in place of rows, or rows in place of files."""

from __future__ import annotations

import contextlib
import functools
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import click

from burler.batch_config import CODECS, DIALECTS, FORMATS, PACKINGS, BatchConfig, read_batch_config
from burler.cli import completing, process
from burler.cli.helping import Choice, Group, option
from burler.cli.sizes import SizeType
from burler.errors import ConfigError, UsageError
from burler.runtime.signals import Stopper

if TYPE_CHECKING:
    from burler.cli.progress import Counter
    from burler.sinks.stdout import LineWriter

Command = TypeVar("Command", bound=Callable[..., Any])

_COMPRESSIONS = tuple(dict.fromkeys((*PACKINGS, *(name for names in CODECS.values() for name in names))))
_JSON = "JSON|FILE"


FORM, PLACE, SIZES = "What the files are", "Where they go", "When one ends"
MESSAGES, SOURCE = "The messages", "What is read"


@click.group(cls=Group)
def batch() -> None:
    """BATCH messages: bulk files between a tap and a target.

    \b
    tap-anything --config c.json | burler batch pack --storage ./batches | target-that-takes-batches
    tap-with-batches --config c.json | burler batch expand | target-anything
    burler batch clean ./batches --older-than 7d
    """


def _new_files(command: Command) -> Command:
    """Decorator: how the new files are to be; all options together reach the command as ``config``."""
    options = (
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
        option("--format-options", section=FORM, metavar=_JSON, help='Of csv: {"delimiter": ";"}.'),
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
            metavar=_JSON,
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

    @functools.wraps(command)
    def with_config(**given: Any) -> Any:
        names = {parameter.name for made in options for parameter in _parameters(made)}
        said = {name: given.pop(name) for name in list(given) if name in names}
        return command(config=batch_config(**said), **given)

    decorated: Any = with_config
    for made in reversed(options):
        decorated = made(decorated)
    return cast(Command, decorated)


def _parameters(made: Callable[[Any], Any]) -> list[click.Parameter]:
    def bare() -> None:
        """Holds an option."""

    return cast(list[click.Parameter], cast(Any, made(bare)).__click_params__)


_TAP = option("--tap", section=MESSAGES, default="tap", metavar="NAME", help="Stands in the names of the files.")
_SOURCE_OPTIONS = option(
    "--source-options", section=SOURCE, metavar=_JSON, help="For the library that reaches the files that are read."
)


@batch.command()
@option(
    "--processes",
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Read files by N worker processes, in order.",
)
@option("--storage-options", metavar=_JSON, help="For the library that reaches the files; secrets belong in a FILE.")
def expand(processes: int, storage_options: str | None) -> int:
    """BATCH -> RECORD: the messages of any tap on stdin, rows in place of files. Everything else passes as it is.

    \b
    tap-anything --config c.json | burler batch expand | target-anything
    """
    from burler.batch import expanding

    options = read_options("--storage-options", storage_options)
    with piped("expand") as pipe:
        expanding.expand(
            pipe.fd,
            pipe.write,
            processes=processes,
            options=options,
            **pipe.hooks,
        )
    return 0


@batch.command()
@_new_files
@_TAP
def pack(config: BatchConfig, tap: str) -> int:
    """RECORD -> BATCH: the messages of any tap on stdin, files in place of rows. STATE waits for the files before it.

    \b
    tap-anything --config c.json | burler batch pack --compression gzip --storage ./batches | target-anything
    """
    from burler.batch import batching

    with piped("pack") as pipe:
        batching.pack(
            pipe.fd,
            pipe.write,
            config,
            tap=tap,
            **pipe.hooks,
        )
    return 0


@batch.command()
@_new_files
@_SOURCE_OPTIONS
@_TAP
def convert(config: BatchConfig, source_options: str | None, tap: str) -> int:
    """BATCH -> BATCH: the files of a tap's BATCH messages in another format, compression or storage.

    \b
    tap-anything --config c.json | burler batch convert --format parquet --storage s3://bucket/x | target-anything
    """
    from burler.batch import converting

    options = read_options("--source-options", source_options)
    with piped("convert") as pipe:
        converting.convert(
            pipe.fd,
            pipe.write,
            config,
            tap=tap,
            options=options,
            **pipe.hooks,
        )
    return 0


class Hooks(TypedDict):
    """What ``expand``, ``pack`` and ``convert`` call meanwhile."""

    flush: Callable[[], object]
    tick: Callable[[], object]
    should_stop: Callable[[], bool]


@dataclass(frozen=True)
class Pipe:
    """stdin and stdout of a command that stands between a tap and a target."""

    fd: int
    lines: LineWriter
    stopper: Stopper
    write: Counter

    @property
    def hooks(self) -> Hooks:
        """They end the command where SIGTERM or SIGINT came."""
        return {
            "flush": self.lines.flush,
            "tick": self.lines.check_reader,
            "should_stop": lambda: self.stopper.requested,
        }


@contextlib.contextmanager
def piped(command: str) -> Iterator[Pipe]:
    """stdin, stdout and signals. One SIGTERM or SIGINT ends the command as the end of input does."""
    if sys.stdin is None:
        raise UsageError(f"stdin is closed: pipe a tap's messages in, as in: tap-crm | burler batch {command} ...")
    from burler.cli.progress import Counter, progress, size

    fd = sys.stdin.fileno()
    on_terminal = process.stdout_on_terminal()
    with process.own_stdout() as lines:
        stopper = Stopper(lambda: lines.blocked_since)
        stopper.owns_process = True
        with stopper.installed():
            ready = select.poll()
            ready.register(fd, select.POLLIN)
            while not stopper.requested and not ready.poll(200):
                lines.check_reader()
            write = Counter(lines.write)
            with progress(lambda: f"{size(write.count)} of messages written", stdout_on_terminal=on_terminal):
                yield Pipe(fd, lines, stopper, write)


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
    from burler.config.watched import hide

    config: dict[str, Any] = {}
    for path in files:
        config = merged(config, read_config_file(path))
    hide(config)
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
    from burler.batch.storage import hide_options
    from burler.config.loading import parse_object

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
