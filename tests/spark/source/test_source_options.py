"""Options of ``format("burler")``: what they say, and what is wrong with them, before anything runs."""

from __future__ import annotations

import json

import pytest

from burler.errors import ConfigError, UsageError
from support.internals import source_options

APP = {"app": "tap_x:tap"}


def test_names_ignore_case_and_values_become_types(tmp_path):
    state = tmp_path / "state.json"
    state.write_text('{"bookmarks": {}}')
    options = source_options.parse(
        {"App": "tap_x:tap", "STREAM": " users ", "Fields": "id, address.*,,!name", "limit": "3", "state": str(state)}
        | {"Catalog": '{"streams": []}', "pushDown": "TRUE", "Partitions": "no", "unknown_FIELDS": "drop"}
    )
    assert (options.app, options.exec, options.stream, options.limit) == ("tap_x:tap", None, "users", 3)
    assert options.fields == ("id", "address.*", "!name")
    assert (options.state, options.catalog) == ({"bookmarks": {}}, {"streams": []})
    assert (options.pushdown, options.partitions, options.drop_unknown) == (True, False, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "CREATE TEMPORARY VIEW"),
        ({"stream": "x"}, "one of the options 'app'"),
        ({"app": "a", "exec": "b"}, "one of the options 'app'"),
        ({**APP, "feilds": "x"}, "Did you mean 'fields'?"),
        ({**APP, "path": "x"}, "load\\(\\) takes no path"),
        ({**APP, "limit": "0"}, "above 0, not '0'"),
        ({**APP, "limit": "many"}, "above 0, not 'many'"),
        ({**APP, "pushdown": "maybe"}, "'pushdown' must be true or false, not 'maybe'"),
        ({**APP, "unknown_fields": "keep"}, "must be error or drop, not 'keep'"),
        ({**APP, "state": "/there/is/none.json"}, "option 'state': there is no file /there/is/none.json"),
        ({**APP, "catalog": "{broken"}, "option 'catalog' is not JSON"),
    ],
    ids=["none", "neither", "both", "misspelt", "path", "zero", "word", "bool", "unknown", "state", "catalog"],
)
def test_each_mistake_is_one_error_with_its_cure(options, said):
    with pytest.raises(UsageError, match=said) as told:
        source_options.parse(options)
    assert len(str(told.value).splitlines()) == 1


def test_a_config_that_is_no_json_is_not_quoted():
    options = source_options.parse({**APP, "config": '{"password": "hunter2hunter2"'})
    with pytest.raises(ConfigError) as told:
        options.config_text()
    assert "hunter2" not in str(told.value)
    assert "hunter2" not in repr(source_options.parse({**APP, "config": json.dumps({"password": "hunter2hunter2"})}))


def test_what_spark_adds_to_tables_is_no_option():
    assert (
        source_options.parse({**APP, "option.app": "tap_x:tap", "owner": "me", "provider": "burler"}).app == "tap_x:tap"
    )
