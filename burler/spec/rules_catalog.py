"""Rules of area C."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_catalog_keys import KEY_RULES
from burler.spec.rules_catalog_metadata import METADATA_RULES
from burler.spec.rules_catalog_schemas import SCHEMA_RULES
from burler.spec.rules_catalog_streams import STREAM_RULES

CATALOG_RULES: tuple[Rule, ...] = tuple(
    sorted((*STREAM_RULES, *SCHEMA_RULES, *KEY_RULES, *METADATA_RULES), key=lambda rule: rule.code)
)
