"""The form of a SCHEMA message (M216), and what stands in its schema (area C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.spec.catalog import check_schema_message
from burler.spec.finding import Findings


def check_schema_line(wire: Mapping[str, Any], findings: Findings, number: int) -> None:
    """A SCHEMA message that bears the name of a stream.

    Args:
        wire: the message; what could not be read is left out.
        number: its line, counted from 1.
    """
    name, place = wire["stream"], f"line {number}"

    def say(fact: str) -> None:
        findings.add("M216", fact, stream=name, place=place)

    if not isinstance(wire.get("schema"), dict):
        say("a SCHEMA without an object 'schema'")
    keys = wire.get("key_properties")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        words = "has key_properties that are no list of names" if "key_properties" in wire else "has no key_properties"
        say(f"the SCHEMA of '{name}' {words}: some targets end there; [] says that there is no key")
    marks = wire.get("bookmark_properties")
    if not isinstance(marks, str | list | None) or not all(isinstance(one, str) for one in marks or ()):
        words = "has bookmark_properties that are no list of names: some targets end there"
        say(f"the SCHEMA of '{name}' {words}")
    check_schema_message(wire, findings, place=place)
