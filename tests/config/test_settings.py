"""Settings: what a config may say, null and 'for ever', limits, and what the docs show of them."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from burler.config import load
from burler.errors import ConfigError
from burler.testing import canary
from support.internals import settings

FOREVER = [None, "null", "none", "forever", " Forever "]


@pytest.mark.parametrize("value", FOREVER)
def test_retries_without_an_end(value):
    assert settings.read_settings({"tail_max_retries": value}).tail_max_retries is None


def test_retries_that_are_not_given_are_ten_and_zero_is_none_at_all():
    assert settings.read_settings({}).tail_max_retries == 10
    assert settings.read_settings({"tail_max_retries": 0}).tail_max_retries == 0
    assert settings.read_settings({"tail_max_retries": "0"}).tail_max_retries == 0
    assert settings.read_settings({"tail_max_retries": 7.0}).tail_max_retries == 7


def test_null_is_the_default_of_every_other_setting():
    others = {item.name: None for item in dataclasses.fields(settings.Settings) if item.name != "tail_max_retries"}
    assert settings.read_settings(others) == settings.Settings()


def test_the_environment_can_say_that_there_is_no_end(tmp_path):
    (tmp_path / "c.json").write_text('{"tail_max_retries": 3, "tail_max_rounds": 5, "tail": true}')
    environment = {"TAP_X_TAIL_MAX_RETRIES": "forever", "TAP_X_TAIL_MAX_ROUNDS": "none", "TAP_X_TAIL": "False"}
    loaded = load([tmp_path / "c.json"], environment=environment, tap_name="tap-x")
    got = settings.read_settings(loaded.config)
    assert (got.tail_max_retries, got.tail_max_rounds, got.tail) == (None, None, False)


def test_forever_is_a_word_for_retries_alone_and_none_may_be_a_name():
    with pytest.raises(ConfigError, match=r"setting 'tail_max_rounds' must be a whole number above 0$"):
        settings.read_settings({"tail_max_rounds": "forever"})
    with pytest.raises(ConfigError, match=r"must be a whole number above 0$"):
        settings.read_settings({"new_record_polling_interval_ms": "none"})
    assert settings.read_settings({"tap_id": "none", "metrics_file": "null"}).tap_id == "none"
    assert settings.read_settings({"metrics_file": "null"}).metrics_file == "null"


WRONG = [-1, -0.5, "-1", "x", "", " ", "nan", float("nan"), "inf", float("inf"), True, False, [], {}, "1_0", 10**400]


OBJECTS = ("batch_config", "lake_options")
NUMBERS = [
    item.name
    for item in dataclasses.fields(settings.Settings)
    if "bool" not in str(item.type) and item.name not in OBJECTS
]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_none(name):
    is_text = str(settings.Settings.__dataclass_fields__[name].type).startswith("str")
    for value in WRONG:
        if is_text and isinstance(value, str):
            continue
        with pytest.raises(ConfigError, match=f"setting '{name}' must be ") as caught:
            settings.read_settings({name: value})
        assert len(str(caught.value)) < 160  # a number of 400 digits is not shown


@pytest.mark.parametrize("value", [one for one in WRONG if one != {}], ids=repr)
def test_what_is_no_object_is_no_batch_config(value):
    with pytest.raises(ConfigError, match="batch_config must be a") as caught:
        settings.read_settings({"batch_config": value})
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize("value", [one for one in WRONG if one != {}] + ["{", "[]", "1"], ids=repr)
def test_what_is_no_object_is_no_lake_options(value):
    with pytest.raises(ConfigError, match=r"setting 'lake_options' must be a JSON object$"):
        settings.read_settings({"lake_options": value})


def test_options_of_a_lake_are_an_object_or_its_text_and_a_wrong_one_is_not_shown():
    assert settings.read_settings({"lake_options": {"key": "a", "n": 1}}).lake_options == {"key": "a", "n": 1}
    assert settings.read_settings({"lake_options": '{"anon": true}'}).lake_options == {"anon": True}
    assert settings.read_settings({"lake_options": "null"}).lake_options is None
    secret = canary("options")
    with pytest.raises(ConfigError) as caught:
        settings.read_settings({"lake_options": '{"secret": "' + secret})
    assert secret not in str(caught.value)


def test_zero_is_refused_but_where_it_means_something():
    for item in dataclasses.fields(settings.Settings):
        if str(item.type).startswith(("int", "float")):
            for zero in (0, 0.0, "0", -0.0):
                if item.name in ("max_failures", "tail_max_retries", "lock_timeout_seconds"):
                    assert getattr(settings.read_settings({item.name: zero}), item.name) == 0
                else:
                    with pytest.raises(ConfigError, match="number above 0"):
                        settings.read_settings({item.name: zero})


def test_what_a_number_with_zero_must_be_is_said():
    with pytest.raises(ConfigError, match=r"'max_failures' must be a whole number, 0 or more$"):
        settings.read_settings({"max_failures": -1})
    with pytest.raises(ConfigError, match=r"must be a whole number, 0 or more, or null or 'forever' for no end$"):
        settings.read_settings({"tail_max_retries": -1})


@pytest.mark.parametrize(
    ("name", "most"),
    [("metrics_port", 65_535), ("tail_max_seconds", 1e9), ("new_record_polling_interval_ms", 10**12)],
)
def test_the_greatest_number(name, most):
    assert getattr(settings.read_settings({name: most}), name) == most
    with pytest.raises(ConfigError, match=f"setting '{name}' must be a .*number above 0 and no more than {most:.0f}$"):
        settings.read_settings({name: most + 1})


def test_no_setting_of_time_is_more_than_a_clock_can_wait():
    for item in dataclasses.fields(settings.Settings):
        for unit, ending in ((1, "_seconds"), (1000, "_ms")):
            if item.name.endswith(ending):
                with pytest.raises(ConfigError):
                    settings.read_settings({item.name: int(threading.TIMEOUT_MAX) * unit})
    assert threading.TIMEOUT_MAX > settings.MOST_SECONDS


def test_one_value_says_what_it_must_be():
    assert settings.read_value("tail", "TRUE") is True
    assert settings.read_value("tail_max_seconds", "1.5") == 1.5
    assert settings.read_value("max_full_table_age_seconds", None) is None
    with pytest.raises(ValueError, match=r"^a number above 0$"):
        settings.read_value("max_full_table_age_seconds", None, null=False)
    with pytest.raises(ValueError, match=r"^one of full, touched$"):
        settings.read_value("state_scope", "half")


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ConfigError) as caught:
        settings.read_settings({"tail": "maybe", "metrics_port": 0, "tail_max_rounds": 1.5, "start_date": "2024-01-01"})
    assert [line.split("'")[1] for line in str(caught.value).splitlines()] == [
        "start_date",
        "tail",
        "tail_max_rounds",
        "metrics_port",
    ]


def test_the_table_of_the_docs_shows_flags_and_defaults():
    rows = settings.markdown_table().splitlines()
    assert "| `tail_max_rounds` | `--tail-max-rounds` | none | " in "".join(rows)
    assert any(row.startswith("| `page_max_rows` |  | 1000 |") for row in rows)
    assert len(rows) == 2 + len(dataclasses.fields(settings.Settings))
    assert settings.option_of("tail_max_rounds") == "--tail-max-rounds"
