"""The canonical SCHEMA line, its hash and its alias."""

from __future__ import annotations

import copy
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import MessageError
from burler.singer.messages import Schema
from support.internals import canonical, farmhash

GOLDEN = (
    b'{"key_properties":["id"],"schema":{"properties":{"id":{"type":"integer"}},"required":["id"],'
    b'"type":"object"},"stream":"users","type":"SCHEMA"}'
)
USERS = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def test_golden_line_and_hash() -> None:
    line = canonical.schema_line(Schema("users", USERS, ("id",)))
    assert line == GOLDEN
    assert farmhash.fingerprint64(line) == 6785558163708193011
    assert canonical.schema_hash(line) == "GkZ4VgVbUrW"
    assert canonical.base85_alias(line) == "UMnRs&Xg$g"


def test_base58() -> None:
    assert canonical.base58(2**64 - 1) == "jpXCZedGfVQ"
    assert canonical.base58(0) == "1" * 11
    assert canonical.base58(57) == "1" * 10 + "z"
    assert canonical.base58(58) == "1" * 9 + "21"
    # The folder that the spec author's own program makes reads the same eight bytes the other way round.
    assert canonical.base58(int.from_bytes((8996105550381258938).to_bytes(8, "little"), "big")) == "Y8Mjkb4i9yM"


def test_hash_texts_are_told_from_others() -> None:
    assert canonical.is_schema_hash("GkZ4VgVbUrW")
    assert not canonical.is_schema_hash("GkZ4VgVbUr")
    assert not canonical.is_schema_hash("GkZ4VgVbUr0")
    assert not canonical.is_schema_hash("UMnRs&Xg$g")


def test_bookmark_properties_only_where_there_are_some() -> None:
    assert b"bookmark_properties" not in canonical.schema_line(Schema("s", {}))
    assert canonical.schema_line(Schema("s", {}, (), ("at",))).startswith(b'{"bookmark_properties":["at"],')


def test_key_order_counts_for_nothing_and_type_order_for_something() -> None:
    one = canonical.schema_line(Schema("s", {"a": 1, "b": {"d": 1, "c": 2}}))
    assert one == canonical.schema_line(Schema("s", {"b": {"c": 2, "d": 1}, "a": 1}))
    assert canonical.schema_line(Schema("s", {"type": ["null", "string"]})) != canonical.schema_line(
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
    assert canonical.canonical_bytes(value).decode() == text


def test_keys_are_sorted_by_code_point() -> None:
    assert (
        canonical.canonical_bytes({"\U0001f600": 1, "\uffff": 2, "a": 3}).decode()
        == '{"a":3,"\uffff":2,"\U0001f600":1}'
    )


@pytest.mark.parametrize("number", ["0.01", "1e-38", "1E2", "1.0", "100", "9007199254740993", "0.3", "1e400"])
def test_a_schema_hashes_alike_however_its_numbers_were_parsed(number: str) -> None:
    as_float, as_decimal = json.loads(number), json.loads(number, parse_float=Decimal)
    if as_float not in (float("inf"),):
        assert canonical.canonical_bytes(as_float) == canonical.canonical_bytes(as_decimal)
    assert json.loads(canonical.canonical_bytes(as_decimal), parse_float=Decimal) == as_decimal


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_what_is_no_number_is_refused_with_its_place(value: object) -> None:
    schema = {"properties": {"id": {"enum": [1, value]}}}
    with pytest.raises(MessageError, match=r"stream 'users'.*schema\.properties\.id\.enum\[1\]"):
        canonical.schema_line(Schema("users", schema))


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, {1: 2}, b"x", {1, 2}, object()])
def test_what_json_has_no_text_for_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="stream 's'"):
        canonical.schema_line(Schema("s", {"x": value}))


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, object] = {}
    schema["properties"] = {"again": schema}
    with pytest.raises(MessageError, match="nested too deeply"):
        canonical.schema_line(Schema("s", schema))


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
    data = canonical.canonical_bytes(value)
    assert repr(value) == repr(before)
    back = json.loads(data, parse_float=Decimal)
    assert as_numbers(back) == as_numbers(value)
    assert canonical.canonical_bytes(back) == data
