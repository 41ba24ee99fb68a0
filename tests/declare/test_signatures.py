"""Options and functions stand in tables that checks and errors are made from; signatures are written out beside them,
for type checkers and editors. What one of them knows, the other knows."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
import typing

import pytest

import burler
from burler.errors import DeclarationError

OPTIONS = typing.get_args(typing.get_type_hints(burler.Tap.sync)["options"])[0]
TYPES = typing.get_type_hints(OPTIONS)
WORDS = {
    name: [
        word for part in typing.get_args(kind) if typing.get_origin(part) is typing.Literal for word in part.__args__
    ]
    for name, kind in TYPES.items()
}
HANDLE = type(burler.tap("tap-x").stream("a"))
HOOKS = ("sync", "bookmark", "schema", "metadata", "post_transform", "partitions", "tail", "wake", "acknowledge", "ack")
BESIDE = {"tail": {"overlap": "overlap"}, "partitions": {"order": "partition_order", "key": "partition_key"}}
"""What is said beside a function: in its decorator, and as an attribute of a class."""


def refused(fn):
    with pytest.raises(DeclarationError) as caught:
        fn()
    return str(caught.value)


def named(**options):
    return lambda: burler.tap("tap-x").stream("a", **options)


def test_signatures_have_the_options_of_the_table():
    assert refused(named(no_such_option=1)).partition(" Options: ")[2] == f"{', '.join(TYPES)}."
    for fn in (burler.Tap.stream, burler.Tap.tail, HANDLE.sync, HANDLE.tail, HANDLE.substream):
        assert typing.get_args(typing.get_type_hints(fn)["options"]) == (OPTIONS,)
    assert re.findall(r"^ {8}(\w+): ", OPTIONS.__doc__, re.MULTILINE) == list(TYPES)


def test_classes_have_the_attributes_of_the_table():
    tree = ast.parse(textwrap.dedent(inspect.getsource(burler.Stream)))
    typed = {node.target.id for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    beside = {attribute for attributes in BESIDE.values() for attribute in attributes.values()}
    methods_too = {"schema", "setup_retry", "partition_key"}
    assert typed - {"name", "names", "emits"} == {*TYPES, *beside} - methods_too


@pytest.mark.parametrize("option", TYPES)
def test_an_option_takes_what_its_type_says(option):
    if types.NoneType in typing.get_args(TYPES[option]):
        named(**{option: None})()
    else:
        assert option in refused(named(**{option: None}))
    for word in WORDS[option]:
        named(**{option: word})()
    if WORDS[option]:
        assert refused(named(**{option: "zzz"})).endswith(
            f"{option} 'zzz' is unknown. Known: {', '.join(WORDS[option])}."
        )
    if bool in typing.get_args(TYPES[option]):
        assert f"{option} must be True or False, not 'zzz'." in refused(named(**{option: "zzz"}))


@pytest.mark.parametrize("hook", HOOKS)
def test_each_style_has_each_function(hook):
    """With the same parameters, and the same options beside it."""
    fn = eval("lambda zzz: 1")
    tap = burler.tap("tap-x")
    allowed = [
        refused(lambda: getattr(tap, hook)("a")(fn)),
        refused(lambda: getattr(tap.stream("a"), hook)(fn)),
        refused(lambda: tap.stream(type("A", (burler.Stream,), {"sync": lambda self: 1, hook: staticmethod(fn)}))),
    ]
    (known,) = {text.partition(" It may ask for ")[2] for text in allowed}
    said = inspect.getdoc(getattr(burler.Tap, hook))
    assert known and (hook == "ack" or all(re.search(rf"\b{one}\b", said) for one in re.findall(r"\w+", known)))
    for owner in (burler.Tap, HANDLE):
        parameters = inspect.signature(getattr(owner, hook)).parameters.values()
        assert {one.name for one in parameters if one.kind is one.KEYWORD_ONLY} == set(BESIDE.get(hook, ()))


@pytest.mark.parametrize(("hook", "argument"), [(hook, argument) for hook in BESIDE for argument in BESIDE[hook]])
def test_what_is_said_beside_a_function_is_an_attribute_of_a_class(hook, argument):
    tap = burler.tap("tap-x")
    cls = type("A", (burler.Stream,), {"sync": lambda self: 1, BESIDE[hook][argument]: 5})
    ways = [lambda: getattr(tap, hook)("a", **{argument: 5})(lambda: [1]), lambda: tap.stream(cls)]
    one, other = (refused(way).partition("): ")[2] for way in ways)
    assert one == other and " 5" in one
