"""Leaves, the fields that are looked at beside msgspec: whether the values of one, a page of them, may go out as they
are, in a few passes in C.

A check says yes only where the exact path would give every value back unchanged. No is no verdict: then each
value is looked at on its own.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, TypeGuard

import msgspec

from burler import times
from burler.records.shape import constraints
from burler.records.shape.bad_rows import Rules
from burler.records.shape.exact import tuple_parts
from burler.records.shape.values import ANYTHING, Path, Template, is_writable, types_of

Fix = Callable[[list[Any]], list[Any] | None]
"""A column's values as they go out: the same list if they are right as they stand, None if each must be looked at."""


@dataclass(slots=True)
class Leaf:
    """A field whose values msgspec lets through, and burler looks at."""

    attribute: str
    path: Template
    schema: Any
    fix: Fix | None
    quick: frozenset[type] = frozenset()
    moments: list[Any] | None = None
    """Of date-times: the column as datetimes, None where there is none, if the last ``fix`` made them."""
    given: list[Any] | None = None
    """The column as it came, if it goes out otherwise."""
    required: bool = False
    sees_gaps: bool = False
    """Whether a required value that is not there (given as UNSET) is refused without a look at all types."""
    place: Path = ()
    """The path, with 0 for any item of an array: which one it is, the exact path of the row says."""

    def __post_init__(self) -> None:
        self.place = tuple(0 if part is None else part for part in self.path)


@functools.cache
def column(attribute: str) -> Callable[[list[Any]], list[Any]]:
    """Gives the values of one attribute, ``f7``, of all structs. Written out, Python reads it twice as fast as through
    an ``attrgetter``."""
    assert attribute.isidentifier()
    made: Callable[[list[Any]], list[Any]] = eval(f"lambda structs: [struct.{attribute} for struct in structs]")
    return made


Check = Callable[[list[Any]], bool]

_NULL = type(None)
_ABSENT = msgspec.UnsetType
_SCALARS: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float, Decimal}),
    "boolean": frozenset({bool}),
    "null": frozenset({_NULL}),
}
NUMBER = int | Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)] | Decimal
"""As msgspec reads it: NaN and infinities are within no bounds. It makes a float of a Decimal unless that is named, and
such a one may be NaN still."""
_PLAIN = frozenset({str, int, float, bool, Decimal, list, dict, _NULL, _ABSENT})
_SPECIAL = ("date-time", "date", "singer.decimal")
_AWARE = Annotated[dt.datetime, msgspec.Meta(tz=True)]
_DEEPEST = 300  # levels; what is deeper is for the exact path, which knows where it ends
_ZEROS = ".000000Z"
_last = itemgetter(-1)
_ZULU, _OFFSET = len("2024-01-02T03:04:05.123456Z"), len("2024-01-02T03:04:05.123456+02:00")


def plain(values: list[Any]) -> bool:
    """Whether all are JSON values of Python's own types, at every depth: a level at a time."""
    for _level in range(_DEEPEST):
        kinds = set(map(type, values))
        if not kinds <= _PLAIN or not finite(values, kinds):
            return False
        below: list[Any] = []
        if dict in kinds:
            objects = [value for value in values if type(value) is dict]
            if not set(map(type, chain.from_iterable(objects))) <= {str}:
                return False
            below.extend(chain.from_iterable(map(dict.values, objects)))
        if list in kinds:
            below.extend(chain.from_iterable(value for value in values if type(value) is list))
        if not below:
            return True
        values = below
    return False  # something that holds itself has no end


def finite(values: list[Any], kinds: set[type]) -> bool:
    """Whether all numbers of a column have a form in JSON."""
    if float in kinds:
        floats = values if len(kinds) == 1 else [value for value in values if type(value) is float]
        # A sum is finite only if all of it is; one that is not may still be of finite numbers.
        if not math.isfinite(sum(floats)) and not all(map(math.isfinite, floats)):
            return False
    return Decimal not in kinds or all(map(is_writable, (value for value in values if type(value) is Decimal)))


def quick_types(schema: Any, rules: Rules) -> frozenset[type]:
    """Types of which every value of a field may go out as it is."""
    closed = not isinstance(schema, Mapping) or _is_closed_to_checks(schema, rules)
    if closed or rules.hold(schema) or schema.get("format") in _SPECIAL:
        return frozenset({_ABSENT})
    wanted = types_of(schema)
    kinds = frozenset[type]().union(*(_SCALARS.get(name, frozenset()) for name in wanted))
    return (kinds - {float, Decimal}) | {_ABSENT}


def _is_closed_to_checks(schema: Mapping[str, Any], rules: Rules) -> bool:
    if any(word in schema for word in (ANYTHING, "anyOf", "oneOf", "patternProperties")):
        return True
    wanted = set(types_of(schema))
    mixes = "boolean" in wanted and not wanted.isdisjoint({"number", "integer"})  # True is 1 to Python
    return rules.hold(schema) and (mixes or not wanted or not wanted <= set(_SCALARS))


def check_of(schema: Any, rules: Rules) -> Check | None:
    """The check for a schema's values; None where only the exact path can tell."""
    if not isinstance(schema, Mapping):
        return None if schema is False else plain
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and ANYTHING not in schema:
            return _union_check(schema[keyword], rules)
    if _is_closed_to_checks(schema, rules) or "properties" in schema or schema.get("required"):
        return None
    wanted = types_of(schema)
    if not wanted:
        return plain
    if "string" in wanted and schema.get("format") in _SPECIAL:
        return None
    items = keys = None
    if "array" in wanted:
        places, rest = tuple_parts(schema)
        items = None if places else check_of(rest, rules)
        if items is None:
            return None
    if "object" in wanted:
        extra = schema.get("additionalProperties", True)
        keys = check_of(extra, rules)
        if keys is None:
            return None
    scalars = frozenset[type]().union(*(_SCALARS.get(name, frozenset()) for name in wanted))
    check = _typed_check(scalars | {_ABSENT}, items, keys)
    if not rules.hold(schema):
        return check
    return lambda values: check(values) and _all_hold(values, schema)


def _all_hold(values: list[Any], schema: Mapping[str, Any]) -> bool:
    """Whether scalars keep what their schema says beside their types. Each different value is held against it once."""
    different = set(values)
    different.discard(msgspec.UNSET)
    held = constraints.CONSTRAINTS & schema.keys()
    if held == {"pattern"} and isinstance(schema["pattern"], str) and constraints.ALSO not in schema:
        is_found = constraints.finder(schema["pattern"])
        return all(is_found(value) for value in different if type(value) is str)
    less = {"multipleOf"} if "multipleOf" in held and constraints.are_multiples(different, schema["multipleOf"]) else ()
    some = constraints.ends(different) if constraints.told_by_ends(schema, less) else different
    return all(constraints.broken(value, schema) is None for value in some)


def _union_check(branches: list[Any], rules: Rules) -> Check | None:
    """Values of each type must all be taken by one branch as they are. Only branches before one that may change what it
    takes are asked: that one might come first."""
    checks: list[Check] = []
    rules = dataclasses.replace(rules, check_constraints=True)  # which decide between branches in any case
    for branch in branches:
        check = check_of(branch, rules)
        if check is None:
            break
        checks.append(check)
    if not checks:
        return None

    def check_all(values: list[Any]) -> bool:
        kinds = set(map(type, values))
        for kind in kinds:
            same = values if len(kinds) == 1 else [value for value in values if type(value) is kind]
            if not any(check(same) for check in checks):
                return False
        return True

    return check_all


def _typed_check(scalars: frozenset[type], items: Check | None, fields: Check | None) -> Check:
    allowed = scalars | ({list} if items is not None else set()) | ({dict} if fields is not None else set())

    def check(values: list[Any]) -> bool:
        kinds = set(map(type, values))
        if not kinds <= allowed or not finite(values, kinds):
            return False
        if items is not None and list in kinds:
            lists = (value for value in values if type(value) is list)
            if not items(list(chain.from_iterable(lists))):
                return False
        if fields is not None and dict in kinds:
            objects = [value for value in values if type(value) is dict]
            if not set(map(type, chain.from_iterable(objects))) <= {str}:
                return False
            return fields(list(chain.from_iterable(map(dict.values, objects))))
        return True

    return check


def unchanged_if(check: Check) -> Fix:
    """A check as a fix: all values as they are, or None."""
    return lambda values: values if check(values) else None


def is_number(schema: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a node is a number or null."""
    wanted = set(types_of(schema)) if isinstance(schema, Mapping) and "anyOf" not in schema else set[str]()
    return "number" in wanted and wanted <= {"number", "integer", "null"}


def no_decimals(values: list[Any]) -> bool:
    """Whether what ``NUMBER`` has let through adds up to a plain number."""
    try:
        return type(values[0]) is not Decimal and type(sum(values)) is not Decimal
    except (TypeError, ArithmeticError, IndexError):  # there are gaps, or Decimals, or no values
        return False


def is_times(schema: Any) -> bool:
    """Whether a node is a date-time or null; text of other kinds may be let in behind that."""
    if not isinstance(schema, Mapping):
        return False
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        typed = [branch for branch in branches if not (isinstance(branch, Mapping) and types_of(branch) == ("null",))]
        bare = all(isinstance(one, Mapping) and set(one) == {"type"} and is_text(one) for one in typed[1:])
        return bool(typed) and bare and is_times(typed[0])
    if schema.get("format") != "date-time" or constraints.constrained(schema):
        return False
    return set(types_of(schema)) in ({"string"}, {"string", "null"})


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a node is text or null."""
    return set(types_of(schema)) <= {"string", "null"}


def is_plain_text(schema: Any) -> bool:
    """Whether a node is text or null, and nothing more is known of it than constraints."""
    return isinstance(schema, Mapping) and "string" in types_of(schema) and is_text(schema) and "format" not in schema


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Whether a node that ``is_times`` may be null."""
    branches = schema.get("anyOf", schema.get("oneOf"))
    return any("null" in types_of(branch) for branch in branches) if branches else "null" in types_of(schema)


def is_times_list(schema: Any) -> bool:
    """Whether a node is an array of date-times, or null."""
    if not isinstance(schema, Mapping) or set(types_of(schema)) not in ({"array"}, {"array", "null"}):
        return False
    items = schema.get("items")
    return is_times(items) and not takes_null(items or {}) and not constraints.constrained(schema)


def lists_of_times(values: list[Any]) -> list[Any] | None:
    """The fix of a column of such arrays."""
    if not set(map(type, values)) <= {list, _ABSENT}:
        return None
    flat = list(chain.from_iterable(value for value in values if type(value) is list))
    fixed = fixed_times(flat) if flat else (flat, [])
    if fixed is None or fixed[0] is flat:
        return None if fixed is None else values
    each = iter(fixed[0])
    return [[next(each) for _ in value] if type(value) is list else value for value in values]


def times_fix(leaf: Leaf, *, nullable: bool) -> Fix:
    """The fix of a date-time column, which also notes the datetimes on the leaf."""
    leaf.sees_gaps = True

    def fix(values: list[Any]) -> list[Any] | None:
        gaps = frozenset([_NULL] * nullable + [_ABSENT] * (not leaf.required))
        texts, leaf.moments = fixed_times(values, gaps) or (None, None)
        return texts

    return fix


def fixed_times(values: list[Any], gaps: frozenset[type] = frozenset()) -> tuple[list[Any], list[Any]] | None:
    """Date-times of a column as they go out, and as datetimes in UTC, None where there is none.

    Text that is in its final form already stays; other text with at most six digits, and aware datetimes, become
    datetimes in UTC. None: each must be looked at.

    Args:
        gaps: what may stand where there is none.
    """
    try:
        if joined := _of_one_form(values):
            return _without_zeros(values, joined), msgspec.convert(values, list[_AWARE])
        kinds = set(map(type, values))
        if not kinds.isdisjoint((_NULL, _ABSENT)):
            return _around_gaps(values) if kinds & {_NULL, _ABSENT} <= gaps else None
        if kinds == {str}:
            in_utc = set(map(_last, values)) == {"Z"} and max(map(len, values)) <= _ZULU
            if not in_utc and not all(map(_has_six_digits, values)):
                return None
            moments = msgspec.convert(values, list[_AWARE])
        elif kinds == {dt.datetime}:
            moments = values
        else:
            return None
        zones = {moment.tzinfo for moment in moments}
        if zones <= {dt.UTC}:
            return moments, moments
        if None in zones or None in {moment.utcoffset() for moment in moments}:
            return None
        moments = [moment.astimezone(dt.UTC) for moment in moments]
        return moments, moments
    except (OverflowError, ValueError, IndexError):  # no date-time, or one that leaves the calendar; an empty text
        return None


def _around_gaps(values: list[Any]) -> tuple[list[Any], list[Any]] | None:
    present = [value for value in values if value is not None and value is not msgspec.UNSET]
    fixed = fixed_times(present) if present else (present, [])
    if fixed is None:
        return None
    texts, moments = iter(fixed[0]), iter(fixed[1])
    around = [None if value is None or value is msgspec.UNSET else next(moments) for value in values]
    if fixed[0] is present:
        return values, around
    return [value if value is None or value is msgspec.UNSET else next(texts) for value in values], around


def _has_six_digits(text: str) -> bool:
    """Whether a date-time can have no more than six digits of a second, and writes its zone as RFC 3339 does."""
    return len(text) <= _ZULU if text[-1:] in "Zz" else len(text) <= _OFFSET and text[-3:-2] == ":"


def _of_one_form(values: list[Any]) -> str:
    """All texts in one, if all have the same form, or some are no date-times: see ``times.have_one_form``; else
    nothing. One that is shorter or longer than the others has its Z in their place, or none."""
    try:
        whole = "".join(values)
    except TypeError:  # not all of them are texts
        return ""
    width, more = divmod(len(whole), len(values) or 1)
    is_sure = not more and times.have_one_form(whole, width) and type(values[0]) is str  # no class of the author's
    return whole if is_sure else ""


def _without_zeros(texts: list[str], joined: str) -> list[str]:
    """Six zeros behind the second are none. They are rare, so only where they are is a text made anew."""
    at = joined.find(_ZEROS)
    if at < 0:
        return texts
    texts = texts.copy()
    while at >= 0:
        row = at // _ZULU
        texts[row] = f"{texts[row][:19]}Z"
        at = joined.find(_ZEROS, at + 1)
    return texts


_NUMBER = b"0123456789.,-+eE"
_NUMBER_OR_NULL = _NUMBER + b"nul"
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_MANY = b"0" * 300
_HUGE = re.compile(rb"[eE][+-]?\d{3}")

_decoder = msgspec.json.Decoder(float_hook=Decimal)


def value_of(value: Any) -> Any:
    """What a leaf's value is in Python: numbers with a fraction as Decimals.

    Raises:
        ValueError: Python has no form for it: half of a surrogate pair, thousands of digits.
    """
    if type(value) is msgspec.Raw:
        try:
            return _decoder.decode(value)
        except ArithmeticError:
            raise ValueError("the exponent of a number is too large") from None
    if type(value) is list:
        return [value_of(item) for item in value]
    return value


def kind_and_fix(schema: Any, check: Check | None, held: Callable[[Mapping[str, Any]], bool]) -> tuple[Any, Fix | None]:
    """The msgspec type of a leaf, and its fix.

    Args:
        check: of the values as Python has them (``check_of``).
        held: whether a node says more than types.
    """
    if isinstance(schema, Mapping) and not held(schema):
        wanted, items = set(types_of(schema)), schema.get("items")
        if is_number(schema):
            return msgspec.Raw, unchanged_if(_numbers("null" in wanted))
        if wanted in ({"array"}, {"array", "null"}) and is_number(items) and not held(items):
            kind = list[msgspec.Raw]
            return (kind | None if "null" in wanted else kind), unchanged_if(_lists(_numbers(takes_null(items))))
    if (schema is True or schema == {}) and check is not None:
        return msgspec.Raw, unchanged_if(lambda values: goes_as_it_is(_joined(values, b"")))
    return msgspec.Raw, _decoded(check)


def _joined(values: list[Any], between: bytes) -> bytes:
    """The bytes of those values that are there."""
    try:
        return between.join(values)
    except TypeError:
        return between.join([value for value in values if value is not msgspec.UNSET])


def _numbers(nullable: bool) -> Check:
    """JSON was read already, so that of the letters in numbers and ``null`` only these can be made."""
    letters = _NUMBER_OR_NULL if nullable else _NUMBER

    def check(values: list[Any]) -> bool:
        joined = _joined(values, b",")
        return not joined.translate(None, letters) and _is_readable(joined)

    return check


def _is_readable(joined: bytes) -> bool:
    """Whether it surely holds no number that readers refuse: of thousands of digits, or with a huge exponent."""
    if _MANY in joined.translate(_DIGITS):
        return False
    return not (b"e" in joined or b"E" in joined) or _HUGE.search(joined) is None


def _lists(items: Check) -> Check:
    return lambda values: items(list(chain.from_iterable(value for value in values if type(value) is list)))


def goes_as_it_is(joined: bytes) -> bool:
    """Whether any JSON is on one line, in UTF-8 (the decoder looks at neither in what it passes over), and readable."""
    if b"\n" in joined or b"\r" in joined:
        return False
    try:
        joined.decode()
    except UnicodeDecodeError:
        return False
    return _is_readable(joined)


def _decoded(check: Check | None) -> Fix | None:
    if check is None:
        return None

    def fix(values: list[Any]) -> list[Any] | None:
        try:
            made = [value_of(value) for value in values]
        except (msgspec.DecodeError, UnicodeError, ValueError):
            return None
        return made if check(made) else None

    return fix
