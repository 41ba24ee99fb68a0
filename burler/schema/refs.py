"""References inside one schema document, replaced by what they point to.

SCHEMA messages must not hold ``$ref`` (specs 8): targets do not resolve them.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from burler.errors import DeclarationError


def resolve_refs(schema: Any, *, source: str) -> Any:
    """A copy of ``schema`` without ``$ref``, ``definitions`` and ``$defs``; the input is not changed.

    JSON pointers into the same document (``#/definitions/x``, ``#/$defs/x``, ``#``) are followed, nested
    and chained; keywords beside a ``$ref`` are laid over what it points to.

    Raises:
        DeclarationError: a reference that points outside the document or to nothing, or a cycle
            (Singer schemas are finite); the chain of references is shown.
    """
    return _resolve(schema, schema, (), source, top=True)


def _resolve(node: Any, document: Any, chain: tuple[str, ...], source: str, *, top: bool = False) -> Any:
    if isinstance(node, list):
        return [_resolve(item, document, chain, source) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in chain:
            shown = " -> ".join((*chain[chain.index(reference) :], reference))
            raise DeclarationError(
                f"{source}: the schema refers to itself: {shown}. Singer schemas can't be recursive."
            )
        target = _resolve(_point(document, reference, source), document, (*chain, reference), source)
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        beside = _resolve(siblings, document, chain, source, top=top)
        if not beside:
            return target
        return {**target, **beside} if isinstance(target, dict) else beside
    skip = ("definitions", "$defs") if top else ()
    return {key: _resolve(value, document, chain, source) for key, value in node.items() if key not in skip}


def _point(document: Any, reference: str, source: str) -> Any:
    if not reference.startswith("#"):
        raise DeclarationError(f"{source}: $ref '{reference}' points outside the document; only '#/...' works so far.")
    if reference[1:] and not reference.startswith("#/"):
        raise DeclarationError(f"{source}: $ref '{reference}' is an anchor; only JSON pointers ('#/...') work so far.")
    node = document
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise DeclarationError(f"{source}: $ref '{reference}' points to nothing ('{key}' is not there).")
    return node
