"""``config_spec`` as plain functions; each reads the spec anew. ``parse_spec`` gives the form that keeps it read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.config.forms import ConfigSpec, parse_spec

__all__ = ["ConfigSpec", "check_config", "check_spec", "known_keys"]


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
