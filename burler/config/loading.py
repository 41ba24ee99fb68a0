"""Config from files and environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from burler.config.environment import apply_environment, environment_prefix, too_deep, variable_of
from burler.errors import ConfigError

if TYPE_CHECKING:
    from burler.config.forms import ConfigForm

__all__ = ["FROM_ENVIRONMENT", "Loaded", "environment_prefix", "load", "read_config_file", "variable_of"]

FROM_ENVIRONMENT = "ENV"
"""``--config ENV``, in place of a file: the config comes from environment variables. A file of that name: ``./ENV``."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A config and where it came from.

    ``files``: each file with what it held, in the order in which they were given. ``variables``: the path that
    each environment variable set, with the variable's name. ``problems``: what is wrong with variables, to be said
    together with what else is wrong.
    """

    config: dict[str, Any]
    files: tuple[tuple[Path, dict[str, Any]], ...] = ()
    variables: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_config_file(path: str | Path) -> dict[str, Any]:
    """One JSON object from a file.

    Raises:
        ConfigError: missing, unreadable, not JSON, not an object. The content is never quoted.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        if str(path).lstrip().startswith("{"):  # not shown: it may hold a secret
            raise ConfigError("--config takes the name of a file, not the config itself.") from None
        raise ConfigError(f"config file {path} does not exist. Give the right path with --config.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"config file {path} can't be read: {getattr(error, 'strerror', error)}.") from None
    return parse_object(content, what=f"config file {path}")


def parse_object(content: bytes, *, what: str) -> dict[str, Any]:
    """The JSON object that a file holds; ``what`` names the file.

    Raises:
        ConfigError: not JSON, or not an object. The content is never quoted.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise ConfigError(f"{what} is empty. A config without keys is: {{}}")
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{what} is not JSON: {_position(content, error)}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f'{what} must hold a JSON object like {{"key": "value"}}.')
    if too_deep(value):
        raise ConfigError(f"{what} is nested too deep: more than 100 objects or lists in each other.")
    return value


def _position(content: bytes, error: Exception) -> str:
    """Where a JSON file breaks, as line and column: the byte number alone helps nobody."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text = str(error)
    found = re.search(r"\(byte (\d+)\)", text)
    before = content[: int(found[1])] if found else content.rstrip()
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return f"{text[: found.start()].strip() if found else text} (line {line}, column {column})"


def load(
    files: Iterable[str | Path] = (),
    *,
    environment: Mapping[str, str],
    tap_name: str,
    form: ConfigForm | None = None,
) -> Loaded:
    """One config from several files (later ones win) and ``TAP_NAME_KEY`` variables (these win over files).

    Objects merge key by key at every depth; lists and all else are replaced as a whole. The word ``ENV`` in place
    of a file stands for the environment alone and is no file. ``TAP_GIT_REPO`` sets ``repo`` of tap-git,
    ``TAP_X_DB__HOST`` sets ``db.host`` of tap-x; a key that the form names is found whatever its case
    (``clientId``) and signs (``api-key``), and read as the type that the form asks for.

    Raises:
        ConfigError: an unreadable file. Variables whose text is not what the form asks for stand in ``problems``.
        DeclarationError: the form itself can't be read (a sample file that is missing).
    """
    read = tuple((Path(path), read_config_file(path)) for path in files if path != FROM_ENVIRONMENT)
    config: dict[str, Any] = {}
    for _path, content in read:
        config = merged(config, content)
    schema = {} if form is None else form.json_schema()
    variables, problems = apply_environment(config, environment, tap_name=tap_name, schema=schema)
    return Loaded(config, read, variables, tuple(problems))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two configs in one: where both hold an object its keys are merged, else ``above`` wins. Neither is changed."""
    out = dict(below)
    for key, value in above.items():
        under = out.get(key)
        # Objects are copied in any case: what a tap changes in the result must not change what a file held.
        out[key] = merged(under if isinstance(under, Mapping) else {}, value) if isinstance(value, Mapping) else value
    return out
