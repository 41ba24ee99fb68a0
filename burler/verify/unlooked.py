"""What a run could not show: rules that were not really looked at, with the reason (a clean list must not mean that
nothing was there to be looked at)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from burler.regex import compile_pattern
from burler.schema_tree import expressions
from burler.spec.messages import MessageCheck
from burler.spec.table import RULES

OF_ROWS = ("M205", "M207", "M208", "M210", "M211", "M217", "M218", "M219")
OF_BOOKMARKS = ("B302", "B303", "B304", "B305", "B306", "B307", "B320", "B321", "B322", "B323", "B324", "O402")
OF_WHOLE_RUNS = ("B305", "B309", "B310", "B315", "B318", "B323")
NOT_OF_PARTITIONS = ("B302", "B303", "B323", "B324")


def unlooked(check: MessageCheck, *, stopped: bool) -> dict[str, str]:
    """Rules that the messages of a run say nothing of, by code.

    Args:
        stopped: the run was ended before it had come to its end.
    """
    found: dict[str, str] = {}

    def leave(reason: str, *codes: str) -> None:
        for code in codes:
            found.setdefault(code, reason)

    if not check.lines:
        leave("no message came", *(code for code in RULES if code[0] in "MBOR"))
    watched = [one.bookmarks for one in check.streams.values() if one.bookmarks is not None]
    if not check.rows:
        leave("no row came", *OF_ROWS, *(code for code in RULES if code[0] in "OR"))
    gap = next(_gaps(check), None)
    if gap is not None:
        leave(gap, "M205")
    if not watched:
        leave("no stream names a replication key", *OF_BOOKMARKS)
    elif all(watch.partitioned for watch in watched):
        leave("all bookmarks are of partitions, whose rows nobody can tell apart", *NOT_OF_PARTITIONS)
    if not check.states.count:
        leave("no STATE came", "B301", "B308", "B309", "B315", "B316", "B317")
    if stopped:
        leave("the run was ended early: by --max-records, --max-seconds or a signal", *OF_WHOLE_RUNS)
    seen = {one.code for one in check.findings}
    return {code: reason for code, reason in found.items() if code not in seen}


def _gaps(check: MessageCheck) -> Iterator[str]:
    """Regular expressions of the SCHEMAs that values are not held against."""
    for name, stream in check.streams.items():
        for fit in stream.fits:
            for keyword, expression, path in expressions(fit.schema):
                with contextlib.suppress(re.error):
                    gap = compile_pattern(expression).gap
                    if gap is not None:
                        field = f"{name}.{path}" if path else name
                        yield f"in part: {keyword} {expression!r:.60} of '{field}': {gap.rstrip('.')}"
