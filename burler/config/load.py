"""Config from files and environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from burler.errors import ConfigError


def environment_prefix(tap_name: str) -> str:
    """``tap-git`` -> ``TAP_GIT_``: environment variables of this tap's config start so."""
    return _shouted(tap_name) + "_"


def variable_of(tap_name: str, path: tuple[str, ...]) -> str:
    """The environment variable that sets a key: ``("db", "host")`` of tap-x -> ``TAP_X_DB__HOST``."""
    return environment_prefix(tap_name) + "__".join(map(_shouted, path))


def _shouted(text: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", text.upper())


def read_config_file(path: str | Path) -> dict[str, Any]:
    """One JSON object from a file.

    Raises:
        ConfigError: missing, unreadable, not JSON, not an object. The content is never quoted.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"config file {path} does not exist. Give the right path with --config.") from None
    except OSError as error:
        raise ConfigError(f"config file {path} can't be read: {error.strerror}.") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {path} is not JSON: {_position(content, error)}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f'config file {path} must hold a JSON object like {{"key": "value"}}.')
    return value


def _position(content: bytes, error: Exception) -> str:
    """Where a JSON file breaks, as line and column: the byte number alone helps nobody."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    text = str(error)
    found = re.search(r"\(byte (\d+)\)", text)
    before = content[: int(found[1])] if found else content.rstrip()
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return f"{text[: found.start()].strip() if found else text} (line {line}, column {column})"


def load_config(
    files: Iterable[str | Path] = (),
    *,
    environment: Mapping[str, str],
    tap_name: str,
    spec: Any = None,
) -> dict[str, Any]:
    """One config from several files (later ones win, key by key) and ``TAP_NAME_KEY`` variables (these win).

    ``TAP_GIT_REPO`` sets ``repo`` of tap-git; ``TAP_X_DB__HOST`` sets ``db.host`` of tap-x. A key that the
    spec names is found whatever its case (``clientId``) and signs (``api-key``). Where the spec's example is
    no text, the variable is read as JSON.

    Raises:
        ConfigError: an unreadable file, or a variable that should be JSON and is not.
    """
    config: dict[str, Any] = {}
    for path in files:
        config.update(read_config_file(path))
    prefix = environment_prefix(tap_name)
    examples = spec
    if not isinstance(spec, Mapping):
        examples = dict.fromkeys(spec) if isinstance(spec, list | tuple) else {}
    for variable in sorted(environment):
        if variable.startswith(prefix) and len(variable) > len(prefix):
            _set(config, variable, variable[len(prefix) :].lower().split("__"), environment[variable], examples)
    return config


def _set(config: dict[str, Any], variable: str, path: list[str], text: str, examples: Any) -> None:
    node: dict[str, Any] = config
    sample: Any = examples
    for part in path[:-1]:
        key, sample = _named(part, sample)
        inner = node.get(key)
        node[key] = inner = dict(inner) if isinstance(inner, dict) else {}
        node = inner
    key, sample = _named(path[-1], sample)
    if sample is None or isinstance(sample, str):
        node[key] = text
        return
    try:
        node[key] = msgspec.json.decode(text.lower() if isinstance(sample, bool) else text)
    except (msgspec.DecodeError, UnicodeError):
        raise ConfigError(f"environment variable {variable} must hold JSON ({type(sample).__name__}).") from None


def _named(part: str, sample: Any) -> tuple[str, Any]:
    """The key that a part of a variable's name means, as the spec spells it, and its example."""
    if not isinstance(sample, Mapping):
        return part, None
    key = next((key for key in sample if isinstance(key, str) and _shouted(key) == part.upper()), part)
    return key, sample.get(key)
