"""``--about=meltano``: the definition of a tap as a plugin, as Meltano reads it (``meltano add --from-ref FILE``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_KINDS = {"integer": "integer", "number": "decimal", "boolean": "boolean", "array": "array", "object": "object"}
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


def definition(said: Mapping[str, Any]) -> dict[str, Any]:
    """The plugin of a tap, as a plain dict.

    The tap is a command that is installed already (``executable``): where it is a package of an index, put its
    ``pip_url`` in place of that.

    Args:
        said: what ``about`` gave. Of burler's own settings only those are named that have no default: ``start_date``.
    """
    schema = said["settings"]
    own = {
        name: part
        for name, part in schema["properties"].items()
        if name not in said["burler_settings"] or name == "start_date"
    }
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
    needed = [name for name in schema.get("required", ()) if name in own]
    if needed:
        made["settings_group_validation"] = [needed]
    made["settings"] = [_setting(name, part) for name, part in own.items()]
    return made


def _setting(name: str, part: Any) -> dict[str, Any]:
    """One setting: its name, kind, what it is, and its default."""
    part = part if isinstance(part, Mapping) else {}
    kinds = part.get("type", "string")
    kind = next((word for word in ([kinds] if isinstance(kinds, str) else kinds) if word != "null"), "string")
    made: dict[str, Any] = {"name": name, "label": name.replace("_", " ").capitalize()}
    choices = part.get("enum")
    if part.get("secret") or part.get("writeOnly"):
        made |= {"kind": "string", "sensitive": True}
    elif isinstance(choices, list) and all(isinstance(one, str) for one in choices):
        made |= {"kind": "options", "options": [{"label": one, "value": one} for one in choices]}
    elif part.get("format") in ("date", "date-time") or name == "start_date":
        made["kind"] = "date_iso8601"
    else:
        made["kind"] = _KINDS.get(kind, "string")
    if part.get("description"):
        made["description"] = part["description"]
    if part.get("default") is not None:
        made["value"] = part["default"]
    return made


def as_yaml(value: Mapping[str, Any]) -> str:
    """Plain values as YAML that people can read; ends with a line end."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, one in value.items():
        if isinstance(one, list) and one and all(isinstance(item, Mapping) for item in one):
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
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()  # JSON is YAML
