"""``tap.load_streams``: streams in modules of their own."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap

import pytest

from burler.errors import DeclarationError
from burler.testing import run_tap

COUNT = itertools.count()
SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
PLAIN = f"""
import burler

class _Base(burler.Stream):
    schema = {SCHEMA}
    def sync(self):
        yield {{"id": 1}}

class Deals(_Base):
    pass

class CallNotes(_Base):
    pass
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of given files and gives its name; what it imports is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def make(files):
        name = f"tap_made_{next(COUNT)}"
        for path, text in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text).replace("{package}", name), encoding="utf-8")
        importlib.invalidate_caches()
        return name

    yield make
    for module in set(sys.modules) - before:
        del sys.modules[module]


def app(load='tap.load_streams("{package}.streams")'):
    return f'import burler\ntap = burler.tap("tap-made")\n{load}\n'


def decorated(name="contacts"):
    return f"""
from {{package}}.app import tap

@tap.sync("{name}", schema={SCHEMA})
def rows():
    yield {{"id": 2}}
"""


def load(package, files):
    return importlib.import_module(package({"__init__.py": "", **files}) + ".app").tap


@pytest.mark.parametrize("said", ["{package}.streams", ".streams"])
def test_a_package_with_modules_of_both_kinds_at_any_depth(package, said):
    tap = load(
        package,
        {
            "app.py": app(f'tap.load_streams("{said}")'),
            "streams/__init__.py": "",
            "streams/plain.py": PLAIN,
            "streams/decorated.py": decorated(),
            "streams/deep/__init__.py": "",
            "streams/deep/more.py": decorated("leads"),
        },
    )
    assert sorted(tap.seal().streams) == ["call_notes", "contacts", "deals", "leads"]
    run = run_tap(tap)
    assert run.records("deals") == [{"id": 1}] and run.records("leads") == [{"id": 2}]


def test_order_is_that_of_the_modules_names(package):
    files = {f"streams/{letter}.py": decorated(letter) for letter in "cab"}
    tap = load(package, {"app.py": app(), "streams/__init__.py": "", **files})
    assert list(tap.seal().streams) == ["a", "b", "c"]


def test_a_single_module(package):
    tap = load(package, {"app.py": app(), "streams.py": PLAIN})
    assert list(tap.seal().streams) == ["deals", "call_notes"]


def test_classes_that_register_themselves_are_not_registered_twice(package):
    code = f"""
import burler
from {{package}}.app import tap

@tap.stream
class Deals(burler.Stream):
    schema = {SCHEMA}
    def sync(self):
        yield {{"id": 1}}
"""
    tap = load(package, {"app.py": app(), "streams.py": code})
    assert list(tap.seal().streams) == ["deals"]


@pytest.mark.parametrize("above", ['@tap.stream("given")', '@tap.stream("given").sync("rows")'])
def test_nor_those_that_have_a_name_given_above_them(package, above):
    code = f"""
import burler
from {{package}}.app import tap

{above}
class Deals(burler.Stream):
    schema = {SCHEMA}
    def sync(self):
        yield {{"id": 1}}
    rows = sync
"""
    tap = load(package, {"app.py": app(), "streams.py": code})
    assert list(tap.seal().streams) == ["given"]
    assert run_tap(tap).records("given") == [{"id": 1}]


def test_classes_that_a_module_only_imports_are_not_its_streams(package):
    tap = load(
        package,
        {
            "app.py": app(),
            "base.py": PLAIN.replace("_Base", "Shared"),
            "streams.py": "from {package}.base import Shared, Deals\nclass Leads(Shared):\n    pass\n",
        },
    )
    assert list(tap.seal().streams) == ["leads"]


def test_twice_is_once(package):
    twice = 'tap.load_streams("{package}.streams")\ntap.load_streams(".streams")'
    tap = load(package, {"app.py": app(twice), "streams/__init__.py": "", "streams/a.py": PLAIN})
    assert list(tap.seal().streams) == ["deals", "call_notes"]


def test_two_taps_load_the_same_classes(package):
    code = 'import burler\ntap = burler.tap("a")\nother = burler.tap("b")\n' + "".join(
        f'{name}.load_streams(".streams")\n' for name in ("tap", "other")
    )
    name = package({"__init__.py": "", "app.py": code, "streams.py": PLAIN})
    module = importlib.import_module(f"{name}.app")
    assert list(module.tap.seal().streams) == list(module.other.seal().streams) == ["deals", "call_notes"]


def test_json_files_count_from_the_module_of_the_stream(package):
    code = """
import burler
class Deals(burler.Stream):
    schema = burler.json_file("deals.json")
    def sync(self):
        yield {"id": 1}
"""
    tap = load(
        package,
        {"app.py": app(), "streams/__init__.py": "", "streams/a.py": code, "streams/deals.json": SCHEMA},
    )
    assert run_tap(tap).records("deals") == [{"id": 1}]


# ---- what goes wrong -----------------------------------------------------------------------------


def test_a_module_that_is_not_there(package):
    with pytest.raises(DeclarationError, match=r"app\.py:3: tap\.load_streams\('.*\.streems'\): there is no module"):
        load(package, {"app.py": app('tap.load_streams("{package}.streems")'), "streams.py": PLAIN})


def test_a_package_that_is_not_there(package):
    with pytest.raises(DeclarationError, match=r"there is no module 'no_such_package'"):
        load(package, {"app.py": app('tap.load_streams("no_such_package.streams")')})


def test_a_relative_name_outside_of_a_package():
    scope = {"__name__": "__main__", "__package__": None, "__file__": "/x/tap_y.py"}
    code = 'import burler\nburler.tap("tap-y").load_streams(".streams")'
    with pytest.raises(DeclarationError, match=r"tap_y\.py:2: .*this file is in no package; give the whole name"):
        exec(compile(code, "/x/tap_y.py", "exec"), scope)


def test_a_relative_name_that_climbs_out_of_the_package(package):
    with pytest.raises(DeclarationError, match=r"app\.py:3: tap\.load_streams"):
        load(package, {"app.py": app('tap.load_streams("....streams")')})


@pytest.mark.parametrize("given", ["", 5, None])
def test_what_is_no_name(package, given):
    with pytest.raises(DeclarationError, match=r"app\.py:3: tap\.load_streams"):
        load(package, {"app.py": app(f"tap.load_streams({given!r})")})


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("1 / 0", "division by zero"),
        ("def broken(:", "invalid syntax"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_module_that_can_not_be_imported(package, code, says, nested):
    """One error that names the call, the module and the fact."""
    files = {"streams/__init__.py": "", "streams/bad.py": code} if nested else {"streams.py": code}
    with pytest.raises(DeclarationError) as caught:
        load(package, {"app.py": app(), **files})
    text = str(caught.value)
    assert "app.py:3" in text and says in text and ("streams.bad" in text or not nested)
    assert len(text.splitlines()) <= 3


def test_a_mistake_in_a_streams_module_keeps_its_own_error(package):
    bad = 'from {package}.app import tap\n@tap.sync("a")\ndef rows(cleint): pass\n'
    with pytest.raises(DeclarationError, match="unknown parameter 'cleint'"):
        load(package, {"app.py": app(), "streams.py": bad})


@pytest.mark.parametrize("before", ["", 'tap.sync("mine", schema={})(lambda: [])\n'])
def test_a_module_without_streams(package, before):
    """Also where the tap has streams of its own: who calls load_streams expects some from there."""
    with pytest.raises(DeclarationError, match=r"found no stream\. A module declares one with the tap's decorators"):
        load(package, {"app.py": app(before + 'tap.load_streams("{package}.streams")'), "streams.py": "x = 1"})


def test_a_class_with_a_mistake(package):
    bad = PLAIN.replace("schema =", "schemas =")
    with pytest.raises(DeclarationError, match=r"Did you mean 'schema'\?"):
        load(package, {"app.py": app(), "streams.py": bad})


LOST = f"""
import burler

class Contacts(burler.Stream):
    schema = {SCHEMA}
    def snyc(self):
        yield {{"id": 1}}
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LOST, r"streams\.py:\d+: class Contacts has no method 'sync'.* It has 'snyc'\. Did you mean 'sync'\?"),
        (LOST.replace("snyc", "get_rows"), r"class Contacts has no method 'sync'; it gives the rows"),
        (LOST.replace("def snyc", "sync = None\n    def rows"), "class Contacts has no method 'sync'"),
    ],
)
def test_a_class_without_sync_is_not_lost(package, text, says):
    with pytest.raises(DeclarationError, match=says):
        load(package, {"app.py": app(), "streams.py": PLAIN + text})


@pytest.mark.parametrize("name", ["_Paged", "Paged"])
def test_a_base_without_sync_is_no_stream(package, name):
    base = f"import burler\nclass {name}(burler.Stream):\n    schema = {SCHEMA}\n    size = 3\n"
    one = f"from .base import {name}\nclass Deals({name}):\n    def sync(self):\n        yield {{'id': self.size}}\n"
    tap = load(package, {"app.py": app(), "streams/__init__.py": "", "streams/base.py": base, "streams/z.py": one})
    assert list(tap.seal().streams) == ["deals"]
    assert run_tap(tap).records("deals") == [{"id": 3}]


def test_a_class_with_a_tail_function_alone_is_a_stream_and_no_base(package):
    streams = f"""
        import burler

        class Events(burler.Stream):
            schema = {SCHEMA}
            def tail(self):
                yield {{"id": 1}}

        class Errors(Events):
            pass
        """
    name = package({"__init__.py": "", "app.py": app(), "streams.py": streams})
    specs = importlib.import_module(f"{name}.app").tap.seal().streams
    assert {stream: spec.tail is not None for stream, spec in specs.items()} == {"events": True, "errors": True}
