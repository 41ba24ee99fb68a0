"""The rule for regular expressions of others: what Python's engine gets, what RE2 gets, and that both say the same."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import burler
from burler.config import mask
from burler.errors import ConfigError, DeclarationError
from burler.testing import run_tap
from support.taps import warnings

EMAIL = r"^\w+([.-]?\w+)*@\w+([.-]?\w+)*(\.\w{2,3})+$"

ORDINARY = {
    r"^[A-Z]{2}$": ["DE", "D"],
    r"^\d{4}-\d{2}$": ["2024-01", "2024-1"],
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$": ["123e4567-e89b-12d3-a456-426614174000", "x"],
    r"^https?://\S+$": ["https://example.com/a", "ftp://x"],
    r"^\+?[1-9]\d{1,14}$": ["+4912345", "0"],
    r"^[a-z0-9]+(?:-[a-z0-9]+)*$": ["a-slug-1", "a--b"],
    r"^(?:\d{1,3}\.){3}\d{1,3}$": ["10.0.0.1", "10.0.1"],
    r"^(?!\s*$).+": ["a", "  "],
    r"^(?=.*\d)(?=.*[a-z]).{8,}$": ["abcdefg1", "abcdefgh"],
    r"^(new|open|closed)$": ["open", "shut"],
    r"^\d{4}-(0[1-9]|1[0-2])-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$": ["2024-01-02", "2024-13-02"],
    r"\S": ["x", " "],
    "": ["", "x"],
}
"""Patterns as they stand in schemas, each with a text that fits."""

MAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"


def tap_of(pattern: str) -> burler.Tap:
    """A tap whose config is held against a pattern."""
    spec = {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}
    tap = burler.tap("tap-x", config_spec=spec)
    tap.sync("rows", schema={"properties": {"id": {}}})(lambda: [])
    return tap


def fits(tap: burler.Tap, text: str) -> bool:
    try:
        run_tap(tap, {"text": text})
    except ConfigError as error:
        assert "must match the pattern" in str(error)
        return False
    return True


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said of texts that are not checked."""
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def seconds_of(pattern: str, text: str) -> float:
    tap = tap_of(pattern)
    began = time.thread_time()
    fits(tap, text)
    return time.thread_time() - began


@pytest.mark.parametrize("pattern", [*ORDINARY, MAIL])
def test_ordinary_patterns_take_and_refuse_what_python_does_whatever_the_length(pattern, caplog):
    good, bad = ORDINARY.get(pattern, ["ada@example.com", "ada@" + "." * 100_000 + " "])
    tap = tap_of(pattern)
    assert fits(tap, good)
    assert fits(tap, bad) is bool(pattern != MAIL and re.search(pattern, bad))
    if pattern == MAIL:
        assert fits(tap, "ada@" + "example." * 10_000 + "com")
    assert told(caplog) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 40 + "!"),
        ("^(a|a)*$", "a" * 40 + "!"),
        ("^(a|ab|b)*$", "ab" * 40 + "!"),
        ("^(a*)*$", "a" * 40 + "!"),
        ("^([a-z]+ ?)+$", "a" * 40 + "!"),
        ("(x+x+)+y", "x" * 40),
        (EMAIL, "a" * 40),
        (EMAIL, "é" * 400),
        (MAIL, "a@" + "." * 1_000_000 + " "),
        ("a*b", "a" * 1_000_000),
        (r"\s+$", " " * 1_000_000 + "x"),
        (r".*\S.*", " " * 1_000_000),
        (r"^(.*,){5}x", "," * 1_000_000),
        (r"(?:a?){30}a{30}", "a" * 29),
        ("^(?:a{1,60}){1,60}$", "a" * 200 + "!"),
        (r"^(\w+\s)*\1$", "word " * 1_000),
        (r"(?=(a+)+$)", "a" * 40 + "!"),
        ("a*a*a*a*b", "a" * 100_000),
        ("a?" * 30 + "a" * 30, "a" * 29),
        ("^(?:a?b?c?d?e?f?){64}$", "abcdef" * 60 + "!"),
        ("^(?:(?:^|)){30}b", "a"),
        ("^(?:(?:^|){5}){5}b", "a"),
        ("(?:(a+)+b)*", "a" * 40),
        ("(.*)*x", "a" * 100_000),
        (r"^(?:\w+\s?)*$", "word " * 100_000 + "!"),
        (r"^(?:(?=.*x)a)*$", "a" * 100_000),
        (r"(\w+)\s\1", "a " * 100_000),
        (r"^((.){2}){2,}", "a" * 4_000_000),
        (r"(?:[a-q][^u-z]{13}x|a[ab]{0,500}c|b[ab]{500}d)", "ab" * 500_000),
    ],
)
def test_no_pattern_holds_the_interpreter_for_a_second(pattern, text):
    assert seconds_of(pattern, text) < 2  # a second on a quiet machine


@pytest.mark.parametrize(
    "pattern", ["((((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}){1,1000})", "(" * 99 + "a" + "+)" * 99]
)
def test_repeats_in_repeats_are_read_at_once(pattern):
    began = time.thread_time()
    assert fits(tap_of(pattern), "b" * 1_000) in (True, False)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("pattern", "gap"),
    [
        (
            r"^(a+)+\1$",
            "no text is held against it: Python could take hours for that, and RE2, which never does, "
            "has no references to groups. Write it without that, or without a repeat in a repeat.",
        ),
        (r"^(?=(a+)+$)", "no text is held against it"),
        (r"(?=.*x).*y", "no text of more than 1195 characters is held against it"),
        (r"^(\ba+)+$", r"RE2, which never does, has another \b, another (?m), and another $ before the end."),
        (r"(?i)^(?:a+\b)+$", "has another \\b"),
        (r"^(a+)+$b?", "another $ before the end. Write it"),
        (
            r"^((a+)+b){1,2000}$",
            "refuses it (invalid repetition size: {1,2000}). Write it with fewer and smaller repeats.",
        ),
    ],
)
def test_what_is_not_checked_is_said_with_the_reason(pattern, gap, caplog):
    fits(tap_of(pattern), "a")
    assert gap in "".join(told(caplog))


def test_a_text_that_no_engine_may_take_passes_and_is_told_once(caplog):
    tap = tap_of(r"(?=.*[xX]).*[yY]")
    assert not fits(tap, "a" * 100)
    assert fits(tap, "a" * 1_000_000)
    assert fits(tap, "a" * 2_000_000)
    [said] = told(caplog)
    assert "pattern '(?=.*[xX]).*[yY]': no text of more than " in said


def test_what_is_no_regular_expression_is_one_kind_of_error():
    for broken in ("(", "[z-a]", "a{9999999999999}", "(" * 5_000 + ")" * 5_000):
        with pytest.raises(DeclarationError, match="is no regular expression"):
            fits(tap_of(broken), "a")


def test_msgspec_measures_a_text_before_it_runs_the_pattern():
    """So a text that is too long for Python's engine never gets there."""
    kind = msgspec.Meta(pattern=r"^(a+)+$", max_length=20)
    began = time.thread_time()
    with pytest.raises(msgspec.ValidationError, match="of length <= 20"):
        msgspec.convert("a" * 40 + "!", Annotated[str, kind])
    assert time.thread_time() - began < 1


# ---- both engines say the same ---------------------------------------------------------------------

LETTERS = "ab-_1 \n\t\x1c\r.éßİı٣²K😀"
ATOMS = [
    *("a", "b", "-", "1", " ", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", ".", "[ab]", "[^a]", r"[\w-]", r"[^\d\s]"),
    *("(?i:b)", "(?i:k)", "(?i:[^a])", "(?i:ß)", "(?i:[i-k])", r"(?a:\w)"),
    *("é", "[à-ÿ]", r"\n", r"\x41", "[a-c1]", r"\.", r"[\D]", r"[^\n]", "ß", "٣", r"\u0130", "[]a]", "😀", r"[^\W\d_]"),
]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "*?", "+?", "??"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]}|)"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda two: f"({two[0]}){two[1]}"),
        st.tuples(st.sampled_from(["(?s:{})", "(?m:^{})", "(?m:{}$)", "^{}", r"{}\Z"]), inner).map(
            lambda two: two[0].format(two[1])
        ),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), larger, max_leaves=8)


@given(PATTERNS, st.sampled_from(["{}", "^{}", "{}$", "^{}$"]), st.lists(st.text(LETTERS, max_size=8), min_size=3))
def test_re2_says_what_python_says(pattern, around, texts):
    """With what stands in front no text is Python's: it could take for ever."""
    whole = f"(?:a*)*{around.format(pattern)}"
    with warnings() as said:
        tap = tap_of(whole)
        found = [fits(tap, text) for text in texts]
    assume(not said)  # RE2 has no words for it, and all texts pass
    assert found == [bool(re.search(whole, text)) for text in texts]


PIECES = [
    "a",
    "b",
    "-",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    "a{1,40}",
    "[ab]{2,30}",
    ".*",
    "a*",
    "b+",
    r"[^-]+",
    r"(?:-|$)",
    r"(?:^|b)",
    r"\s*",
    r"\b",
    "(?=.*b)",
    "(?!ab)",
]


def repeated(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from([*QUANTIFIERS, "{0,20}", "*+"])).map(lambda two: f"({two[0]}){two[1]}"),
    )


@given(
    st.recursive(st.sampled_from(PIECES), repeated, max_leaves=8),
    st.sampled_from(["{}", "^{}", "{}$", "^{}$", "^{}x", r"{}x$"]),
    st.sampled_from(["a", "ab", "aab", "a-", "-", "abb-", "a\n"]),
    st.sampled_from(["", "y", "\n", "-"]),
)
def test_no_text_of_any_length_takes_more_than_a_second(pattern, around, unit, end):
    tap = tap_of(around.format(pattern))
    for length in (30, 300, 3_000, 30_000):
        began = time.thread_time()
        fits(tap, (unit * length)[: length - 1] + end)
        assert time.thread_time() - began < 1


# ---- burler's own expressions, on texts of others ----------------------------------------------------


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails where it takes longer: Python's engine looks for signals now and then."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError(f"it takes longer than {seconds} s")

    gc.disable()  # the collector of a long run of tests takes its time, too, and swallows what is raised in it
    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()


SHORT = {
    "batch.message._LIKE_A_VALUE": "what a config says of CSV",
    "batch.storage.NAME": "names of files",
    "storage.location._SCHEME": "addresses of a config",
    "records.columns.converters._STRING": "rows that are JSON: no text of them begins with a backslash",
    "lake.clean._TEXT": "rows that are JSON: no text of them begins with a backslash",
}
"""Expressions that take longer with the length of a text, and why theirs are short or of another kind."""

UNITS = ["a", "0", " ", '"', '\\"', "://a:", ".", "-", ",", "é", "{", "a ", "/"]


def own_expressions() -> Iterator[tuple[str, re.Pattern, str]]:
    """Each expression of burler's modules, by its name, with each way in which it is used."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(burler.__file__).parent.rglob("*.py"))
    ways = set(re.findall(r"\b(_?[A-Z][A-Z_0-9]*)\.(search|fullmatch|match|sub|finditer|findall|split)\b", code))
    for found in pkgutil.walk_packages(burler.__path__, "burler."):
        if not found.name.endswith(("__main__", "pytest_plugin")):
            for name, value in vars(importlib.import_module(found.name)).items():
                if isinstance(value, re.Pattern):
                    full = f"{found.name}.{name}".removeprefix("burler.")
                    yield from ((full, value, way) for known, way in ways if known == name)
                elif isinstance(value, str) and name.isupper() and r"\d\d" in value:  # compiled when it is asked for
                    yield f"{found.name}.{name}", re.compile(value, re.ASCII), "fullmatch"


def test_no_expression_of_burlers_own_is_held_up_by_what_others_write():
    looked_at, slow = 0, []
    for name, pattern, way in own_expressions():
        if name in SHORT:
            continue
        looked_at += 1
        for unit in UNITS:
            text = (unit * 30_000)[:30_000] + "!"
            given = text.encode() if isinstance(pattern.pattern, bytes) else text
            try:
                with within(1):
                    found = getattr(pattern, way)(*([given[:0]] if way == "sub" else []), given)
                    list(found or [] if way == "finditer" else [])
            except AssertionError:
                slow.append((name, way, unit))
    assert looked_at > 150
    assert slow == []


def test_a_value_that_is_masked_is_gone_through_once():
    with within(1):
        assert mask("://a:" * 20_000) == "://a:" * 20_000


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgres://ada:s3cret@db/x", "postgres://ada:***@db/x"),
        ("postgres://ada:p@ss:w@db/x", "postgres://ada:***@db/x"),
        ("http://host:80/ then postgres://ada:s3cret@db", "http://host:80/ then postgres://ada:***@db"),
        ("a://b:c d://e:fghi@j", "a://b:c d://e:***@j"),
        ("a://b:c,d://e:fghi@j", "a://b:***@j"),
        ("a://b:c", "a://b:c"),
    ],
)
def test_passwords_in_urls_are_found_as_before(text, masked):
    assert mask(text) == masked


def test_a_dollar_stands_before_the_last_line_end_of_a_long_text_too():
    """Python's engine is given none of these: RE2 has to say the same."""
    tap, long = tap_of("^(a+)+$"), "a" * 100_000
    assert fits(tap, long) and fits(tap, long + "\n")
    assert not fits(tap, long + "\n\n") and not fits(tap, long + "\nb")
