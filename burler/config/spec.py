"""What a tap's ``config_spec`` asks for.

Forms (PLANNING): None; a list of keys that must be there; an example dict, whose types and nesting are
checked and where further keys pass; a function of the config that raises if it is wrong; any object
with ``validate``. Every problem is reported at once, and never a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burler.config.load import variable_of
from burler.config.secrets import scrub, secret_values
from burler.errors import ConfigError, DeclarationError

Path = tuple[str, ...]
ConfigSpec = Any
"""None | sequence of keys | example mapping | callable | object with ``validate``."""


def check_spec(spec: ConfigSpec, *, place: str) -> None:
    """Refuse a ``config_spec`` of a kind we do not know, when it is declared.

    Raises:
        DeclarationError: neither of the forms above.
    """
    if spec is None or isinstance(spec, Mapping) or callable(spec) or callable(getattr(spec, "validate", None)):
        return
    if isinstance(spec, Sequence) and not isinstance(spec, str) and all(isinstance(key, str) for key in spec):
        return
    raise DeclarationError(
        f"{place}: config_spec is {type(spec).__name__}; give a list of keys, an example dict, "
        "a function that raises, or an object with validate()."
    )


def known_keys(spec: ConfigSpec) -> tuple[str, ...]:
    """The top-level keys that a spec names; empty where it names none."""
    if isinstance(spec, Mapping):
        return tuple(spec)
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        return tuple(spec)
    return ()


def check_config(spec: ConfigSpec, config: dict[str, Any], *, tap_name: str) -> None:
    """Check a config against a spec.

    Raises:
        ConfigError: lists every key that is missing or of the wrong type, and how to give it; secrets in
            what the author's own check says are masked.
    """
    problems: list[str] = []
    missing: list[Path] = []
    if isinstance(spec, Mapping):
        _compare(spec, config, (), problems, missing)
    elif callable(getattr(spec, "validate", None)):
        _call(spec.validate, config, problems)
    elif callable(spec):
        _call(spec, config, problems)
    elif spec is not None:
        missing += [(key,) for key in spec if config.get(key) is None]
    if missing:
        keys = ", ".join(f"'{'.'.join(path)}'" for path in missing)
        variables = ", ".join(variable_of(tap_name, path) for path in missing)
        problems.insert(0, f"config lacks {keys}. Put it into the --config file or set {variables}")
    if problems:
        raise ConfigError(scrub(f"{tap_name}: " + "\n  ".join(problems), tuple(secret_values(config))))


def _compare(
    example: Mapping[str, Any],
    config: Mapping[str, Any],
    path: Path,
    problems: list[str],
    missing: list[Path],
) -> None:
    for key, sample in example.items():
        here = (*path, key)
        name = ".".join(here)
        if config.get(key) is None:
            if sample is not None:
                missing.append(here)
            continue
        value = config[key]
        if isinstance(sample, Mapping):
            if isinstance(value, Mapping):
                _compare(sample, value, here, problems, missing)
            else:
                problems.append(f"config '{name}' must be an object, not {_kind(value)}")
        elif not _same_kind(sample, value):
            problems.append(f"config '{name}' must be {_kind(sample)}, not {_kind(value)}")


def _same_kind(sample: Any, value: Any) -> bool:
    if sample is None:
        return True
    if isinstance(sample, bool) or isinstance(value, bool):
        return isinstance(sample, bool) and isinstance(value, bool)
    if isinstance(sample, float):
        return isinstance(value, int | float)
    return isinstance(value, type(sample))


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
    return kinds.get(type(value), "an object" if isinstance(value, Mapping) else type(value).__name__)


def _call(check: Any, config: dict[str, Any], problems: list[str]) -> None:
    """Run a check of the author's. Any exception of it is its verdict on the config, so all are taken."""
    try:
        check(config)
    except Exception as error:
        problems.append(f"config refused: {type(error).__name__}: {error}")
