"""Any JSON row equals its row in the frame under the table of column types, or it is in quarantine.

Hypothesis draws the rows, each value with what it must become, known from how it was made and not from burler; one
Spark job reads them all, the clean ones and the others.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Context, Decimal

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from burler.lake import CleanCheck

BAD = "quarantined"
TIME = {"type": ["null", "string"], "format": "date-time"}
EXACT = Context(prec=60)


def texts(**limits):
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=8, **limits)


def json_text(value):
    return st.sampled_from([json.dumps(value), json.dumps(value, ensure_ascii=False)])


def integers():
    whole = st.integers(-(2**63), 2**63 - 1)
    small = st.integers(-1000, 1000)
    return st.one_of(
        whole.map(lambda n: (str(n), n)),
        small.map(lambda n: (f"{n}.0", n)),
        small.map(lambda n: (f"{n}e2", n * 100)),
        small.map(lambda n: (f"{n}.5", BAD)),
        st.integers(2**63, 2**70).map(lambda n: (str(n), BAD)),
        small.map(lambda n: (f'"{n}"', BAD)),
    )


def big_integers():
    return st.one_of(
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: (str(n), Decimal(n))),
        st.integers(10**38, 10**40).map(lambda n: (str(n), BAD)),
    )


def decimals():
    cents = st.integers(-(10**38) + 1, 10**38 - 1)
    return st.one_of(
        cents.map(lambda n: (f"{Decimal(n).scaleb(-2, EXACT):f}", Decimal(n).scaleb(-2, EXACT))),
        cents.map(lambda n: (f'"{Decimal(n).scaleb(-2, EXACT):f}"', Decimal(n).scaleb(-2, EXACT))),
        st.integers(1, 9).map(lambda n: (f"0.00{n}", BAD)),
        st.integers(10**38, 10**39).map(lambda n: (f"{n}", BAD)),
    )


def numbers():
    return st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(lambda x: (repr(x), x)),
        st.integers(-(2**53), 2**53).map(lambda n: (str(n), float(n))),
        st.integers(400, 999).map(lambda n: (f"1e{n}", BAD)),
        st.floats(-1, 1).map(lambda x: (f'"{x}"', BAD)),
    )


@st.composite
def moments(draw):
    """Date-times in many spellings, with their moment."""
    at = dt.datetime.combine(draw(st.dates(dt.date(1, 1, 2), dt.date(9999, 12, 30))), draw(st.times()))
    minutes = draw(st.one_of(st.just(0), st.integers(-18 * 60 + 1, 18 * 60 - 1)))
    local = at + dt.timedelta(minutes=minutes)
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    zone = draw(
        st.sampled_from(["Z"] if not minutes else [f"{sign}{hours:02}:{rest:02}", f"{sign}{hours:02}{rest:02}"])
    )
    digits = draw(st.sampled_from(["", "6", "9"]))
    if digits:
        fraction = f".{at.microsecond:06}" + ("789" if digits == "9" else "")
    else:
        at, fraction = at.replace(microsecond=0), ""
    letter = draw(st.sampled_from(["T", " ", "t"]))
    text = f"{local.year:04}-{local:%m-%d}{letter}{local:%H:%M:%S}{fraction}{zone}"
    return json.dumps(text), at.replace(tzinfo=dt.UTC)


def times():
    odd = st.sampled_from(["1700000000000", '""', '"yesterday"', '"2024-02-30T00:00:00Z"', "true"])
    return st.one_of(moments(), odd.map(lambda text: (text, BAD)))


def dates():
    return st.one_of(
        st.dates().map(lambda day: (f'"{day.isoformat()}"', day)),
        st.sampled_from(['"2023-02-29"', "19000", '"0000-01-01"']).map(lambda text: (text, BAD)),
    )


def binaries():
    return st.one_of(
        st.binary(max_size=9).map(lambda held: (json.dumps(base64.b64encode(held).decode()), held)),
        st.just(('"?"', BAD)),
    )


def any_json():
    leaf = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | texts()
    inner = st.recursive(leaf, lambda one: st.lists(one, max_size=3) | st.dictionaries(texts(), one, max_size=3))
    return (
        inner.filter(lambda one: not isinstance(one, str) and one is not None)
        .flatmap(json_text)
        .map(lambda text: (text, text))
    )


def lists(item):
    held = st.lists(item.filter(lambda one: one[1] != BAD), max_size=3)
    return held.map(lambda found: ("[" + ", ".join(one[0] for one in found) + "]", [one[1] for one in found]))


def maps(item):
    held = st.dictionaries(texts(), item.filter(lambda one: one[1] != BAD), max_size=3)
    return held.map(
        lambda found: (
            "{" + ",".join(f"{json.dumps(key)}:{one[0]}" for key, one in found.items()) + "}",
            [(key, one[1]) for key, one in found.items()],
        )
    )


def objects(**fields):
    held = st.fixed_dictionaries(
        {}, optional={name: one.filter(lambda two: two[1] != BAD) for name, one in fields.items()}
    )
    return held.map(
        lambda found: (
            "{" + ",".join(f"{json.dumps(name)}:{one[0]}" for name, one in found.items()) + "}",
            {name: found[name][1] if name in found else None for name in fields},
        )
    )


TYPES = {
    "integer": ({"type": "integer"}, integers()),
    "big": ({"type": "integer", "minimum": -(10**38), "maximum": 10**38}, big_integers()),
    "decimal": ({"type": "number", "multipleOf": 0.01}, decimals()),
    "number": ({"type": ["null", "number"]}, numbers()),
    "flag": ({"type": "boolean"}, st.sampled_from([("true", True), ("false", False), ('"true"', BAD), ("0", BAD)])),
    "text": ({"type": ["null", "string"]}, texts().flatmap(lambda t: json_text(t).map(lambda j: (j, t)))),
    "time": (TIME, times()),
    "date": ({"type": "string", "format": "date"}, dates()),
    "binary": ({"type": "string", "contentEncoding": "base64"}, binaries()),
    "either": (
        {"type": ["string", "number"]},
        st.one_of(texts().map(lambda t: (json.dumps(t), t)), st.integers().map(lambda n: (f"{n}.10", f"{n}.10"))),
    ),
    "any": ({}, any_json()),
    "list": ({"type": "array", "items": TIME}, lists(times())),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, maps(integers())),
    "object": (
        {"type": "object", "properties": {"n": {"type": "number"}, "d": {"type": "string", "format": "date"}}},
        objects(n=numbers(), d=dates()),
    ),
    "null": ({"type": "null"}, st.just(("null", None))),
}
SCHEMA = {
    "type": "object",
    "properties": {"row": {"type": "integer"}, **{name: schema for name, (schema, _) in TYPES.items()}},
}


def drawn_rows():
    """Hundreds of rows of one or two fields, each with what its values must become."""
    found = []
    fields = st.one_of(*(values.map(lambda value, name=name: (name, value)) for name, (_, values) in TYPES.items()))

    @settings(database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(fields, min_size=1, max_size=2, unique_by=lambda one: one[0]), min_size=8, max_size=12))
    def draw(rows):
        found.extend(map(dict, rows))

    draw()
    return found


def spelled(number, row):
    fields = [f'"row":{number}', *(f'"{name}":{text}' for name, (text, _) in row.items())]
    return ("{" + ",".join(fields) + "}").encode()


def is_clean(row):
    line = b'{"type":"RECORD","stream":"s","record":%s,"time_extracted":"2024-01-01T00:00:00.000000Z"}\n' % row
    return CleanCheck(SCHEMA).page(line)


def same(got, wanted):
    """Equal, and of one type: 1 is not 1.0, and -0.0 is not 0.0."""
    if isinstance(wanted, float):
        return isinstance(got, float) and got == wanted and math.copysign(1, got) == math.copysign(1, wanted)
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(same, got, wanted))
    if isinstance(wanted, tuple):
        return all(map(same, got, wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[name], wanted[name]) for name in wanted)
    return type(got) is type(wanted) and got == wanted


def test_each_row_is_as_it_was_or_in_quarantine(lake, read_stream):
    drawn = drawn_rows()
    lines = [spelled(number, row) for number, row in enumerate(drawn)]
    clean = [line for line in lines if is_clean(line)]
    lake.commit("s", clean, schema=SCHEMA, keys=("row",))
    odd = set(lines).difference(clean)
    lake.commit("s", [line for line in lines if line in odd], schema=SCHEMA, keys=("row",))
    assert [one["clean"] for one in lake.manifest("s")["file_stats"].values()] == [True, False]
    assert min(len(clean), len(odd)) > 100

    read = read_stream(max_bad_rows=len(drawn))

    got = read.by("row")
    quarantined = {json.loads(bad.record)["row"] for bad in read.bad}
    for number, row in enumerate(drawn):
        fits = all(wanted != BAD for _, wanted in row.values())
        assert (number in got, number in quarantined) == (fits, not fits), lines[number]
        for name in TYPES if fits else ():
            wanted = row[name][1] if name in row else None
            assert same(got[number][name], wanted), (name, got[number][name], lines[number])
