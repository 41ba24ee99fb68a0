"""What an author gives as a schema: a mapping, or a source with ``load``, such as a file or a function of the tap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from burler.call import callers_folder
from burler.errors import BurlerError, DeclarationError


class Source(Protocol):
    """Something that has a schema: a file, a sample, an OpenAPI document, a typed class."""

    def load(self, *, where: str, config: Mapping[str, Any]) -> Any:
        """The schema, without references. ``where`` begins every error.

        Raises:
            DeclarationError: it can't be read, or is none.
        """


SchemaLike = Mapping[str, Any] | Source | type
"""A dict, a source such as ``burler.json_file(...)``, or a typed class (dataclass, TypedDict, pydantic model, ...)."""


def as_source(value: Any, *, where: str) -> Mapping[str, Any] | Source:
    """A schema in one of the forms above.

    Raises:
        DeclarationError: none of them.
    """
    if isinstance(value, type):
        from burler.schema.typed_source import is_typed, typed

        if is_typed(value):
            return typed(value)
    elif isinstance(value, Mapping):
        return value
    elif hasattr(value, "load"):
        source: Source = value
        return source
    cure = f"; write burler.json_file({value!r})" if isinstance(value, str) else ""
    raise DeclarationError(
        f"{where}: a schema is a dict, burler.json_file(...), a typed class or a function, "
        f"not {type(value).__name__}{cure}."
    )


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A schema in a JSON file.

    Attributes:
        pointer: the part of the file that is the schema: "#/definitions/contact".
        shared: folders where relative references are looked for if they are not found beside the file.
        http: fetch what http references point to.
    """

    path: Path
    pointer: str = "#"
    shared: tuple[Path, ...] = ()
    http: bool = False

    def load(self, *, where: str = "", config: Mapping[str, Any] | None = None) -> Any:
        """The schema, its references replaced (see ``resolve_refs``).

        Args:
            where: words that errors begin with: "stream 'contacts' (tap_crm.py:14)".
            config: not needed here; other sources ask for it.

        Raises:
            DeclarationError: a file is missing, unreadable, or no JSON; a reference leads nowhere or in a circle.
        """
        from burler.schema.documents import read_file
        from burler.schema.refs import resolve_refs

        prefix = f"{where}: schema file" if where else "schema file"
        for folder in self.shared:
            if not folder.is_dir():
                raise DeclarationError(f"{prefix} {self.path}: the shared folder {folder} is not there. Is it right?")
        return resolve_refs(
            read_file(self.path, where=prefix),
            source=where or f"schema file {self.path}",
            base=self.path,
            shared=self.shared,
            http=self.http,
            pointer=self.pointer,
        )


@dataclass(frozen=True, slots=True)
class Generated:
    """The schema comes from a function of the tap, decorated with ``@tap.schema(...)``."""


generated = Generated()


def json_file(path: str | Path, *, shared: Sequence[str | Path] = (), http: bool = False) -> JsonFile:
    """A schema file; relative paths count from the folder of the module that calls this.

    Args:
        path: "schemas/contact.json", or a part of a file: "schemas/all.json#/definitions/contact".
        shared: folders where a relative reference is looked for if it is not found beside the file that holds it.
        http: fetch what http(s) references point to. Without it such a reference is an error.

    Raises:
        DeclarationError: the path is an address, or no path.
    """
    if not isinstance(path, str | Path):
        raise DeclarationError(f"burler.json_file: a path is text or a Path, not {type(path).__name__}.")
    if str(path).startswith(("http://", "https://")):
        from burler.schema.documents import shown

        raise DeclarationError(
            f"burler.json_file('{shown(str(path))}') is an address. Save it as a file, "
            "or give a schema that refers to it, with http=True."
        )
    base = callers_folder()
    file, _, fragment = str(path).partition("#")
    if fragment and (base / path).exists():  # a file that has '#' in its name
        file, fragment = str(path), ""
    folders = [shared] if isinstance(shared, str | Path) else shared
    return JsonFile(base / file, f"#{fragment}", tuple(base / folder for folder in folders), http)


def of_config(value: Any, config: Mapping[str, Any], *, what: str, where: str) -> Any:
    """A value, or what a function of the config says it is.

    Raises:
        DeclarationError: the function fails.
    """
    if not callable(value):
        return value
    try:
        return value(config)
    except BurlerError:
        raise
    except Exception as error:
        fact = f"the config has no {error}" if isinstance(error, KeyError) else f"it raised {type(error).__name__}"
        raise DeclarationError(f"{where}: the function for {what} failed: {fact}.") from None
