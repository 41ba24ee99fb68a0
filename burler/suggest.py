"""The question "did you mean": the known name that is spelled like one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from burler.words import some

_LONGEST = 200
_MOST = 10_000


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that is spelled most like ``name``, whatever the case: by the whole of it, else by its last part
    (``street`` for ``address.street``). None if none is near.

    Args:
        cutoff: how near it must be, 1 being the same; for callers that do more with it than ask.
    """
    import difflib

    whole = {text[:_LONGEST].casefold(): text for text in reversed(list(islice(known, _MOST)))}
    last = {text.rpartition(".")[2]: text for text in whole}
    name = name[:_LONGEST].casefold()
    if close := difflib.get_close_matches(name, whole, 1, cutoff):
        return whole[close[0]]
    close = difflib.get_close_matches(name.rpartition(".")[2], last, 1, cutoff)
    return whole[last[close[0]]] if close else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"``, with a blank before it; nothing if no known name is near."""
    near = nearest(str(name), known)
    if near is None:
        return ""
    shown = near if near.isprintable() else ascii(near)[1:-1]
    return f" Did you mean '{shown if len(shown) <= _LONGEST else f'{shown[:_LONGEST]}...'}'?"


def near_or_all(name: object, known: Iterable[str], what: str) -> str:
    """The question, or where no known name is near the names that there are: ``" Known: a, b."``."""
    names = list(known)
    return did_you_mean(name, names) or f" {what}: {some(names)}."
