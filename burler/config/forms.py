"""Every form of ``config_spec``, behind one face: what a config must hold, its defaults, its secrets."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from burler.config import schemas
from burler.config.fill import fill, plain_copy
from burler.config.problems import Problems, dotted
from burler.config.secrets import Path, secret_values
from burler.config.sentences import kind_of
from burler.schema_tree import TYPES, type_of
from burler.suggest import nearest

logger = logging.getLogger(__name__)

ConfigSpec = Any
"""None | list of keys | example dict | path of a JSON file | JSON Schema | class with fields | callable | object
with ``validate``."""


class ConfigForm:
    """A ``config_spec``, read. This one, of None, takes any config; the others say more."""

    def __init__(self, *, place: str) -> None:
        self.place = place
        self._schema: dict[str, Any] | None = None

    def check(self, config: Mapping[str, Any], *, tap_name: str, variables: bool = True) -> dict[str, Any]:
        """The config as the tap's functions get it: a new one, with defaults. The one given is not changed.

        A key that looks like a misspelling of a known one is a warning in the log, or a line of the error if there
        is one. ``variables``: whether the tap's environment variables are read; then errors advise them as well.

        Raises:
            ConfigError: every problem at once, never a secret's value.
            DeclarationError: the form itself is broken (its file is missing, its schema is none).
        """
        problems = Problems(secrets=tuple(secret_values(config, marked=self.secret_paths)))
        checked = self._examine(plain_copy(config), problems)
        hints = misspelt(config, self.json_schema())
        if problems:
            for sentence in hints:
                # The check itself may have said it, in nearly the same words.
                if not any(sentence.replace("config key", "config") == said for said in problems.said):
                    problems.add(sentence)
        problems.raise_if_any(tap_name, variables=variables)
        for sentence in hints:
            logger.warning("%s: %s", tap_name, sentence)
        return checked

    def json_schema(self) -> dict[str, Any]:
        """One JSON Schema of the config, as far as the form says something: for ``--about``, docs and types of
        environment variables. Settings of a run are not in it."""
        if self._schema is None:
            self._schema = self._make_schema()
        return self._schema

    @property
    def secret_paths(self) -> frozenset[Path]:
        """The keys that are marked as secret; ``*`` in a path is any place in a list, any key of an open object."""
        return schemas.secret_paths(self.json_schema())

    @property
    def tuning_paths(self) -> frozenset[Path]:
        """The keys that are marked as tuning, spelled as ``secret_paths``."""
        return schemas.tuning_paths(self.json_schema())

    @property
    def keys(self) -> tuple[str, ...]:
        """The top-level keys that the form names."""
        schema = self.json_schema()
        return tuple(schemas.properties(schema, schema, branches=True))

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        """``config`` is a copy that may be changed."""
        return config

    def _make_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {}}


class KeysForm(ConfigForm):
    """A list of keys that must be there."""

    def __init__(self, names: Sequence[str], *, place: str) -> None:
        super().__init__(place=place)
        self._names = tuple(names)

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        for name in self._names:
            if config.get(name) is None:
                problems.lack((name,))
        return config

    def _make_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {} for name in self._names}, "required": [*self._names]}


class ExampleForm(ConfigForm):
    """An example: its keys must be there (one whose example is None may be left out), with values of its kinds."""

    def __init__(self, example: Mapping[str, Any], *, place: str) -> None:
        super().__init__(place=place)
        self._example = example

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        _compare(self._example, config, (), problems)
        return config

    def _make_schema(self) -> dict[str, Any]:
        return _schema_of(self._example)


class SchemaForm(ConfigForm):
    """A JSON Schema, with its defaults."""

    def __init__(self, schema: Mapping[str, Any], *, place: str) -> None:
        super().__init__(place=place)
        schemas.check_shape(schema, place=place)
        self._schema = plain_copy(schema)
        self._validator: Any = None

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        from burler.config.validate import compile_schema, validate

        schema = self.json_schema()
        if self._validator is None:
            self._validator = compile_schema(schema, place=self.place)
        filled = fill(schema, config)
        aside = settings_aside(filled, self.keys)
        validate(self._validator, filled, problems, place=self.place)
        return filled | aside


def settings_aside(config: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Take the settings that a form does not name itself out of a config; a form that allows no further keys
    must not refuse them."""
    from burler.settings import Settings

    return {key: config.pop(key) for key in Settings.__dataclass_fields__ if key in config and key not in names}


# ---- examples --------------------------------------------------------------------------------------


def _compare(example: Any, value: Any, path: Path, problems: Problems) -> None:
    if example is None:
        return
    if isinstance(example, Mapping) and isinstance(value, Mapping):
        for key, sample in example.items():
            if value.get(key) is not None:
                _compare(sample, value[key], (*path, key), problems)
            elif sample is not None:
                problems.lack((*path, key))
    elif not _same_kind(example, value):
        problems.add(f"config '{dotted(path)}' must be {kind_of(example)}, not {kind_of(value)}")
    elif isinstance(example, list | tuple) and _alike(example):
        for i, item in enumerate(value):
            if item is None:
                problems.add(f"config '{dotted((*path, i))}' must be {kind_of(example[0])}, not null")
            else:
                _compare(example[0], item, (*path, str(i)), problems)


def _alike(example: Sequence[Any]) -> bool:
    """Whether an example list says what its items are: all of one kind."""
    return bool(example) and None not in example and len({type_of(item) for item in example}) == 1


def _same_kind(sample: Any, value: Any) -> bool:
    kind, found = type_of(sample), type_of(value)
    return kind == found or (kind == "number" and found == "integer")


def _schema_of(example: Any) -> dict[str, Any]:
    """The JSON Schema that says what an example says."""
    if example is None:
        return {}
    kind = type_of(example)
    if kind == "object":
        needed = [key for key, sample in example.items() if sample is not None]
        made = {"type": kind, "properties": {key: _schema_of(sample) for key, sample in example.items()}}
        return made | ({"required": needed} if needed else {})
    if kind == "array":
        return {"type": kind} | ({"items": _schema_of(example[0])} if _alike(example) else {})
    return {"type": kind} if kind in TYPES else {}


# ---- misspellings ----------------------------------------------------------------------------------


def misspelt(config: Mapping[str, Any], schema: schemas.Schema) -> list[str]:
    """A sentence for each unknown key that is nearly a known one which is not given."""
    from burler.settings import Settings

    return list(_misspelt(config, schema, schema, (), tuple(Settings.__dataclass_fields__)))


def _misspelt(
    config: Mapping[str, Any], root: schemas.Schema, part: Any, path: Path, more: tuple[str, ...]
) -> list[str]:
    named = schemas.properties(root, part, branches=True)
    if not named:
        return []
    known = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in (*more, *named)}
    said = []
    for key, value in config.items():
        if key in named:
            if isinstance(value, Mapping):
                said += _misspelt(value, root, named[key], (*path, key), ())
            continue
        plain = re.sub(r"[^a-z0-9]", "", str(key).lower())
        near = None if key in more else nearest(plain, known, cutoff=0.85)
        if near is not None and known[near] not in config:
            right = dotted((*path, known[near]))
            said.append(f"config key '{dotted((*path, key))}' is not known. Did you mean '{right}'?")
    return said
