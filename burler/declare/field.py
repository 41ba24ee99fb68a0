"""The node that a metadata function is called for, and handles that write its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.errors import DeclarationError
from burler.singer import metadata as md
from burler.singer.keys import check_key


class FieldMetadata:
    """One node of a schema: ``breadcrumb``, ``schema``, and what is written of it.

    ``field.inclusion.automatic()``, ``field.selected.by_default()``, ``field.set("sql-datatype", "int4")``.
    ``where``: the stream, for errors.
    """

    def __init__(self, breadcrumb: md.Breadcrumb, schema: Any, *, tap_name: str, where: str) -> None:
        self.breadcrumb = breadcrumb
        self.schema: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        self.written: dict[str, Any] = {}
        self._tap_name = tap_name
        self._place = f"{where}, field {breadcrumb}" if breadcrumb.path else where

    @property
    def name(self) -> str | None:
        """The field's own name; None for the stream itself."""
        return self.breadcrumb.name

    @property
    def level(self) -> int:
        """0 for the stream, 1 for its fields, 2 for theirs."""
        return self.breadcrumb.level

    def set(self, key: str, value: Any) -> None:
        """Write one key.

        Raises:
            DeclarationError: a key that no catalog may publish, or a value of the wrong kind.
        """
        wire, checked = check_key(key, value, tap_name=self._tap_name, level=self.level, place=self._place)
        self.written[wire] = checked

    @property
    def inclusion(self) -> Inclusion:
        """Whether the field is replicated always, on request, or never."""
        return Inclusion(self)

    @inclusion.setter
    def inclusion(self, value: str) -> None:
        self.set("inclusion", value)

    @property
    def selected(self) -> Selected:
        """Whether it is replicated if the user says nothing."""
        return Selected(self)

    @selected.setter
    def selected(self, value: bool) -> None:
        """``selected`` itself is the user's to write; the check says so, and what to write instead."""
        self.set("selected", value)


class Inclusion:
    """``automatic()``: always; ``available()``: if selected (the default); ``unsupported()``: never."""

    def __init__(self, field: FieldMetadata) -> None:
        self._field = field

    def automatic(self) -> None:
        """Always replicated."""
        self._field.set("inclusion", md.AUTOMATIC)

    def available(self) -> None:
        """Replicated if it is selected; what a field is if nothing is said."""
        self._field.set("inclusion", md.AVAILABLE)

    def unsupported(self) -> None:
        """Never replicated."""
        self._field.set("inclusion", md.UNSUPPORTED)


class Selected:
    """What holds where the user's catalog says neither yes nor no."""

    def __init__(self, field: FieldMetadata) -> None:
        self._field = field

    def by_default(self, wanted: bool = True) -> None:
        """Selected (or, with False, not) unless the user says otherwise."""
        self._field.set("selected-by-default", wanted)


def check_mapping(given: Any, *, where: str) -> None:
    """Refuse what is no mapping of field paths to metadata.

    Raises:
        DeclarationError: with the form that is expected.
    """
    if not isinstance(given, Mapping) or not all(
        isinstance(path, str) and isinstance(values, Mapping) for path, values in given.items()
    ):
        raise DeclarationError(
            f'{where}: metadata is a mapping such as {{"email": {{"selected-by-default": False}}}} ("" is the stream '
            "itself, 'address.street' a nested field), or a decorated function."
        )
