"""The texts of errors and warnings as they stand in the code, with ``{name}`` for what differs each time."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from burler import errors

PACKAGE = Path(errors.__file__).parent
CLASSES = {
    name: cls for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, errors.BurlerError)
}
"""Name of each error class -> the class, in the order of the module."""
_GATHERED = ("problems", "gaps", "faults", "wrong")
"""Lists in which a function gathers what one error then says."""
_LEAST_WORDS = 3
_NOT_SAID = ("scaffold", "settings.py", "measures.py")
"""What these hold has pages of its own."""
_NO_ERRORS = ("info", "debug", "option", "argument", "field", "compile")
"""Calls whose texts are no part of an error."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text.

    Attributes:
        kind: the error's class, or "warning".
        area: the package of burler (``http``), or the module where it stands alone (``extras``).
        text: with ``{name}`` where something is put in, and line breaks.
    """

    kind: str
    area: str
    text: str


@dataclass(slots=True)
class _Module:
    """What a text may be made of, in one module: constants, functions, values of names inside of functions."""

    area: str
    constants: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


@functools.cache
def texts() -> tuple[Text, ...]:
    """All of them, each once, in the order of the files."""
    found: dict[Text, None] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        within = path.relative_to(PACKAGE).parts
        area = within[0] if len(within) > 1 else path.stem
        for text in _of_module(ast.parse(path.read_text(encoding="utf-8")), _Module(area)):
            if _says_something(text.text):
                found.setdefault(text)
    return tuple(found)


@functools.cache
def parts() -> tuple[Text, ...]:
    """Further sentences of the code: reasons, cures and words that an error, a warning or a table puts together."""
    whole = "\n".join(text.text for text in texts())
    found: dict[Text, None] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        within = path.relative_to(PACKAGE).parts
        if within[0] in _NOT_SAID or path.name.startswith("rules_"):
            continue
        area = within[0] if len(within) > 1 else path.stem
        for text in _sentences(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                _says_something(text)
                and text.count(" ") > 1
                and "<" not in text
                and text not in whole
                and _is_plain(text)
            ):
                found.setdefault(Text("part", area, text))
    return tuple(found)


def _is_plain(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


def _sentences(tree: ast.Module) -> Iterator[str]:
    """What stands in quotes, but for docstrings, help of options, log lines below WARNING and patterns."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in left_out:
            left_out.update(map(id, ast.iter_child_nodes(node)))
            continue
        match node:
            case ast.JoinedStr():
                left_out.update(map(id, node.values))
                yield "".join(map(_part, node.values)).strip()
            case ast.Constant(value=str(text)):
                yield _percent(text).strip()
            case ast.Expr(value=ast.Constant()):
                left_out.add(id(node.value))
            case ast.FunctionDef() | ast.ClassDef():
                left_out.update(map(id, node.decorator_list))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _NO_ERRORS:
                left_out.add(id(node))
                left_out.update(map(id, ast.iter_child_nodes(node)))


def _says_something(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", "", text))) >= _LEAST_WORDS


def _of_module(tree: ast.Module, module: _Module) -> Iterator[Text]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            module.constants[node.targets[0].id] = node.value
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    module.functions.update((node.name, node) for node in functions)
    for function in [tree, *functions]:
        local = _values(function)
        for node in _own_nodes(function):
            if isinstance(node, ast.Call):
                for kind, value in _said_by(node):
                    for text in _variants(value, module, local, depth=3):
                        yield Text(kind, module.area, text)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside of it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


def _values(function: ast.AST) -> dict[str, list[ast.expr]]:
    """What the names of a function are set to in it."""
    found: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def _said_by(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call says to the user: an error made, a warning logged, a problem gathered."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in CLASSES and call.args:
        streams = issubclass(CLASSES[name], errors.StreamError)  # these take the stream's name first
        yield name, call.args[1] if streams and len(call.args) > 1 else call.args[0]
    elif name == "warning" and call.args:
        yield "warning", call.args[0]
    elif name == "append" and call.args and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if getattr(owner, "id", getattr(owner, "attr", "")) in _GATHERED:
            yield "gathered", call.args[0]


def _variants(node: ast.expr, module: _Module, local: dict[str, list[ast.expr]], depth: int) -> list[str]:
    """The texts that an expression may give; none, where they are not written there."""
    match node:
        case ast.Constant(value=str(text)):
            return [_percent(text)]
        case ast.JoinedStr():
            return ["".join(_part(part) for part in node.values)]
        case ast.IfExp():
            return _variants(node.body, module, local, depth) + _variants(node.orelse, module, local, depth)
        case ast.BinOp(op=ast.Add()):
            left = _variants(node.left, module, local, depth) or ["{...}"]
            right = _variants(node.right, module, local, depth) or ["{...}"]
            return [before + after for before in left for after in right]
        case ast.Name() if depth:
            values = local.get(node.id) or [module.constants[node.id]] if node.id in {*local, *module.constants} else []
            return [text for value in values for text in _variants(value, module, local, depth - 1)]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if depth and name in module.functions:
            function = module.functions[name]
            inside = _values(function)
            returns = [each.value for each in _own_nodes(function) if isinstance(each, ast.Return) and each.value]
            return [text for value in returns for text in _variants(value, module, inside, depth - 1)]
        case ast.Call(func=ast.Name(id="clean" | "scrub" | "Clean"), args=[first, *_]):
            return _variants(first, module, local, depth)
    return []


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    inside = part.value if isinstance(part, ast.FormattedValue) else part
    while isinstance(inside, ast.Call) and inside.args and not isinstance(inside.func, ast.Attribute):
        inside = inside.args[0]  # str(path), shown(path)
    if isinstance(inside, ast.Name):
        return f"{{{inside.id.strip('_')}}}"
    if isinstance(inside, ast.Attribute):
        return f"{{{inside.attr.strip('_')}}}"
    return "{...}"


def _percent(text: str) -> str:
    """A text of a log call, with ``{...}`` for ``%s``."""
    return re.sub(r"%(?:\.\d+)?[sdrf]", "{...}", text).replace("%%", "%")
