"""References that are left in a schema (C108, C109). Targets do not follow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from burler.schema_tree import at
from burler.spec.catalog_walk import Spot, children, reference
from burler.spec.catalog_words import Reporter, cut


def check_references(report: Reporter, schema: Any, places: Iterable[Spot]) -> None:
    """Report each reference of a schema; one that leads round in a circle as C109."""
    found = [(spot, word) for spot in places if (word := reference(spot.node)) is not None]
    if not found:
        return
    graph = _Graph(schema)
    for spot, word in found:
        given = spot.node[word]
        shown = f"'{word}': '{cut(given)}'"
        if id(spot.node) in graph.endless:
            fact = f"{shown} leads into a schema that holds itself, which no columns can be made of"
            report.add("C109", fact, path=spot.path)
        elif not given.startswith("#"):
            report.add("C108", f"{shown} points to another document, which a target does not have", path=spot.path)
        elif graph.target(given) is None:
            report.add("C108", f"{shown} points to nothing", path=spot.path)
        else:
            fact = f"{shown} is left in the schema: a target sees no type there, as it does not follow references"
            report.add("C108", fact, path=spot.path)


class _Graph:
    """Schemas and what they hold or point to. ``endless``: ids of those from which one can go on for ever."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._anchors: dict[str, Any] | None = None
        self.endless: set[int] = set()
        self._find_endless()

    def target(self, given: str) -> Any:
        """What a reference inside the document points to; None for nothing."""
        fragment = unquote(given[1:])
        if not fragment:
            return self._root
        if not fragment.startswith("/"):
            return self._anchor(fragment)
        try:
            return at(self._root, fragment)
        except LookupError:
            return None

    def _anchor(self, name: str) -> Any:
        if self._anchors is None:
            self._anchors = {}
            stack = [self._root]
            while stack:
                node = stack.pop()
                if isinstance(node, Mapping):
                    for key in (node.get("$anchor"), node.get("$dynamicAnchor"), node.get("$id"), node.get("id")):
                        if isinstance(key, str):
                            self._anchors.setdefault(key.removeprefix("#"), node)
                    stack.extend(node.values())
                elif isinstance(node, list | tuple):
                    stack.extend(node)
        return self._anchors.get(name)

    def _below(self, node: Any) -> list[Any]:
        below = [sub for _, _, sub in children(node)]
        word = reference(node)
        if word is not None and node[word].startswith("#"):
            below.append(self.target(node[word]))
        return [sub for sub in below if isinstance(sub, Mapping)]

    def _find_endless(self) -> None:
        """Take away what leads nowhere, again and again; what stays leads round."""
        leads: dict[int, int] = {}
        comes_from: dict[int, list[int]] = {}
        stack = [self._root]
        while stack:
            node = stack.pop()
            if id(node) in leads:
                continue
            below = self._below(node)
            leads[id(node)] = len(below)
            for sub in below:
                comes_from.setdefault(id(sub), []).append(id(node))
            stack.extend(below)
        ends = [key for key, count in leads.items() if not count]
        while ends:
            for before in comes_from.get(ends.pop(), ()):
                leads[before] -= 1
                if not leads[before]:
                    ends.append(before)
        self.endless = {key for key, count in leads.items() if count}
