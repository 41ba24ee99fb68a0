"""Forms of ``config_spec`` that bring a check of their own: functions, validators, classes with fields.

No package is imported here that the author has not imported: models and validators are known by their methods and
by the package that made them.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burler.config import schemas
from burler.config.fill import plain_copy
from burler.config.forms import ConfigForm, SchemaForm, settings_aside
from burler.config.problems import Problems, dotted
from burler.errors import DeclarationError


def author_form(spec: Any, *, place: str) -> ConfigForm | None:
    """The form of a model, a class with fields, a validator or a function; None if it is none of these."""
    if callable(getattr(spec, "model_validate", None)) and callable(getattr(spec, "model_json_schema", None)):
        return ModelForm(spec, place=place)
    if isinstance(spec, type) and hasattr(spec, "__pydantic_validator__"):
        import pydantic  # the class was made by it

        return ModelForm(pydantic.TypeAdapter(spec), place=place)
    if callable(getattr(spec, "validate_python", None)) and callable(getattr(spec, "json_schema", None)):
        return ModelForm(spec, place=place)
    if isinstance(spec, type) and (
        issubclass(spec, msgspec.Struct) or dataclasses.is_dataclass(spec) or typing.is_typeddict(spec)
    ):
        return ClassForm(spec, place=place)
    validate = getattr(spec, "validate", None)
    if callable(validate) and not (isinstance(spec, type) and _needs_instance(spec)):
        return CheckForm(spec, validate, place=place)
    return CheckForm(spec, spec, place=place) if callable(spec) else None


def _needs_instance(kind: type) -> bool:
    """A class whose ``validate`` is a plain method: an instance of it was meant, or the class is the check."""
    return not isinstance(vars(kind).get("validate"), staticmethod | classmethod)


def _made_by(package: str, thing: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(thing).__mro__)


class ClassForm(SchemaForm):
    """A ``msgspec.Struct``, dataclass or TypedDict: its JSON Schema first, then the class itself."""

    def __init__(self, kind: type, *, place: str) -> None:
        self._kind = kind
        try:
            schema = msgspec.json.schema(kind)
        except Exception as error:
            raise DeclarationError(
                f"{place}: config_spec: no JSON Schema can be made of {kind.__name__}: {error}"
            ) from None
        super().__init__(schema, place=place)

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        filled = super()._examine(config, problems)
        if problems:
            return filled
        aside = settings_aside(filled, self.keys)
        try:
            made = msgspec.to_builtins(msgspec.convert(filled, self._kind))
        except Exception as error:
            problems.refuse(error)
            return filled
        return {**filled, **made, **aside}


class ModelForm(ConfigForm):
    """A pydantic model: its defaults and conversions, as plain JSON values under the names that files use."""

    def __init__(self, model: Any, *, place: str) -> None:
        super().__init__(place=place)
        self._model = model

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        aside = settings_aside(config, self.keys)
        given = {key: value for key, value in config.items() if value is not None or self._takes_null(key)}
        is_class = hasattr(self._model, "model_validate")
        try:
            made = self._model.model_validate(given) if is_class else self._model.validate_python(given)
        except Exception as error:
            for one in _each(error):
                _say_error(one, problems)
            return config
        dump = made.model_dump(by_alias=True) if is_class else self._model.dump_python(made, by_alias=True)
        try:
            plain = {key: _plain(value) for key, value in dump.items()}
        except Exception as error:  # bytes that are no text, for one
            problems.refuse(error)
            return config
        return {**config, **plain, **aside}

    def _takes_null(self, key: str) -> bool:
        schema = self.json_schema()
        named = schemas.properties(schema, schema)
        return key not in named or schemas.allows_null(schema, named[key])

    def _make_schema(self) -> dict[str, Any]:
        make = getattr(self._model, "model_json_schema", None) or self._model.json_schema
        try:
            made: dict[str, Any] = make(by_alias=True)
        except Exception:  # a type that has no JSON Schema; the model still checks
            return super()._make_schema()
        return made


def _plain(value: Any) -> Any:
    """A value of a model as JSON. A secret is what it hides: the tap needs it."""
    if callable(reveal := getattr(value, "get_secret_value", None)):
        return _plain(reveal())
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)


class CheckForm(ConfigForm):
    """A function of the config, or an object with ``validate``.

    It raises, or returns False, if the config is wrong. A mapping that it returns becomes the config; after any
    other answer the config stays, with what the check has changed in it.
    """

    def __init__(self, spec: Any, check: Any, *, place: str) -> None:
        super().__init__(place=place)
        self._spec = spec
        self._check = check

    def _examine(self, config: dict[str, Any], problems: Problems) -> dict[str, Any]:
        aside = settings_aside(config, self.keys) if self.keys else {}
        try:
            answer = self._check(config)
        except (Exception, SystemExit) as error:
            errors = list(_each(error))
            if _made_by("schema", error):
                errors = _by_key(self._spec, config) or errors
            for one in errors:
                _say_error(one, problems)
            return config
        if answer is False:
            name = getattr(self._check, "__qualname__", type(self._spec).__name__)
            problems.add(f"config refused: {name}() returned False; let it raise an error that says what is wrong")
        checked = plain_copy(answer) if isinstance(answer, Mapping) else config
        return {**checked, **aside}

    def _make_schema(self) -> dict[str, Any]:
        made: Any = None
        if _made_by("schema", self._spec) and callable(getattr(self._spec, "json_schema", None)):
            try:
                made = self._spec.json_schema("config")
            except Exception:  # it holds something that has no JSON Schema; the check itself still runs
                made = None
        elif _made_by("voluptuous", self._spec):
            made = _voluptuous(getattr(self._spec, "schema", None))
        if not isinstance(made, dict) or not isinstance(made.get("properties"), dict):
            return super()._make_schema()
        return {key: value for key, value in made.items() if key not in ("$id", "$schema")}


def _voluptuous(node: Any) -> dict[str, Any]:
    """What a voluptuous schema says of keys, types, defaults: as far as plain types and dicts go."""
    simple = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
    if isinstance(node, type):
        return {"type": simple[node]} if node in simple else {}
    if isinstance(node, list):
        return {"type": "array"} | ({"items": _voluptuous(node[0])} if len(node) == 1 else {})
    if not isinstance(node, dict):
        return {}
    made: dict[str, Any] = {"type": "object", "properties": {}}
    needed = []
    for key, value in node.items():
        name = getattr(key, "schema", key)
        if not isinstance(name, str):
            continue
        part = _voluptuous(value)
        default = getattr(key, "default", None)
        if callable(default):
            part["default"] = default()
        if isinstance(getattr(key, "description", None), str):
            part["description"] = key.description
        if type(key).__name__ == "Required" and "default" not in part:
            needed.append(name)
        made["properties"][name] = part
    return made | ({"required": needed} if needed else {})


# ---- what checks raise -----------------------------------------------------------------------------


def _each(error: BaseException) -> Iterator[Any]:
    """The single problems of an exception that stands for several: exceptions, or dicts as pydantic gives them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _each(inner)
    elif _made_by("pydantic_core", error) and callable(getattr(error, "errors", None)):
        yield from error.errors(include_url=False, include_context=False, include_input=False)  # type: ignore[attr-defined]
    elif _made_by("voluptuous", error) and isinstance(getattr(error, "errors", None), list):
        for inner in error.errors:  # type: ignore[attr-defined]
            yield from _each(inner)
    else:
        yield error


def _by_key(spec: Any, config: Mapping[str, Any]) -> list[Any]:
    """The package schema stops at the first problem; asked for each key by itself it names them all."""
    node = getattr(spec, "schema", None)
    found: list[Any] = []
    for key, value in node.items() if isinstance(node, dict) else ():
        try:
            type(spec)({key: value}, ignore_extra_keys=True).validate(plain_copy(config))
        except Exception as error:
            found.append(error)
    return found


def _say_error(error: Any, problems: Problems) -> None:
    if isinstance(error, dict):  # of pydantic
        path = tuple(map(str, error["loc"]))
        if error["type"] == "missing":
            problems.lack(path)
        else:
            problems.add(f"config '{dotted(path)}': {error['msg']}" if path else f"config: {error['msg']}")
    elif _made_by("voluptuous", error) and isinstance(getattr(error, "path", None), list):
        path = tuple(map(str, error.path))
        if type(error).__name__ == "RequiredFieldInvalid":
            problems.lack(path)
        else:
            problems.add(f"config '{dotted(path)}': {error.msg}" if path else f"config: {error.msg}")
    elif _made_by("schema", error) and isinstance(getattr(error, "autos", None), list):
        _say_schema_error(error, problems)
    else:
        problems.refuse(error)


def _say_schema_error(error: Any, problems: Problems) -> None:
    """An error of the package schema. What it makes itself quotes values, so only its own words are taken."""
    path: list[str] = []
    facts: list[str] = []
    own = [text for text in error.errors if text]
    for text in filter(None, error.autos):
        if found := re.match(r"Key '(.+)' error:$", text):
            path.append(found[1])
        elif found := re.match(r"Missing keys?: (.+)$", text):
            for key in re.findall(r"'([^']+)'", found[1]):
                problems.lack((*path, key))
            return
        elif found := re.match(r"Wrong keys? ('.+?'(?:, '.+?')*) in ", text):
            facts.append(f"unknown key {found[1]}")
        elif found := re.search(r"(should (?:be instance of .+|evaluate to True))$", text, re.DOTALL):
            facts.append(found[1])
    fact = own[-1] if own else facts[-1] if facts else "does not fit"
    problems.add(f"config '{dotted(path)}' {fact}" if path else f"config: {fact}")
