"""Chains that name their functions as text: looked for when the tap starts, in the module that says them."""

from __future__ import annotations

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

INTEGER = {"type": "integer"}
SCHEMA = {
    "type": "object",
    "properties": {"id": INTEGER, "at": {"type": "string", "format": "date-time"}, "n": INTEGER},
}


def in_a_module(code: str, tap) -> dict:
    """Run code as a module of its own, as text names are looked up in the module that says them."""
    scope = {
        "__name__": "tap_module",
        "__file__": "/somewhere/tap_module.py",
        "tap": tap,
        "burler": burler,
        "S": SCHEMA,
    }
    exec(compile(code, "/somewhere/tap_module.py", "exec"), scope)
    return scope


def test_chains_of_names_that_are_defined_later():
    tap = burler.tap("tap-x")
    in_a_module(
        """
thing = tap.stream("thing", schema=S).sync("sync_a_thing")
thing.substream("child", schema=S).sync("get_child_for_thing", key_properties="id")

def sync_a_thing(): yield {"id": 3}
def get_child_for_thing(parent): yield {"id": parent["id"] + 1}
""",
        tap,
    )
    run = run_tap(tap)
    assert run.records("thing") == [{"id": 3}] and run.records("child") == [{"id": 4}]
    assert tap.seal().streams["child"].key_properties == ("id",) and tap.seal().streams["thing"].sync.names == ()


def test_a_chain_in_one_line():
    tap = burler.tap("tap-x")
    in_a_module(
        """
tap.stream("thing", schema=S).sync("sync_a_thing").substream("child", schema=S).sync("get_child")
def sync_a_thing(): yield {"id": 3}
def get_child(parent): yield {"id": parent["id"] + 1}
""",
        tap,
    )
    assert run_tap(tap).records("child") == [{"id": 4}]


def test_a_chain_above_a_class_names_its_method():
    tap = burler.tap("tap-x")
    in_a_module(
        """
@tap.stream("thing", schema=S).sync("sync_a_thing")
class Things:
    def sync_a_thing(self, stream):
        yield {"id": len(stream.name)}
""",
        tap,
    )
    assert run_tap(tap).records("thing") == [{"id": 5}]


def test_what_the_class_below_a_chain_says_counts():
    tap = burler.tap("tap-x")
    in_a_module(
        """
@tap.stream("thing").sync("sync_a_thing", replication_key="id")
class Things(burler.Stream):
    key_properties = "id"
    schema = S

    def sync_a_thing(self):
        yield {"id": 5}

    def post_transform(self, record):
        record["n"] = 1
        return record
""",
        tap,
    )
    assert tap.seal().streams["thing"].key_properties == ("id",)
    assert run_tap(tap).records("thing") == [{"id": 5, "n": 1}]


def test_a_chain_above_a_class_names_its_static_method():
    tap = burler.tap("tap-x")
    in_a_module(
        """
@tap.stream("thing", schema=S).sync("rows")
class Things:
    @staticmethod
    def rows(stream):
        yield {"id": len(stream.name)}
""",
        tap,
    )
    assert run_tap(tap).records("thing") == [{"id": 5}]


def test_a_chain_above_a_class_whose_method_lacks_self():
    code = '@tap.stream("thing", schema=S).sync("rows")\nclass Things:\n    def rows(stream): pass'
    with pytest.raises(DeclarationError, match=r"tap_module\.py:3: Things\.rows needs 'self' as its first parameter"):
        in_a_module(code, burler.tap("tap-x"))


def test_a_chain_above_a_function_does_not_lose_it():
    tap = burler.tap("tap-x")
    with pytest.raises(DeclarationError, match="has a sync function already"):
        in_a_module('@tap.stream("thing", schema=S).sync("sync_a_thing")\ndef other(): yield {"id": 1}', tap)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            'tap.stream("thing", schema=S).sync("sync_a_thnig")\ndef sync_a_thing(): pass',
            "Did you mean 'sync_a_thing'?",
        ),
        ('tap.stream("thing", schema=S).sync("nothing_like_it")', "no function 'nothing_like_it' in this module."),
        ('tap.stream("thing", schema=S).sync("x")\nx = 5', "must be a function, not int"),
        ('tap.stream("thing", schema=S).sync("x")\ndef x(cleint): pass', "unknown parameter 'cleint'"),
    ],
)
def test_a_chain_that_names_nothing_is_a_gap(code, says):
    tap = burler.tap("tap-x")
    in_a_module(code, tap)
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    assert says in str(caught.value) and "'thing'" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_chain_above_a_class_without_that_method():
    tap = burler.tap("tap-x")
    with pytest.raises(DeclarationError, match=r"stream 'thing' \(.*:1\): class Things has no 'sync_a_thing'"):
        in_a_module('@tap.stream("thing", schema=S).sync("sync_a_thing")\nclass Things: pass', tap)
