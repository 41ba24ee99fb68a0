"""Answers in SOAP's own encoding, whose values may stand elsewhere in the body: ``<item href="#id1"/>``."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_MOST_LEVELS = 64
_MOST_MORE = 100_000
_MOST_TIMES = 4


def put_in_place(body: Any) -> None:
    """Put what an answer refers to in the place of the reference, and take it away from the body.

    A few references that refer to each other can stand for more elements than there is memory for, so there is a limit:
    four times the elements of the body, and 100,000.

    Args:
        body: the envelope's; its first element is the answer, those that have an ``id`` may be referred to.

    Raises:
        ValueError: something holds itself, or the answer becomes too big.
    """
    answer = next(iter(body), None)
    targets = {one.get("id"): one for one in body if one is not answer and one.get("id") is not None}
    if answer is None or not targets:
        return
    sizes = {name: sum(1 for _ in one.iter()) for name, one in targets.items()}
    left = _MOST_MORE + _MOST_TIMES * sum(1 for _ in body.iter())
    stack: list[tuple[Any, tuple[str, ...]]] = [(answer, ())]
    while stack:
        element, around = stack.pop()
        href = element.get("href", "")
        name = href[1:]
        if href[:1] == "#" and name in targets:
            if name in around or len(around) >= _MOST_LEVELS:
                raise ValueError(f"what '#{name:.60}' refers to holds itself, or is nested too deep")
            left -= sizes[name]
            if left < 0:
                raise ValueError("its references stand for far more elements than it has; it is not read")
            element, around = _replaced(element, targets[name]), (*around, name)
        stack += [(child, around) for child in element]
    for one in targets.values():
        body.remove(one)


def _replaced(element: Any, target: Any) -> Any:
    """A copy of ``target`` under the name and in the place of ``element``. Its prefixes come along: types are named by
    them (``xsi:type="n:Item"``)."""
    from lxml import etree

    new = etree.Element(element.tag, {key: text for key, text in target.items() if key != "id"}, nsmap=target.nsmap)
    new.text = target.text
    new.extend([deepcopy(child) for child in target])
    element.getparent().replace(element, new)
    return new
