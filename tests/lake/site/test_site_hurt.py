"""Files of a lake with anything in them: a site is made all the same, and what is wrong is said."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from site_demo import NOW, page
from site_reading import make_site

from burler.lake import LakeWriter
from burler.singer.messages import Schema

STRANGE = (
    None,
    True,
    -1,
    1.5,
    10**30,
    1e308,
    "",
    "x",
    [],
    {},
    [1],
    {"a": [None]},
    "<script>",
    "2024-13-45T99:99:99Z",
    [[[]]],
)
RUNS = int(os.environ.get("BURLER_SITE_RUNS", "25"))  # a thousand by hand
FILES = ("tap-x/users/manifest.json", "tap-x/catalogue.json", "singerlake.json")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        found += places(below, (*path, key))
    return found


def hurt(document: Any, chance: random.Random) -> Any:
    """A copy with one or two values replaced, or taken away."""
    for _ in range(chance.randint(1, 2)):
        path = chance.choice(places(document)[1:] or [()])
        copy = json.loads(json.dumps(document))
        inside = copy
        for key in path[:-1]:
            inside = inside[key]
        if path and isinstance(inside, dict) and chance.random() < 0.2:
            del inside[path[-1]]
        elif path:
            inside[path[-1]] = chance.choice(STRANGE)
        document = copy
    return document


@pytest.mark.parametrize("name", FILES)
def test_no_value_in_a_lakes_files_keeps_the_site_from_being_made(lake, tmp_path, name):
    schema = {"type": "object", "properties": {"id": {"type": "integer", "description": "Number."}}}
    for n in range(2):
        schema["properties"][f"f{n}"] = {"type": ["null", "string"], "enum": ["a", None], "maxLength": 3}
        with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
            writer.schema(Schema("users", schema, ("id",), ("id",)))
            writer.records(page("users", [{"id": n}], NOW.replace(month=1 + n)))
    path = lake.path / "raw" / name
    whole = json.loads(path.read_text())
    chance = random.Random(7)
    told = 0
    for _ in range(RUNS):
        text = json.dumps(hurt(whole, chance))
        path.write_text(text)
        site = make_site(lake.store, tmp_path / "site", samples=1)
        assert (site.counted("tap") >= 1, (tmp_path / "site" / "index.html").is_file()) == (True, True), text
        told += bool(site.problems)
    assert name == "singerlake.json" or told > RUNS // 30


def test_values_as_deep_as_json_gets_do_no_harm(lake, tmp_path):
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    schema = {"properties": {"id": {"type": "integer", "default": deep, "enum": [deep], "not": {"a": deep}}}}
    with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
        writer.schema(Schema("users", schema))
        writer.records(page("users", [{"id": deep}], NOW))
    assert make_site(lake.store, tmp_path / "site", samples=1).problems == []
