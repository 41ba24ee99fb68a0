"""docs/reference.md lists every public member, and nothing that is not there."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import burler
import burler.testing
from burler import StreamRun, errors
from burler.testing import TapRun

PAGE = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")


def directives():
    """What the page lists: full name of each module, class, function and constant -> the members named with it."""
    found = {}
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\.\. ", block, flags=re.MULTILINE)[1:]:
            head, _, body = part.partition("\n")
            kind, _, name = head.partition(":: ")
            members = set()
            for given in re.findall(r"^ {3}:members:((?: .*)?(?:\n {6}\S.*)*)", body, re.MULTILINE):
                members |= set(re.findall(r"\w+", given)) or {"*"}
            for given in re.findall(r"^ {3}\.\. attribute:: (\w+(?:\n {18}\w+)*)", body, re.MULTILINE):
                members |= set(given.split())
            for each in [name, *(re.findall(r"^ {10}([\w.]+)$", body, re.MULTILINE) if kind == "data" else [])]:
                found[each] = members
    return found


LISTED = directives()


def public(cls, instance=None):
    """Methods, properties and attributes of a class without those whose names begin with '_'."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("burler.")]
    names = {name for base in ours for name in (*vars(base), *inspect.get_annotations(base))}
    names |= set(getattr(instance, "__dict__", ()))
    return {name for name in names if not name.startswith("_")}


def place(cls):
    """Where a class stands that users meet and do not import."""
    return f"{cls.__module__}.{cls.__name__}"


tap = burler.tap("tap-x")
handle = tap.stream("a", schema={"properties": {}})
handle.sync(lambda: [])
result = burler.testing.run_tap(tap).result


@pytest.mark.parametrize(
    ("listed", "cls", "instance"),
    [
        ("burler.Tap", burler.Tap, tap),
        ("burler.Stream", burler.Stream, None),
        (place(type(handle)), type(handle), handle),
        ("burler.StreamRun", StreamRun, StreamRun(tap, "a")),
        ("burler.testing.TapRun", TapRun, None),
        (place(type(result)), type(result), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_member_of_a_class_is_listed_and_no_other(listed, cls, instance):
    assert LISTED[listed] == public(cls, instance)


def test_every_public_name_is_listed():
    names = {f"burler.{name}" for name in burler.__all__} - {"burler.BurlerError"}  # that one stands among the errors
    assert names <= set(LISTED)
    assert "``burler.BurlerError``" in PAGE
    assert LISTED["burler.errors"] == {"*"}
    own = {name: value for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__}
    undocumented = [name for name, value in own.items() if inspect.isclass(value) and not value.__doc__]
    assert not undocumented


def test_every_helper_for_tests_is_listed():
    defined = {
        name
        for name, value in vars(burler.testing).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == "burler.testing"
    }
    classes = {"MemorySink", "TapRun"}
    assert LISTED["burler.testing"] | classes == defined
    assert {f"burler.testing.{name}" for name in classes} <= set(LISTED)


def test_all_that_is_listed_is_there():
    for name in LISTED:
        package, _, last = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(package), last), name
