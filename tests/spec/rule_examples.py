"""The examples of the rules' pages, as tests run them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from burler.spec import Finding, Rule, check_catalog, check_messages

NOT_BY_MESSAGES = ("B314", "B325", "O401", "R502")
"""Rules of areas B, O and R whose examples are Python: no message shows what they say."""

_RESUMED = re.compile(r"# resumed from STATE (\d+)")
_CONFIG = re.compile(r"# config (\{.*\})")
_TIMES = re.compile(r"# (\d+) times, \$N = 1, 2, \.\.\.")
_END = "# end"
_CATALOG = re.compile(r"# catalog (\{.*\})")


def run_example(rule: Rule, text: str) -> list[Finding]:
    """What is found in an example of a rule of areas C, M, B, O or R (see ``Rule.breaks``)."""
    if rule.code[0] == "C":
        return list(check_catalog(json.loads(text)))
    runs: dict[int, list[str]] = {0: []}
    given: dict[str, Any] = {}
    now = 0
    for line in _repeated(text.strip().splitlines()):
        if found := _RESUMED.fullmatch(line.strip()):
            now = int(found[1])
            runs[now] = []
        elif found := _CONFIG.fullmatch(line.strip()):
            given["config"] = json.loads(found[1])
        elif found := _CATALOG.fullmatch(line.strip()):
            given["catalog"] = json.loads(found[1])
        else:
            runs[now].append(line)
    texts = {number: "\n".join(lines).encode() + b"\n" for number, lines in runs.items()}
    return check_messages(texts.pop(0), resumed=texts, **given)


def _repeated(lines: list[str]) -> Iterator[str]:
    """Lines, those between ``# 100 times, $N = 1, 2, ...`` and ``# end`` as often, with the number for ``$N``."""
    rest = iter(lines)
    for line in rest:
        found = _TIMES.fullmatch(line.strip())
        if found is None:
            yield line
            continue
        block = list(takewhile(lambda one: one.strip() != _END, rest))
        for number in range(1, int(found[1]) + 1):
            yield from (one.replace("$N", str(number)) for one in block)
