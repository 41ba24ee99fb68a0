"""The rules of Singer as plain functions: messages and catalogs in, findings out. Usable without the framework.

What to open for what:

    table, rule, rules_*              all rules; what one is; their texts
    choice, limits, explain           which count; by which figures; a rule for a terminal
    check, messages, stream           a run's messages: as a function; in their order; those of one stream
    lines                             lines of any tap, decoded
    catalog, catalog_*, schema_messages  catalogs; SCHEMA messages
    fit, fit_*, nodes, constraints    values against the schema, a column at a time
    hard_values, other_formats        values that targets can't take; formats that few hold values against
    order, rowlog, times              in which order rows came; which; ``time_extracted``
    bookmarks                         STATEs of one stream, held against its rows
    states, statelog, resume          where a bookmark stands; STATEs as a whole; runs that were resumed
    versions, secret_lines            full tables; secrets in messages
    declared                          what a catalog says of each stream
    finding, saying, patch            what was found; what several lines show; a schema that would have fitted
"""

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
