"""docs/config.md: every snippet runs, and does what the text beside it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from burler.config import parse_spec
from burler.errors import ConfigError

TEXT = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
GOOD = {"base_url": "https://x", "access_token": "t", "pages": 5, "db": {"host": "h"}, "tags": ["a"]}


def test_every_snippet_with_a_tap_declares_one_that_takes_a_good_config(tmp_path):
    (tmp_path / "config.sample.json").write_text('{"access_token": "x", "pages": 1}')
    scope: dict = {}
    forms = []
    for block in BLOCKS[:-1]:
        exec(compile(block, "docs/config.md", "exec", dont_inherit=True), scope)
        tap = scope["tap"]
        forms.append(parse_spec(tap.config_spec, place="docs", folder=tmp_path))
    assert len(forms) == 8
    for form in forms:
        checked = form.check({key: GOOD[key] for key in GOOD if key in form.keys or not form.keys}, tap_name="tap-crm")
        assert checked.get("pages", 5) == 5
        with pytest.raises(ConfigError, match=r"^tap-crm: "):
            form.check({"pages": "x"}, tap_name="tap-crm")
    assert forms[3].check(GOOD, tap_name="t")["db"] == {"host": "h", "port": 5432}
    assert forms[3].secret_paths == forms[5].secret_paths == {("access_token",)}


def test_the_error_that_is_shown_is_the_one_that_comes():
    spec = {"access_token": "x", "db": {"host": "x"}, "pages": 1}
    with pytest.raises(ConfigError) as caught:
        parse_spec(spec, place="p", folder=None).check({"db": {}, "pages": "x"}, tap_name="tap-crm")
    shown = re.search(r"    \S+Z CRITICAL (.*\n.*)\n", TEXT)[1].replace("\n    ", "\n")
    assert str(caught.value) == shown


def test_the_last_snippet_saves_a_token(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text('{"access_token": "old", "more": 1}')
    exec(compile(BLOCKS[-1], "docs/config.md", "exec", dont_inherit=True), {})
    assert json.loads(Path("config.json").read_text()) == {"access_token": "refreshed", "more": 1}
