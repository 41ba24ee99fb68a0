"""Options of ``format("burler")``: what they say, and what is wrong with them, before anything runs."""

from __future__ import annotations

import apps
import pytest
from reading import rows_of, source

from burler.errors import ConfigError, UsageError
from burler.spark import reference

APP = {"app": "tap_x:tap"}


def test_names_ignore_case_and_what_spark_adds_to_tables_is_no_option(tmp_path):
    state = tmp_path / "state.json"
    state.write_text('{"bookmarks": {}}')
    given = {"App": reference(apps.tap), "STREAM": " parts ", "Fields": "id, account,,!name", "limit": "3"}
    given |= {"state": str(state), "pushDown": "TRUE", "Partitions": "no", "unknown_FIELDS": "drop"}
    rows = rows_of(**given, **{"option.app": "tap_x:tap", "owner": "me", "provider": "burler"})
    assert [list(row) for row in rows] == [["id", "account", "at"]] * 3, "keys stay"


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
        ({"exec": ""}, "is empty"),
        ({"exec": "tap-that-is-not-here --x"}, "no program 'tap-that-is-not-here'"),
    ],
)
def test_each_mistake_is_one_error_with_its_cure(options, said):
    with pytest.raises(UsageError, match=said) as told:
        source(**options).schema()
    assert len(str(told.value).splitlines()) == 1


def test_a_config_that_is_no_json_is_not_quoted():
    with pytest.raises(ConfigError) as told:
        source(app=reference(apps.tap), stream="parts", config='{"password": "hunter2hunter2"').schema()
    assert "hunter2" not in str(told.value)
