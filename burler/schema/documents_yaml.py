"""YAML as JSON's data and no more: days and ``no`` stay text, keys are text, a key twice is an error."""

from __future__ import annotations

import math
import re
from typing import Any

from burler.errors import DeclarationError
from burler.extras import require

_TAG = "tag:yaml.org,2002:"
# What unquoted text means, by YAML 1.2's schema for JSON; PyYAML by itself follows 1.1.
_PLAIN = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9]\d*)", "-+0123456789"),
    ("float", r"[-+]?(\.\d+|(0|[1-9]\d*)(\.\d*)?)([eE][-+]?\d+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
)
_MOST_MERGED = 1_000_000  # keys that "<<" brings in; a few hundred bytes can ask for 10 to the 10th
_DEEPEST = 500  # levels; a schema has some ten, and PyYAML's C code dies of some ten thousand
_BRACKETS = re.compile(rb"[\[\]{}]")
_INDENTS = re.compile(rb"^ +", re.MULTILINE)
_COMPACT = re.compile(rb"(?:[-?:][ \t]+){100}")  # "- - - -": lists in lists on one line
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")


def load_yaml(content: bytes, *, named: str) -> Any:
    """The value of a YAML text. What an alias repeats is one object, not copies.

    Raises:
        DeclarationError: it is no YAML, holds what JSON has no form for, or a key twice.
        MissingExtra: PyYAML is not installed.
    """
    yaml: Any = require("yaml", extra="openapi", needed_for=f"{named} (YAML)")
    try:
        _check_depth(content, yaml, named)
        return _load(content, yaml)
    except RecursionError:
        raise DeclarationError(f"{named} is nested too deep.") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise DeclarationError(f"{named} is not YAML of JSON values: {problem}{line}.") from None


def _load(content: bytes, yaml: Any) -> Any:
    loader = _loader(yaml)(content)
    try:
        node = loader.get_single_node()
        _check_keys(node, yaml)
        return loader.construct_document(node) if node is not None else None
    finally:
        loader.dispose()


def _check_depth(content: bytes, yaml: Any, named: str) -> None:
    """Refuse what would overflow the stack of PyYAML's C code, which then takes the process with it. The marks that
    can nest are counted first; only if they may be too many are the parser's events read."""
    depth = peak = 0
    for mark in _BRACKETS.finditer(content):
        depth += 1 if mark[0] in b"[{" else -1
        peak = max(peak, depth)
    indented = max(map(len, _INDENTS.findall(content)), default=0)
    if max(peak, indented) <= _DEEPEST and _COMPACT.search(content) is None:
        return
    depth = 0
    for event in yaml.parse(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise DeclarationError(f"{named} is nested too deep.")


def _check_keys(root: Any, yaml: Any) -> None:
    """Refuse keys that stand twice, before merges ("<<") bring in others that may."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        names: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None or (name in names and key.tag != f"{_TAG}merge"):
                fact = "a key is no text" if name is None else f"the key {name!r} is there twice"
                raise yaml.MarkedYAMLError(problem=fact, problem_mark=key.start_mark)
            names.add(name)
            waiting.append(value)


def _loader(yaml: Any) -> Any:
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # some ten times as fast, if it was built

    class Loader(base):  # type: ignore[misc]
        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            """What "<<" names, put in front of a mapping's own keys, each key once."""
            parts = [value for key, value in node.value if key.tag == f"{_TAG}merge"]
            if not parts:
                return
            own = [(key, value) for key, value in node.value if key.tag != f"{_TAG}merge"]
            node.value = own  # so one that merges itself ends
            entries: dict[str, Any] = {}
            for source in reversed([each for part in parts for each in _sources(part, yaml)]):  # the first one wins
                self.flatten_mapping(source)
                self.merged += len(source.value)
                if self.merged > _MOST_MERGED:
                    problem = f"merge keys ('<<') bring in more than {_MOST_MERGED:,} values"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
                entries.update((key.value, (key, value)) for key, value in source.value)
            entries.update((key.value, (key, value)) for key, value in own)
            node.value = list(entries.values())

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            self.flatten_mapping(node)
            return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}

    Loader.yaml_implicit_resolvers = {}
    for kind, pattern, first in _PLAIN:
        letters = [letter.replace("\0", "") for letter in first]
        Loader.add_implicit_resolver(_TAG + kind, re.compile(f"(?:{pattern})$", re.ASCII), letters)
    given = yaml.SafeLoader.yaml_constructors
    Loader.yaml_constructors = {tag: given[tag] for tag in (None, *(_TAG + kind for kind in _KINDS))}
    Loader.add_constructor(
        f"{_TAG}float", lambda loader, node: _finite(given[f"{_TAG}float"](loader, node), node, yaml)
    )
    return Loader


def _sources(part: Any, yaml: Any) -> list[Any]:
    """The mappings that the value of a "<<" names."""
    sources = part.value if isinstance(part, yaml.SequenceNode) else [part]
    for source in sources:
        if not isinstance(source, yaml.MappingNode):
            problem = "'<<' takes a mapping or a list of mappings"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=source.start_mark)
    return list(sources)


def _finite(value: float, node: Any, yaml: Any) -> float:
    if not math.isfinite(value):
        problem = f"the number {node.value[:40]} is none that JSON has"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return value
