"""Whatever a tap does to its config: what is saved is what the next run loads."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from burler.config import ConfigFiles, load

KEYS = st.sampled_from(["a", "b", "é", 'q"', "x y", ""])
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3))
CONFIGS = st.dictionaries(KEYS, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 1, 2, 4, "\t"])


def same(one, two):
    """Equal as JSON: 1 is not true, 1.0 is not 1; order aside."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


@given(st.lists(st.tuples(CONFIGS, INDENTS), min_size=1, max_size=3), st.lists(CONFIGS, min_size=1, max_size=3))
@example([({"a": {"b": 1}}, None), ({"a": None}, None), ({"a": {}}, None)], [{"a": {"b": 1}}, {"a": {"b": 2}}])
def test_what_is_saved_is_what_is_loaded(files, steps):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, (content, indent) in enumerate(files):
            path = Path(folder) / f"{i}.json"
            path.write_text(json.dumps(content, indent=indent, ensure_ascii=bool(i % 2)))
            paths.append(path)
        loaded = load(paths, environment={}, tap_name="tap-x")
        config = copy.deepcopy(loaded.config)
        keeper = ConfigFiles(loaded, config)
        for step in steps:
            changed = not same(config, step)
            config = copy.deepcopy(step)
            assert keeper.save_if_changed(config) == changed
            assert same(load(paths, environment={}, tap_name="tap-x").config, config)
        assert sorted(item.name for item in Path(folder).iterdir()) == [path.name for path in paths]
