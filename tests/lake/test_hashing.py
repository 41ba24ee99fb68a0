"""The canonical SCHEMA line, its hash and its alias."""

from __future__ import annotations

import copy
import json
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import MessageError
from burler.singer.messages import Schema
from support.internals import hashing

GOLDEN = (
    b'{"key_properties":["id"],"schema":{"properties":{"id":{"type":"integer"}},"required":["id"],'
    b'"type":"object"},"stream":"users","type":"SCHEMA"}'
)
USERS = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def test_golden_line_and_hash() -> None:
    line = hashing.schema_line(Schema("users", USERS, ("id",)))
    assert line == GOLDEN
    assert hashing.schema_hash(line) == "GkZ4VgVbUrW"
    assert hashing.schema_hash(line, "base85") == "UMnRs&Xg$g"


VECTORS = {
    "": 11160318154034397263,
    "a": 12917804110809363939,
    "abc": 2640714258260161385,
    "alphabet": -2427165924636348523,
    "1footrue": -1541654101129638711,
    "2applefalse": 2794438866806483259,
    "3true": -4880158226897771312,
    "Amazon Redshift": 8085098817162212970,
}
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def spelled(fingerprint: int) -> str:
    """Eleven digits of base58."""
    number = fingerprint % 2**64
    return "".join(BASE58[number // 58**place % 58] for place in reversed(range(11)))


def test_hashes_are_published_fingerprints() -> None:
    for text, fingerprint in VECTORS.items():
        assert hashing.schema_hash(text.encode()) == spelled(fingerprint)


def test_hashes_of_every_length_agree_with_the_original() -> None:
    oracle = pytest.importorskip("farmhash").fingerprint64
    source = random.Random(14)
    for size in [*range(701), 4096, 4097, 65536, 100001]:
        data = source.randbytes(size)
        assert hashing.schema_hash(data) == spelled(oracle(data)), size


@given(st.binary(max_size=300))
def test_hashes_of_any_bytes_agree_with_the_original(data: bytes) -> None:
    assert hashing.schema_hash(data) == spelled(pytest.importorskip("farmhash").fingerprint64(data))


def test_bookmark_properties_only_where_there_are_some() -> None:
    assert b"bookmark_properties" not in hashing.schema_line(Schema("s", {}))
    assert hashing.schema_line(Schema("s", {}, (), ("at",))).startswith(b'{"bookmark_properties":["at"],')


def test_key_order_counts_for_nothing_and_type_order_for_something() -> None:
    one = hashing.schema_line(Schema("s", {"a": 1, "b": {"d": 1, "c": 2}}))
    assert one == hashing.schema_line(Schema("s", {"b": {"c": 2, "d": 1}, "a": 1}))
    assert hashing.schema_line(Schema("s", {"type": ["null", "string"]})) != hashing.schema_line(
        Schema("s", {"type": ["string", "null"]})
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (-3.0, "-3"),
        (2.0**53 - 1, "9007199254740991"),
        (2.0**53, "9007199254740992.0"),
        (1e22, "1e+22"),
        (0.1, "0.1"),
        (1e-38, "1e-38"),
        (9223372036854775807, "9223372036854775807"),
        (-(10**40), "-1" + "0" * 40),
        (True, "true"),
        (None, "null"),
        (Decimal("1.0"), "1"),
        (Decimal("-0.00"), "0"),
        (Decimal("0.10"), "0.1"),
        (Decimal("-1.50E+3"), "-1500"),
        (Decimal("1E+2"), "100"),
        (Decimal("1E-38"), "1e-38"),
        (Decimal("9223372036854775807"), "9223372036854775807"),
        (Decimal("12345678901234567890.123"), "12345678901234567890.123"),
        (Decimal("-0.12345678901234567890123"), "-0.12345678901234567890123"),
        (Decimal("1E-999"), "1e-999"),
        (Decimal("1.25E+999999"), "1.25e+999999"),
        ('é\u2028"\\\n', '"é\u2028\\"\\\\\\n"'),
        (("a", 1), '["a",1]'),
    ],
)
def test_values(value: object, text: str) -> None:
    assert hashing.canonical_bytes(value).decode() == text


def test_keys_are_sorted_by_code_point() -> None:
    assert (
        hashing.canonical_bytes({"\U0001f600": 1, "\uffff": 2, "a": 3}).decode() == '{"a":3,"\uffff":2,"\U0001f600":1}'
    )


@pytest.mark.parametrize("number", ["0.01", "1e-38", "1E2", "1.0", "100", "9007199254740993", "0.3", "1e400"])
def test_a_schema_hashes_alike_however_its_numbers_were_parsed(number: str) -> None:
    as_float, as_decimal = json.loads(number), json.loads(number, parse_float=Decimal)
    if as_float not in (float("inf"),):
        assert hashing.canonical_bytes(as_float) == hashing.canonical_bytes(as_decimal)
    assert json.loads(hashing.canonical_bytes(as_decimal), parse_float=Decimal) == as_decimal


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_what_is_no_number_is_refused_with_its_place(value: object) -> None:
    schema = {"properties": {"id": {"enum": [1, value]}}}
    with pytest.raises(MessageError, match=r"stream 'users'.*schema\.properties\.id\.enum\[1\]"):
        hashing.schema_line(Schema("users", schema))


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, {1: 2}, b"x", {1, 2}, object()])
def test_what_json_has_no_text_for_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="stream 's'"):
        hashing.schema_line(Schema("s", {"x": value}))


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, object] = {}
    schema["properties"] = {"again": schema}
    with pytest.raises(MessageError, match="nested too deeply"):
        hashing.schema_line(Schema("s", schema))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def as_numbers(value: object) -> object:
    if isinstance(value, dict):
        return {key: as_numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_numbers(inner) for inner in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return value


@given(json_values)
def test_nothing_is_lost_nothing_is_changed_and_the_form_is_a_fixed_point(value: object) -> None:
    before = copy.deepcopy(value)
    data = hashing.canonical_bytes(value)
    assert repr(value) == repr(before)
    back = json.loads(data, parse_float=Decimal)
    assert as_numbers(back) == as_numbers(value)
    assert hashing.canonical_bytes(back) == data
