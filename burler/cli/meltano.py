"""``--about=meltano``: the definition of a tap as a plugin, as Meltano reads it (``meltano add --from-ref FILE``)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from burler.config import schemas
from burler.config.environment import variable_of
from burler.config.secrets import MASKED, Path

_CAPABILITIES = (
    "properties",
    "catalog",
    "discover",
    "state",
    "about",
    "activate-version",
    "batch",
    "log-based",
    "test",
)
"""Words that Meltano knows, in the order in which they are written."""
_PLAIN = re.compile(r"[A-Za-z][\w./-]*(?: [\w./-]+)*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the config that is one setting: its way there, its schema, whether all on the way must be there."""

    path: Path
    part: Any
    needed: bool

    @property
    def name(self) -> str:
        """``db.host``, as Meltano spells what lies inside an object; a dot of the key's own has a backslash."""
        return ".".join(step.replace(".", "\\.") for step in self.path)


def definition(said: Mapping[str, Any]) -> dict[str, Any]:
    """The plugin of a tap, as a plain dict.

    The tap is a command that is installed already (``executable``): where it is a package of an index, put its
    ``pip_url`` in place of that. Objects with known keys become a setting for each key, so that Meltano can tell
    the secret ones among them.

    Args:
        said: what ``about`` gave. Of burler's own settings only those are named that have no default: ``start_date``.
    """
    schema = said["settings"]
    others = {name for name in said["burler_settings"] if name != "start_date"}
    keys = [key for key in _keys(schema, schema, above=(id(schema),)) if key.path[0] not in others]
    made: dict[str, Any] = {
        "plugin_type": "extractors",
        "name": said["name"],
        "namespace": said["name"].replace("-", "_"),
        "variant": "custom",
        "label": said["name"].removeprefix("tap-").replace("-", " ").title(),
        "executable": said["name"],
        "capabilities": [word for word in _CAPABILITIES if word in said["capabilities"]],
    }
    if said["description"]:
        made["description"] = said["description"]
    groups = [[key.name for key in keys if key.needed and key.path[0] in group] for group in _needed(schema)]
    if any(groups):
        made["settings_group_validation"] = [group for group in groups if group]
    secrets = schemas.secret_paths(schema)
    made["settings"] = [_setting(schema, key, secrets, said["name"]) for key in keys]
    return made


def _keys(root: schemas.Schema, part: Any, path: Path = (), above: tuple[int, ...] = ()) -> Iterator[_Key]:
    """The settings of an object. An object in it that names no keys, or that holds itself, is one setting."""
    must = set(schemas.required(root, part))
    for name, inner in schemas.properties(root, part, branches=True).items():
        here = (*path, name)
        known = {id(layer) for layer in schemas.layers(root, inner, branches=True)}
        below: list[_Key] = []
        if _kind(root, inner) == "object" and not known & set(above):
            below = list(_keys(root, inner, here, (*above, *known)))
        needed = not path or name in must
        for key in below:
            yield replace(key, needed=key.needed and needed)
        if not below:
            yield _Key(here, inner, needed)


def _needed(schema: schemas.Schema) -> list[set[str]]:
    """Each set of top-level keys with which a config is complete: one, or one for each branch of an anyOf or oneOf."""
    always = set(schemas.required(schema, schema))
    for layer in schemas.layers(schema, schema):
        for word in ("oneOf", "anyOf"):
            branches = [set(schemas.required(schema, branch)) for branch in layer.get(word, ())]
            if branches and all(branches):
                return [always | branch for branch in branches]
    return [always]


def _setting(root: schemas.Schema, key: _Key, secrets: frozenset[Path], tap_name: str) -> dict[str, Any]:
    """One setting: its name, kind, what it is, and its default.

    A number with a fraction has no kind: Meltano 4.4 fails on a ``decimal`` that came from a variable. Without one
    it passes the text on, and the tap reads it from its own variable.

    No default that is a secret, or has one in it: Meltano would give ``***`` to the tap. None inside an object
    either: Meltano would make the whole object of it, where the tap lets it be absent.
    """
    made: dict[str, Any] = {"name": key.name, "label": " ".join(key.path).replace("_", " ").capitalize()}
    layers = list(schemas.layers(root, key.part))
    choices: list[Any] = next((layer["enum"] for layer in layers if isinstance(layer.get("enum"), list)), [])
    words = [one for one in choices if one is not None]
    formats = {layer.get("format") for layer in schemas.layers(root, key.part, branches=True)}
    sensitive = any(path[: len(key.path)] == key.path[: len(path)] for path in secrets)
    sensitive |= bool(secrets and schemas.properties(root, key.part))  # an object that holds itself, at any depth
    if words and all(isinstance(one, str) for one in words) and not sensitive:
        made |= {"kind": "options", "options": [{"label": one, "value": one} for one in words]}
    elif formats & {"date", "date-time"} or key.path == ("start_date",):
        made["kind"] = "date_iso8601"
    elif (kind := _kind(root, key.part)) != "number":
        made["kind"] = kind
    elif len(key.path) > 1:
        made["env"] = variable_of(tap_name, key.path)
    if sensitive:
        made["sensitive"] = True
    about = next((layer["description"] for layer in layers if layer.get("description")), None)
    if about:
        made["description"] = about
    default = next((layer["default"] for layer in layers if "default" in layer), None)
    if default is not None and not sensitive and len(key.path) == 1 and MASKED not in str(default):
        made["value"] = default
    return made


def _kind(root: schemas.Schema, part: Any) -> str:
    """The one type of a value, null aside; where several will do, it is the text of a variable as it is."""
    kinds = schemas.types(root, part) - {"null"}
    if kinds == {"integer", "number"}:
        return "number"
    return next(iter(kinds)) if len(kinds) == 1 else "string"


def as_yaml(value: Mapping[str, Any]) -> str:
    """Plain values as YAML that people can read; ends with a line end."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, one in value.items():
        if isinstance(one, list) and one and all(isinstance(item, Mapping) and item for item in one):
            yield f"{indent}{_scalar(key)}:"
            for item in one:
                first, *rest = _lines(item, indent + "  ")
                yield f"{indent}- {first.strip()}"
                yield from rest
        elif isinstance(one, Mapping) and one:
            yield f"{indent}{_scalar(key)}:"
            yield from _lines(one, indent + "  ")
        elif isinstance(one, list):
            yield f"{indent}{_scalar(key)}: {_flow(one)}"
        else:
            yield f"{indent}{_scalar(key)}: {_scalar(one)}"


def _flow(value: Any) -> str:
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.match(value) and value.lower() not in _WORDS else _quoted(value)
    if isinstance(value, float):
        return _number(value)
    return msgspec.json.encode(value).decode()  # JSON is YAML


def _quoted(text: str) -> str:
    """Text as JSON has it; what YAML does not take as it is, or reads as the end of a line, is spelled out."""
    quoted: str = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _number(value: float) -> str:
    """A number as YAML 1.1 asks for it: with a dot."""
    if not math.isfinite(value):
        return {"inf": ".inf", "-inf": "-.inf"}.get(repr(value), ".nan")
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
