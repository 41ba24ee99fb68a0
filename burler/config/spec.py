"""``config_spec`` in any form, read by ``parse_spec``; and as plain functions, each of which reads it anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from burler.config import schemas
from burler.config.authors import author_form
from burler.config.forms import ConfigForm, ConfigSpec, ExampleForm, KeysForm, SchemaForm
from burler.config.loading import load, read_config_file
from burler.config.problems import Problems
from burler.errors import ConfigError, DeclarationError


class FileForm(ConfigForm):
    """The path of a JSON file that holds an example or a JSON Schema. It is read when it is needed."""

    def __init__(self, path: Path, *, place: str) -> None:
        super().__init__(place=place)
        self.path = path
        self._form: ConfigForm | None = None

    def _read(self) -> ConfigForm:
        if self._form is None:
            try:
                content = read_config_file(self.path)
            except ConfigError as error:
                said = str(error).removeprefix("config file ").replace("Give the right path with --config.", "").strip()
                raise DeclarationError(
                    f"{self.place}: the file that config_spec names, {said} "
                    "It holds a sample config or a JSON Schema; a relative path counts from the tap's module."
                ) from None
            kind = SchemaForm if schemas.is_json_schema(content) else ExampleForm
            self._form = kind(content, place=f"{self.place}, {self.path.name}")
        return self._form

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        return self._read()._examine(config, problems)

    def _make_schema(self) -> dict[str, Any]:
        return self._read().json_schema()


def parse_spec(spec: ConfigSpec, *, place: str, folder: Path | None) -> ConfigForm:
    """A ``config_spec`` in any form.

    Args:
        place: ``file:line`` of the declaration; it stands in every error of it.
        folder: where a relative path counts from; None: the current folder.

    Raises:
        DeclarationError: it is of no known form, or a broken JSON Schema.
    """
    if spec is None:
        return ConfigForm(place=place)
    if isinstance(spec, str | os.PathLike):
        return _file_form(spec, place, folder)
    if isinstance(spec, Mapping):
        if schemas.is_json_schema(spec):
            return SchemaForm(spec, place=place)
        if all(isinstance(key, str) for key in spec):
            return ExampleForm(spec, place=place)
    elif isinstance(spec, Sequence) and not isinstance(spec, bytes | bytearray):
        if all(isinstance(key, str) for key in spec):
            return KeysForm(spec, place=place)
    else:
        form = author_form(spec, place=place)
        if form is not None:
            return form
    raise DeclarationError(
        f"{place}: config_spec is {type(spec).__name__}; give a list of keys, an example dict, a path ending in "
        ".json, a JSON Schema, a model class, a function that raises, or an object with validate()."
    )


def _file_form(spec: str | os.PathLike[str], place: str, folder: Path | None) -> ConfigForm:
    text = os.fspath(spec)
    if not isinstance(text, str) or not (text.endswith(".json") or not isinstance(spec, str)):
        raise DeclarationError(
            f"{place}: config_spec is text; give a list of keys, or a path ending in .json. One key: [{text!r}]."
        )
    return FileForm((folder or Path()) / text, place=place)


def check_spec(spec: ConfigSpec, *, place: str) -> None:
    """Refuse a ``config_spec`` of a kind we do not know, when it is declared.

    Raises:
        DeclarationError: none of the known forms.
    """
    parse_spec(spec, place=place, folder=None)


def known_keys(spec: ConfigSpec) -> tuple[str, ...]:
    """The top-level keys that a spec names; empty where it names none."""
    return parse_spec(spec, place="config_spec", folder=None).keys


def check_config(
    spec: ConfigSpec, config: Mapping[str, Any], *, tap_name: str, variables: bool = False
) -> dict[str, Any]:
    """Check a config against a spec; gives a new config, with the spec's defaults.

    ``variables``: whether the config was made with the tap's environment variables (:func:`load_config` reads
    them); then errors advise them beside the file.

    Raises:
        ConfigError: lists every key that is missing or of the wrong type, and how to give it; secrets in
            what the author's own check says are masked.
    """
    return parse_spec(spec, place=tap_name, folder=None).check(config, tap_name=tap_name, variables=variables)


def load_config(
    files: Iterable[str | Path] = (),
    *,
    environment: Mapping[str, str],
    tap_name: str,
    spec: Any = None,
) -> dict[str, Any]:
    """As :func:`load`, from a ``config_spec`` in any form; gives the config alone.

    Raises:
        ConfigError: an unreadable file, or variables whose text is not what the spec asks for.
    """
    form = parse_spec(spec, place=tap_name, folder=None)
    loaded = load(files, environment=environment, tap_name=tap_name, form=form)
    if loaded.problems:
        raise ConfigError("\n  ".join(loaded.problems))
    return loaded.config
