"""The rules of Singer as plain functions: messages and catalogs in, findings out. Usable without the framework."""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.spec.catalog import check_catalog
    from burler.spec.check import check_messages
    from burler.spec.choice import Choice
    from burler.spec.finding import Finding, Findings
    from burler.spec.limits import Limits
    from burler.spec.messages import MessageCheck
    from burler.spec.rule import Rule
    from burler.spec.table import RULES

__all__ = [
    "RULES",
    "Choice",
    "Finding",
    "Findings",
    "Limits",
    "MessageCheck",
    "Rule",
    "check_catalog",
    "check_messages",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "RULES": "table",
            "Choice": "choice",
            "Finding": "finding",
            "Findings": "finding",
            "Limits": "limits",
            "MessageCheck": "messages",
            "Rule": "rule",
            "check_catalog": "catalog",
            "check_messages": "check",
        },
    )
