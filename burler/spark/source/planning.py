"""From options to columns and tasks, on the driver: the tap is found, discovered, and its parts are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from burler.appref import AppRef
from burler.config.loading import Loaded, merged, read_config_file
from burler.declare.app import App
from burler.engine.remote import Planning
from burler.engine.session import open_session
from burler.errors import ConfigError
from burler.spark.source.app import AppWork
from burler.spark.source.declared import Declared
from burler.spark.source.foreign import ForeignTap, look, select
from burler.spark.source.options import Options
from burler.spark.source.pushdown import Narrowed
from burler.spark.source.sending import from_text
from burler.spark.source.sending import load as load_app
from burler.spark.source.tasks import ExecWork, Task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Found:
    """A stream that was found by discovery; can be pickled, so that it is discovered once.

    Attributes:
        catalog: the tap's, that one stream selected. config: with what the environment says.
        foreign: the tap, if it is no app. is_root: the stream is an app's, and comes with no other one.
    """

    options: Options
    declared: Declared
    catalog: Mapping[str, Any] = field(repr=False)
    config: Mapping[str, Any] | None = field(repr=False)
    foreign: ForeignTap | None = None
    ref: AppRef | None = None
    is_root: bool = False
    narrowed: Narrowed = field(default_factory=Narrowed)

    def with_columns(self, schema: StructType) -> Found:
        """The same for a DataFrame with these columns.

        Raises:
            CatalogError: the stream has no such column.
        """
        return replace(self, declared=self.declared.as_asked(schema))

    def narrowed_by(self, narrowed: Narrowed) -> Found:
        """The same for a DataFrame with filters.

        A start is told as ``start_date``, to an app whose state says nothing. Not where the stream comes with another
        one, as a substream: older parents may have newer children. Of a foreign tap nobody knows whether it does.
        """
        may_start = self.is_root and not self.options.state
        later = narrowed.later((self.config or {}).get("start_date")) if may_start else None
        config = self.config if later is None else {**(self.config or {}), "start_date": later}
        return replace(self, config=config, narrowed=narrowed)

    def tasks(self, state: Mapping[str, Any] | None = None) -> list[Task]:
        """What there is to extract, in tasks that may run side by side.

        Args:
            state: in place of the one that the options give.

        Raises:
            UsageError: config, state or catalog do not fit the tap. StreamError: its partitions could not be listed.
        """
        options = self.options if state is None else replace(self.options, state=state)
        if self.foreign is not None:
            work = ExecWork(self.foreign, self.catalog, options.state, drop_unknown=options.drop_unknown)
            return [Task(self.declared, (work,), options.limit)]
        parts = self._parts(options)
        if options.limit is not None or not options.partitions:  # one behind the other: a limit is of all of them
            return [Task(self.declared, parts, options.limit)]
        return [Task(self.declared, (part,)) for part in parts]

    def _parts(self, options: Options) -> tuple[AppWork, ...]:
        assert self.ref is not None
        app = load_app(self.ref)
        session, settings = open_session(app, dict(self.config or {}))
        try:
            planning = Planning(session, settings, catalog=self.catalog, state=options.state)
            root = planning.streams[0]
            started = planning.state
            parts = [part for part in planning.parts(root) if self.narrowed.wants(part.partition.values)]
            return tuple(
                AppWork(self.ref, part, self.catalog, self.config, part.state_for(started) or None) for part in parts
            )
        finally:
            session.close()


def find_stream(options: Options) -> Found:
    """The stream that the options name, with its columns.

    Raises:
        UsageError: there is no such app, command, stream or field; the config is wrong.
    """
    return _of_command(options, options.exec) if options.exec is not None else _of_app(options)


def _of_command(options: Options, text: str) -> Found:
    config: dict[str, Any] | None = None
    if options.config is not None:
        config = options.config_text()
        for path in options.config_files():
            config = read_config_file(path)
    tap, wire = look(text, config, options.catalog, option="format 'burler': option 'exec'")
    catalog, declared = select(
        wire, options.stream, options.fields, chosen=options.catalog is not None, source=tap.source
    )
    _check(declared)
    return Found(options, declared, catalog, config, foreign=tap)


def _of_app(options: Options) -> Found:
    from burler.engine.catalog.discovery import discover_app

    assert options.app is not None
    ref = from_text(options.app)
    app = load_app(ref)
    loaded = _loaded(app, options)
    found = discover_app(app, loaded)
    catalog, declared = select(
        found.catalog.to_wire() if options.catalog is None else options.catalog,
        options.stream,
        options.fields,
        chosen=options.catalog is not None,
        source=app.name,
    )
    _check(declared)
    spec = found.specs.get(declared.stream)
    is_root = spec is not None and spec.parent is None and spec.emitted_by is None
    return Found(options, declared, catalog, loaded.config, ref=ref, is_root=is_root)


def _loaded(app: App, options: Options) -> Loaded:
    """The config of an app: a file or JSON, and over it the environment of this process, as on the command line.
    Nothing is written back into files: executors have none, and there may be many of them."""
    loaded = app.load_config(options.config_files())
    if loaded.problems:
        raise ConfigError("; ".join(f"{app.name}: {sentence}" for sentence in loaded.problems))
    return Loaded(merged(options.config_text(), loaded.config))


def _check(declared: Declared) -> None:
    """What has no columns shows here, and not in the middle of a plan."""
    _ = declared.columns
