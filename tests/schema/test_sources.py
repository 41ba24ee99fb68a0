"""What all sources share: the folder that their paths count from, and the name that is kept for WSDL."""

from __future__ import annotations

import sys

import pytest

import burler
import burler.schema

MODULE = """\
import functools
import burler, burler.schema
from burler.schema import json_file as direct
def wrapped(path):
    return burler.json_file(path)
class Held:
    source = burler.json_file("a.json")
sources = [
    burler.json_file("a.json"), burler.schema.json_file("a.json"), direct("a.json"), wrapped("a.json"), Held.source,
    functools.partial(burler.json_file, "a.json")(), *map(burler.json_file, ["a.json"]),
    burler.inferred("a.json"), burler.schema.inferred("a.json"),
    burler.openapi("a.json", "X"), burler.schema.openapi("a.json", "X"),
]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "tap_of_paths.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    import tap_of_paths

    yield tap_of_paths
    del sys.modules["tap_of_paths"]


def test_relative_paths_count_from_the_module_that_calls(module, tmp_path):
    for source in module.sources:
        found = getattr(source, "path", None) or getattr(source, "sample", None) or source.base / source.source
        assert found == tmp_path / "there" / "a.json", source


def test_without_a_module_they_count_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"burler": burler}
    exec("source = burler.json_file('a.json')", scope)
    assert scope["source"].path == tmp_path / "a.json"


def test_a_source_of_ones_own_is_one():
    """``Source`` is what burler asks of one, no base class."""

    class Mine:
        def load(self, *, where, config):
            return {"type": "object", "properties": {"id": {"type": config["type"]}}}

    from burler.testing import run_tap

    tap = burler.tap("tap-x")
    tap.schema("a", Mine())

    @tap.sync("a")
    def a():
        yield {"id": 1}

    out = run_tap(tap, {"type": "integer"})
    assert out.messages[0]["schema"]["properties"] == {"id": {"type": "integer"}}
    assert out.records("a") == [{"id": 1}]
