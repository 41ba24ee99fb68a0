"""Which rules count: ``select`` and ``ignore`` as linters have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from burler.errors import UsageError
from burler.spec.rule import AREAS, Rule
from burler.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Choice:
    """Codes, or what they begin with (``B``, ``B30``), or rules' names; "ALL" is all of them.

    The longer one wins: ``select=("B",), ignore=("B306",)`` is all of B but one, ``select=("B306",), ignore=("B",)``
    that one alone. ``per_stream``: what is ignored of single streams.
    """

    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    per_stream: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def wants(self, rule: Rule, stream: str | None = None) -> bool:
        """Whether a rule counts, for a stream."""
        chosen, left = _longest(self.select, rule), _longest(self.ignore, rule)
        if chosen < 0 or left >= chosen:
            return False
        return stream is None or _longest(self.per_stream.get(stream, ()), rule) < 0


def check_choice(choice: Choice, rules: Mapping[str, Rule]) -> None:
    """Refuse words that no rule goes by.

    Raises:
        UsageError: one is none.
    """
    named = {rule.name for rule in rules.values()}
    for word in (*choice.select, *choice.ignore, *(word for words in choice.per_stream.values() for word in words)):
        if word == "ALL" or word in named or any(code.startswith(word) for code in rules if word):
            continue
        begun = [word.upper()] if word and any(code.startswith(word.upper()) for code in rules) else []
        hint = did_you_mean(word, [*begun, *named])
        areas = ", ".join(f"{letter} ({area})" for letter, area in AREAS.items())
        raise UsageError(f"no rule is called '{word}'.{hint} Codes begin with {areas}. See: burler verify --rules")


def _longest(words: Iterable[str], rule: Rule) -> int:
    """How much of a rule's code the closest word says; -1 if none speaks of it."""
    found = -1
    for word in words:
        if word == "ALL":
            found = max(found, 0)
        elif word == rule.name:
            found = max(found, len(rule.code))
        elif word and rule.code.startswith(word):
            found = max(found, len(word))
    return found
