"""Environment variables as config: their names, and their text as the type that the tap's config asks for."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burler.config import schemas
from burler.config.secrets import Path
from burler.schema_tree import TYPES

_TRUE = ("true", "1", "yes", "on", "y", "t")
_FALSE = ("false", "0", "no", "off", "n", "f")
logger = logging.getLogger(__name__)
_NOTHING = object()
_DEEPEST = 100
_WORDS = {
    "string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "a JSON object", "array": "a JSON list, or values with commas between them", "null": "nothing",
}  # fmt: skip


def environment_prefix(tap_name: str) -> str:
    """``tap-git`` -> ``TAP_GIT_``: environment variables of this tap's config start so."""
    return shouted(tap_name) + "_"


def variable_of(tap_name: str, path: Path) -> str:
    """The environment variable that sets a key: ``("db", "host")`` of tap-x -> ``TAP_X_DB__HOST``."""
    return environment_prefix(tap_name) + "__".join(map(shouted, path))


def shouted(text: str) -> str:
    """A name as it stands in a variable's name: ``api-key`` -> ``API_KEY``."""
    return re.sub(r"[^A-Z0-9]+", "_", text.upper())


def apply_environment(
    config: dict[str, Any], environment: Mapping[str, str], *, tap_name: str, schema: schemas.Schema
) -> tuple[dict[Path, str], list[str]]:
    """Set in ``config`` what the tap's variables say.

    Objects on the way are replaced by copies, never changed.

    Returns:
        The path that each variable set, with its name; and a sentence for each whose text is not what the schema
        asks for (its text stands in the config as it is).
    """
    prefix = environment_prefix(tap_name)
    closed = schema.get("additionalProperties") is False
    came: dict[Path, str] = {}
    problems: list[str] = []
    flat: dict[str, Path] = {}
    for variable in sorted(environment):
        if not variable.startswith(prefix) or len(variable) == len(prefix):
            continue
        path, part = _find(variable[len(prefix) :].lower().split("__"), schema)
        if part is _NOTHING and not _is_setting(path[0]):
            if meant := _spelt_flat(path, schema):
                flat[variable] = meant
                continue
            if closed or path[0].startswith("_") or not path[0]:
                continue  # Meltano's own; or of another tap whose name begins like ours: a closed schema refuses it
        try:
            value = read_text(environment[variable], schema, {} if part is _NOTHING else part)
        except ValueError as error:
            problems.append(f"environment variable {variable} must be {error}.")
            value = environment[variable]
        node = config
        for i, key in enumerate(path[:-1], 1):
            inner = node.get(key)
            if path[:i] in came and not isinstance(inner, dict):
                problems.append(
                    f"environment variables {came[path[:i]]} and {variable} contradict each other: the second sets a "
                    "key inside the first, which is no object. Take one of them away."
                )
            node[key] = inner = dict(inner) if isinstance(inner, dict) else {}
            node = inner
        node[path[-1]] = value
        came[path] = variable
    for variable, path in flat.items():
        if not _has(config, path):
            logger.warning(
                "environment variable %s is not read: %s sets %s", variable, variable_of(tap_name, path), ".".join(path)
            )
    return came, problems


def _has(config: Mapping[str, Any], path: Path) -> bool:
    node: Any = config
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return True


def _find(names: list[str], schema: schemas.Schema) -> tuple[Path, Any]:
    """The path that a variable means, spelled as the schema spells it, and the schema there."""
    path: list[str] = []
    part: Any = schema
    for name in names:
        known = {} if part is _NOTHING else schemas.properties(schema, part, branches=True)
        key = name if name in known else next((k for k in known if shouted(k) == name.upper()), name)
        path.append(key)
        part = known.get(key, _NOTHING)
    return tuple(path), part


def _spelt_flat(path: Path, schema: schemas.Schema) -> Path | None:
    """The key inside an object that is meant, where a variable spells it with one underscore: so Meltano spells those
    that it gives to each tap, beside a file that has the key in its right place."""
    if len(path) > 1:
        return None
    inner = _inner(schema, schema, (), ())
    return next((one for one in inner if shouted(path[0]) == "_".join(map(shouted, one))), None)


def _inner(root: schemas.Schema, part: Any, path: Path, above: tuple[int, ...]) -> Iterator[Path]:
    """The paths of the keys that lie inside objects."""
    for name, inner in schemas.properties(root, part, branches=True).items():
        known = {id(layer) for layer in schemas.layers(root, inner, branches=True)}
        if path:
            yield (*path, name)
        if not known & set(above):
            yield from _inner(root, inner, (*path, name), (*above, *known))


def _is_setting(name: str) -> bool:
    from burler.settings import Settings

    return name in Settings.__dataclass_fields__


def read_text(text: str, root: schemas.Schema, schema: Any) -> Any:
    """The value that a text stands for.

    Where text is allowed, it stays as it is, unless it is a JSON object or list and these are allowed, too.
    Whole numbers, numbers, ``true``/``false`` (also 1/0, yes/no, on/off) and JSON are read where the schema asks
    for them; a list may also be written with commas, without brackets. Empty text is null where null is allowed.

    Raises:
        ValueError: what the text should be, in words; never what it is.
    """
    kinds = schemas.types(root, schema)
    if not kinds:
        return text
    if not text.strip() and "null" in kinds and "string" not in kinds:
        return None
    for kind in ("object", "array", "string", "boolean", "integer", "number"):
        if kind in kinds:
            value = text if kind == "string" else _READ[kind](text, root, schema, len(kinds - {"null"}) == 1)
            if value is not _NOTHING:
                return value
    raise ValueError(" or ".join(_WORDS[kind] for kind in TYPES if kind in kinds and kind != "null") or "null")


def _json(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _NOTHING
    return _NOTHING if too_deep(value) else value


def too_deep(value: Any) -> bool:
    """Whether objects and lists stand in each other more than a hundred deep: functions that walk a config by calling
    themselves, ours and the author's, would break."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for node in level
            if isinstance(node, dict | list)
            for inner in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return True


def _boolean(text: str, _root: Any, _schema: Any, alone: bool) -> Any:
    word = text.strip().lower()
    if word in (_TRUE if alone else ("true",)):
        return True
    return False if word in (_FALSE if alone else ("false",)) else _NOTHING


def _integer(text: str, _root: Any, _schema: Any, _alone: bool) -> Any:
    return int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,4000}\s*", text, re.ASCII) else _NOTHING


def _number(text: str, _root: Any, _schema: Any, _alone: bool) -> Any:
    value = _json(text.strip())
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _NOTHING


def _object(text: str, _root: Any, _schema: Any, _alone: bool) -> Any:
    value = _json(text)
    return value if isinstance(value, dict) else _NOTHING


def _array(text: str, root: Any, schema: Any, alone: bool) -> Any:
    if text.lstrip().startswith("["):
        value = _json(text)
        return value if isinstance(value, list) else _NOTHING
    if not alone or text.lstrip().startswith("{"):
        return _NOTHING
    items: Any = next((layer["items"] for layer in schemas.layers(root, schema, branches=True) if "items" in layer), {})
    try:
        return [read_text(piece.strip(), root, items) for piece in text.split(",")] if text.strip() else []
    except ValueError:
        return _NOTHING


_READ = {"boolean": _boolean, "integer": _integer, "number": _number, "object": _object, "array": _array}
