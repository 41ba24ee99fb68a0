"""Where Iceberg tables are registered: any catalog that pyiceberg knows, by its own properties.

Without any, each OUT has a catalog of its own: a SQLite file ``catalog.db`` in it, with OUT as warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from burler.config.secrets import hide, masked, raw_secrets
from burler.errors import ExportError
from burler.extras import require
from burler.spark.formats.folders import unwritable

CATALOG, NAMESPACE = "catalog", "namespace"
OWN_CATALOG = "catalog.db"
_OWN = (CATALOG, NAMESPACE)
_DEFAULT_NAME = "burler"
_NEEDED_FOR = "burler export --format iceberg"


class Names:
    """Catalog properties and the table's name there, from the place ``out/<tap>/<stream>`` and the options."""

    def __init__(self, place: str, options: Mapping[str, str]) -> None:
        folder = Path(place)
        self.out = folder.parent.parent
        given = options.get(NAMESPACE)
        self.namespace = tuple(given.split(".")) if given else (folder.parent.name,)
        self.table = folder.name
        self.catalog = options.get(CATALOG, _DEFAULT_NAME)
        self.properties = {name: value for name, value in options.items() if name not in _OWN}
        self.is_own = not self.properties and CATALOG not in options
        self.location = str(folder)
        for secret in raw_secrets(dict(self.properties)):
            hide(secret)

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and table name."""
        return (*self.namespace, self.table)

    def __str__(self) -> str:
        return f"{self.catalog}.{'.'.join(self.identifier)}"


def open_catalog(names: Names) -> Any:
    """The catalog.

    Raises:
        MissingExtra: pyiceberg is not installed. ExportError: the catalog can't be opened.
    """
    catalogs = require("pyiceberg.catalog", extra="iceberg", needed_for=_NEEDED_FOR)
    properties = dict(names.properties)
    if names.is_own:
        if any(one in str(names.out) for one in "?#%"):
            raise ExportError(
                f"Iceberg tables can't be written to {names.out}: pyiceberg takes no '?', '#' or '%' there"
            )
        try:
            names.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(names.out, error) from None
        properties = {"type": "sql", "uri": f"sqlite:///{names.out / OWN_CATALOG}", "warehouse": f"file://{names.out}"}
    with told(f"the Iceberg catalog '{names.catalog}' can't be opened"):
        return catalogs.load_catalog(names.catalog, **properties)


def close(catalog: Any) -> None:
    """Give back the catalog's connections; it opens new ones when it is used again."""
    if catalog is not None and hasattr(catalog, "close"):
        catalog.close()


@contextmanager
def told(what: str) -> Iterator[None]:
    """Any error of pyiceberg, its database or its server as one ExportError, without secrets."""
    try:
        yield
    except ExportError:
        raise
    except Exception as error:
        said = masked(str(error)).strip().partition("\n")[0][:300]
        raise ExportError(
            f"{what}: {type(error).__name__}: {said}.\n"
            "Correct the catalog's properties (--option uri=..., type=...), or see that it can be reached"
        ) from None


def load(catalog: Any, names: Names) -> Any:
    """The table; None where there is none."""
    exceptions = require("pyiceberg.exceptions", extra="iceberg", needed_for=_NEEDED_FOR)
    with told(f"{names}: the table can't be read from its catalog"):
        try:
            return catalog.load_table(names.identifier)
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None


def local_folder(location: str, names: Names) -> Path:
    """A table's folder on this file system.

    Raises:
        ExportError: it lies elsewhere (an object store).
    """
    path = location.removeprefix("file://") if location.startswith("file://") else location.removeprefix("file:")
    if "://" in path or not path.startswith("/"):
        raise ExportError(
            f"{names}: the table's files lie in {location}; burler writes Iceberg tables to mounted file systems only. "
            "Choose a warehouse of the form file:///..."
        )
    return Path(path)
