"""``--about``: what a tap is, as data, text, JSON or Markdown, all from the one schema of its config."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import msgspec

import burler
from burler.cli import meltano
from burler.cli.delivery import delivery
from burler.cli.options import FORMS
from burler.config import schemas
from burler.config.environment import variable_of
from burler.config.forms import ConfigForm
from burler.config.secrets import Path, looks_secret, mask
from burler.declare.app import App
from burler.declare.spec import StreamSpec
from burler.errors import UsageError
from burler.schema_tree import TYPES, changed, parts
from burler.settings import Settings, markdown_table
from burler.singer.metadata import FULL_TABLE, LOG_BASED

_DISCOVERED = "as discovered"
_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}


def about(app: App) -> dict[str, Any]:
    """What ``--about`` says, as plain JSON values.

    ``name``, ``description``, ``version``, ``sdk_version`` (burler's), ``capabilities`` and ``settings`` (one JSON
    Schema of all that the config may hold, burler's own settings included) mean what they mean in the answer of
    other frameworks. ``burler_settings`` names the keys of the schema that are burler's; ``streams`` says of each
    stream how it is replicated and what it promises.
    """
    return {
        "name": app.name,
        "description": app.description or None,
        "version": app.version,
        "sdk_version": burler.__version__,
        "capabilities": capabilities(app.streams),
        "settings": settings_schema(app.config_form),
        "burler_settings": [item.name for item in fields(Settings)],
        "streams": [_stream(spec, app.streams) for spec in app.streams.values()],
    }


def capabilities(specs: Mapping[str, StreamSpec]) -> list[str]:
    """What an orchestrator may ask of the tap, in the usual words."""
    found = ["catalog", "properties", "discover", "state", "about", "test", "batch"]
    if any(spec.replication_method == FULL_TABLE and spec.versions is not False for spec in specs.values()):
        found.append("activate-version")
    if any(spec.replication_method == LOG_BASED for spec in specs.values()):
        found.append("log-based")
    return found


def settings_schema(form: ConfigForm) -> dict[str, Any]:
    """The JSON Schema of a whole config: the tap's own keys, then burler's settings. Secrets are marked, and no
    default of one is shown."""
    given = form.json_schema()
    schema = _public(given, "", _hidden(given))
    own = dict(schemas.properties(schema, schema))
    made: dict[str, Any] = {"type": "object", "properties": own | _burler_settings(but=own)}
    needed = schemas.required(schema, schema)
    if needed:
        made["required"] = needed
    for key in ("title", "description", "anyOf", "oneOf", "additionalProperties"):
        if key in schema:
            made[key] = schema[key]
    for key in ("$defs", "definitions"):
        if key in schema:
            made[key] = schema[key]
    return made


def _burler_settings(but: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for item in fields(Settings):
        if item.name in but:
            continue
        kind = str(item.type).partition(" |")[0]
        word = next((name for cls, name in _TYPES.items() if cls.__name__ == kind), "object")
        made[item.name] = {"type": [word, "null"] if item.metadata["null"] else word}
        if item.default is not None:
            made[item.name]["default"] = item.default
        made[item.name]["description"] = item.metadata["about"]
    return made


_VALUES = ("default", "examples", "enum", "const")
_OF_ITEMS = ("items", "prefixItems", "additionalItems", "additionalProperties", "patternProperties")


def _hidden(root: Mapping[str, Any]) -> dict[int, set[Path]]:
    """For each part of a schema, by its ``id``: the paths of secrets from there on; ``()`` is the part itself.

    What stands below a secret is one, too; names and marks count through references and ``allOf``.
    """
    found: dict[int, set[Path]] = {}
    done: set[tuple[int, frozenset[Path]]] = set()

    def walk(part: Any, paths: frozenset[Path]) -> None:
        if not isinstance(part, Mapping):
            return
        if any(map(schemas.is_secret, schemas.layers(root, part))):
            paths |= {()}
        if (id(part), paths) in done:
            return
        done.add((id(part), paths))
        found.setdefault(id(part), set()).update(paths)
        if "$ref" in part:
            walk(schemas.target(root, part["$ref"]), paths)
        for way, inner in parts(part):
            if way[0] in ("$defs", "definitions"):
                walk(inner, frozenset())
            elif way[0] == "properties" or way[0] in _OF_ITEMS:
                name = way[1] if way[0] == "properties" else schemas.ANY
                below = {path[1:] for path in paths if path and path[0] in (name, schemas.ANY)}
                secret = () in paths or (way[0] == "properties" and looks_secret(name))
                walk(inner, frozenset(below | {()} if secret else below))
            else:
                walk(inner, paths)

    walk(root, schemas.secret_paths(root))
    return found


def _public(part: Any, name: str, hidden: Mapping[int, set[Path]]) -> Any:
    """A schema without values of secrets, and with every key that looks like one marked as it."""
    if not isinstance(part, Mapping):
        return part
    out = dict(part)
    marked = hidden.get(id(part), set())
    for key in _VALUES:
        if key not in part:
            continue
        if () in marked:
            del out[key]
        elif key in ("examples", "enum") and isinstance(part[key], list):
            out[key] = [mask(value, marked=marked) for value in part[key]]
        else:
            out[key] = mask(part[key], marked=marked)
    out = changed(out, lambda way, inner: _public(inner, way[1] if way[0] == "properties" else "", hidden))
    if looks_secret(name) or schemas.is_secret(part):
        out["secret"] = True
    return out


def _stream(spec: StreamSpec, specs: Mapping[str, StreamSpec]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": spec.tap_stream_id,
        "replication_method": None if spec.is_pattern and not spec.method_said else spec.replication_method,
        "key_properties": list(spec.key_properties),
        "replication_key": spec.replication_key,
        "delivery": delivery(spec, specs),
    }
    return said | {key: value for key in ("parent", "emitted_by") if (value := getattr(spec, key, None))}


# ---- config keys as rows ---------------------------------------------------------------------------


def config_rows(schema: Mapping[str, Any], tap_name: str) -> list[dict[str, Any]]:
    """Every key of a config's schema, nested ones behind the object they stand in.

    Each row: ``key`` (``db.host``; ``*`` for any item of a list), ``type``, ``required``, ``default`` (as JSON;
    empty for none), ``secret``, ``description``, ``variable`` (empty inside lists).
    """
    return list(_rows(schema, schema, (), tap_name, ()))


def _rows(
    root: Mapping[str, Any], part: Any, path: tuple[str, ...], tap_name: str, above: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    needed = schemas.required(root, part)
    for name, inner in schemas.properties(root, part, branches=True).items():
        layers = list(schemas.layers(root, inner))
        here = (*path, name)
        yield {
            "key": ".".join(here),
            "type": _type_text(root, inner),
            "required": name in needed,
            "default": next((_json(layer["default"]) for layer in layers if "default" in layer), ""),
            "secret": any(map(schemas.is_secret, layers)) or looks_secret(name),
            "description": next((str(layer["description"]) for layer in layers if layer.get("description")), ""),
            "variable": "" if "*" in here else variable_of(tap_name, here),
        }
        known = {id(layer) for layer in layers}
        if not known & set(above):
            yield from _rows(root, inner, here, tap_name, (*above, *known))
            for layer in layers:
                if isinstance(layer.get("items"), Mapping):
                    yield from _rows(root, layer["items"], (*here, "*"), tap_name, (*above, *known))


def _type_text(root: Mapping[str, Any], part: Any) -> str:
    """``integer``, ``string or null``, ``list of string``, or the values to choose from."""
    layers = list(schemas.layers(root, part))
    values = next((layer["enum"] for layer in layers if isinstance(layer.get("enum"), list)), None)
    if values:
        return " or ".join(_json(value) for value in values)
    kinds = schemas.types(root, part)
    words = [kind for kind in TYPES if kind in kinds]
    if kinds == {"array"}:
        items = next((layer["items"] for layer in layers if isinstance(layer.get("items"), Mapping)), None)
        inner = [kind for kind in TYPES if items is not None and kind in schemas.types(root, items)]
        return "list of " + " or ".join(inner) if inner else "list"
    return " or ".join(words) or "any"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        return str(value)


# ---- rendering -------------------------------------------------------------------------------------


def render(said: Mapping[str, Any], form: str) -> str:
    """What :func:`about` gave, as ``text``, ``json``, ``markdown`` or ``meltano``; ends with a line end.

    Raises:
        UsageError: another form.
    """
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(said), indent=2).decode() + "\n"
    if form == "markdown":
        return _markdown(said)
    if form == "meltano":
        return meltano.as_yaml(meltano.definition(said))
    if form == "text":
        return _text(said)
    raise UsageError(f"--about has no form '{form}'. Known: {', '.join(FORMS)}.")


def _own_rows(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = config_rows(said["settings"], said["name"])
    return [row for row in rows if row["key"] not in said["burler_settings"]]


def _text(said: Mapping[str, Any]) -> str:
    lines = [f"{said['name']} {said['version'] or 'without a version'} (burler {said['sdk_version']})"]
    lines += [said["description"]] if said["description"] else []
    lines += ["", "Capabilities: " + ", ".join(said["capabilities"]), "", "Config:"]
    rows = _own_rows(said)
    for row in rows:
        facts = [row["type"], *(word for word in ("required", "secret") if row[word])]
        facts += [f"default {row['default']}"] if row["default"] else []
        lines.append(f"  {row['key']:24} {', '.join(facts)}" + (f"  [{row['variable']}]" if row["variable"] else ""))
        lines += _wrapped(row["description"], "      ")
    lines += [] if rows else ["  the tap names no keys"]
    lines += ["", "Settings of every burler tap, in the config too:"]
    for item in fields(Settings):
        lines.append(f"  {item.name:24} default {'none' if item.default is None else _json(item.default)}")
        lines += _wrapped(item.metadata["about"], "      ")
    lines += ["", "Streams, and the delivery of each:"]
    for stream in said["streams"]:
        by = f" by {stream['replication_key']}" if stream["replication_key"] else ""
        keys = ", ".join(stream["key_properties"]) or ("none" if stream["replication_method"] else _DISCOVERED)
        lines.append(f"  {stream['name']}: {stream['replication_method'] or _DISCOVERED}{by}, keys: {keys}")
        for sentence in stream["delivery"]:
            lines += textwrap.wrap(sentence.replace("`", "'"), 110, initial_indent="    - ", subsequent_indent="      ")
    lines += [] if said["streams"] else ["  found when the tap discovers"]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent=indent, subsequent_indent=indent)


def _markdown(said: Mapping[str, Any]) -> str:
    blocks = [f"# `{said['name']}`"]
    blocks += [said["description"]] if said["description"] else []
    blocks.append(f"Version {said['version'] or 'unknown'}, made with burler {said['sdk_version']}.")
    blocks += ["## Capabilities", "\n".join(f"- `{name}`" for name in said["capabilities"])]
    blocks += ["## Config", config_table(_own_rows(said))]
    blocks += ["## Settings", "They stand in the config beside the tap's own keys.", markdown_table().strip()]
    blocks += ["## Streams", streams_table(said["streams"])]
    if said["streams"]:
        blocks += ["## Delivery", delivery_section(said["streams"])]
    return "\n\n".join(blocks) + "\n"


def config_table(rows: list[dict[str, Any]]) -> str:
    """The keys of a config as a Markdown table; ``rows`` as :func:`config_rows` gives them."""
    if not rows:
        return "The tap names no keys."
    lines = ["| key | type | required | default | description | variable |", "|---|---|---|---|---|---|"]
    for row in rows:
        about = " ".join(filter(None, (row["description"], "(secret)" if row["secret"] else "")))
        default, variable = (f"`{row[key]}`" if row[key] else "" for key in ("default", "variable"))
        cells = (f"`{row['key']}`", row["type"], "yes" if row["required"] else "no", default, about, variable)
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def streams_table(streams: list[dict[str, Any]]) -> str:
    """Streams as a Markdown table; ``streams`` as in what :func:`about` gives."""
    if not streams:
        return "Found when the tap discovers."
    lines = ["| stream | replication | key | replication key |", "|---|---|---|---|"]
    for stream in streams:
        none = "none" if stream["replication_method"] else _DISCOVERED
        keys = ", ".join(f"`{key}`" for key in stream["key_properties"]) or none
        by = f"`{stream['replication_key']}`" if stream["replication_key"] else none
        cells = (f"`{stream['name']}`", stream["replication_method"] or _DISCOVERED, keys, by)
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def delivery_section(streams: list[dict[str, Any]]) -> str:
    """What each stream promises, as Markdown."""
    return "\n\n".join(
        f"### `{stream['name']}`\n\n" + "\n".join(f"- {sentence}" for sentence in stream["delivery"])
        for stream in streams
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
