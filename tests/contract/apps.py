"""Taps that the command line runs: a shop that is extracted four times, each time with more, and one that counts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import burler

ID = {"type": "integer"}
TEXT = {"type": ["null", "string"]}
TIME = {"type": "string", "format": "date-time"}
MONEY = {"type": ["null", "number"], "multipleOf": 0.01}
NAMES = ("Ann", "Bjørn", 'C "D"', "", None, "E\nF", "日本", "G,H")

ORDER: dict[str, Any] = {"id": ID, "total": MONEY, "name": TEXT, "updated_at": TIME}
WIDER: dict[str, Any] = {
    **ORDER,
    "customer": {"type": ["null", "object"], "properties": {"code": TEXT, "since": {**TEXT, "format": "date"}}},
    "tags": {"type": ["null", "array"], "items": {"type": "string"}},
}


def order(number: int, run: int) -> dict[str, Any]:
    """A row of the stream ``orders``, as it is at the time of a run."""
    row: dict[str, Any] = {
        "id": number,
        "total": None if number % 5 == 0 else Decimal(number * run) + Decimal("0.25"),
        "name": NAMES[number % len(NAMES)],
        "updated_at": f"2024-05-0{run}T00:00:{number:02}Z",
    }
    if run > 1:
        row["customer"] = {"code": f"c{number}", "since": f"2023-01-{number:02}"} if number % 3 else None
        row["tags"] = ["a", "b"][: number % 3]
        row["weight"] = number if run == 2 else number / 4
    return row


def shop(run: int) -> burler.Tap:
    """The shop at the time of a run: 1 to 4."""
    tap = burler.tap("tap-shop", version="1.2.3", description="A shop, four times")
    fields = dict(ORDER if run == 1 else WIDER)
    if run > 1:
        fields["weight"] = {"type": "integer"} if run == 2 else {"type": "number"}

    @tap.sync(
        "orders",
        key_properties="id",
        replication_key="updated_at",
        order="asc",
        schema={"type": "object", "properties": fields},
    )
    def orders(stream: Any) -> Any:
        numbers = {1: range(1, 9), 2: (3, 4, 9, 10), 3: (1, 11), 4: (2, 4, 12)}[run]
        yield [order(number, run) for number in numbers]

    @tap.sync("countries", key_properties="code", schema={"properties": {"code": {"type": "string"}, "name": TEXT}})
    def countries() -> Any:
        yield from ({"code": code, "name": f"{code} in run {run}"} for code in ("FR", "PE", "JP", "NP")[: 5 - run])

    @tap.sync("log", replication_key="at", order="asc", schema={"properties": {"at": ID, "what": {}}})
    def log() -> Any:
        whats: tuple[Any, ...] = ("begun", 1.5, {"deep": [1, {"x": None}]}, None)
        yield from ({"at": run * 10 + i, "what": what} for i, what in enumerate(whats))

    return tap


first, second, third, fourth = (shop(run) for run in (1, 2, 3, 4))

counting = burler.tap("tap-counting", config_spec={"type": "object", "properties": {"upto": {"type": "integer"}}})


@counting.sync(
    "numbers",
    key_properties="n",
    replication_key="n",
    order="asc",
    bookmark_strategy="every_n(4)",
    schema={"type": "object", "properties": {"n": ID, "text": TEXT}},
)
def numbers(stream: Any, config: Any) -> Any:
    """From the bookmark on, up to what the config says."""
    for n in range(stream.bookmark or 0, config["upto"] + 1):
        yield {"n": n, "text": NAMES[n % len(NAMES)]}


def line(kind: str, stream: str, **more: Any) -> str:
    """A message of a foreign tap."""
    return json.dumps({"type": kind, "stream": stream, **more}, ensure_ascii=False) + "\n"


def foreign(run: int) -> str:
    """What a tap of another make says: schemas, keys, times and states as such taps spell them."""
    user: dict[str, Any] = {"type": ["null", "object"], "additionalProperties": False}
    user["properties"] = {"id": {"type": ["null", "string"]}, "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    if run > 1:
        user["properties"]["born"] = {"type": ["null", "string"], "format": "date-time"}
    out = line("SCHEMA", "users", schema=user, key_properties=["id"], bookmark_properties=["id"])
    times = (f"2024-05-0{run}T10:00:00Z", f"2024-05-0{run}T12:00:00.123456+02:00", f"2024-05-0{run}T10:00:00.5Z")
    for i, time in enumerate(times):
        row: dict[str, Any] = {"id": f"u{i}", "age": None if i else 40 + run}
        if run > 1:
            row["born"] = "1980-02-29T00:00:00+01:00"
        out += line("RECORD", "users", record=row, time_extracted=time)
    out += '{"type":"STATE","value":{"users":"u2","cursor":[1,{"a":null}]}}\n'
    # The title is there for the sake of its hash, which in base85 is a name for a folder anywhere.
    events = {"title": "Events 5", "properties": {"n": {"type": "number"}, "x": {}}}
    out += line("SCHEMA", "Events", schema=events, key_properties=[])
    out += line("ACTIVATE_VERSION", "Events", version=run)
    for text in ("1e3", "12345678901234567890.125", "-0.0", "1.10"):  # digits are kept as they came
        out += f'{{"type": "RECORD", "stream": "Events", "version": {run}, "record": {{"x": "é", "n": {text}}}, '
        out += f'"time_extracted": "2024-05-0{run}T11:00:00Z"}}\n'
    out += line("ACTIVATE_VERSION", "Events", version=run)
    return out + f'{{"type":"STATE","value":{{"run":{run}}}}}\n'


ODD = (("Zähler 50%", "a/b c"), ("con", "_hidden"), (".dots.", "é" * 120), ("x", "nul.txt"))
"""Taps and streams whose names can't be those of folders."""


def odd(tap: int, run: int) -> str:
    """What one of several writers says."""
    stream = ODD[tap][1]
    out = line("SCHEMA", stream, schema={"properties": {"id": ID, "by": TEXT}}, key_properties=["id"])
    for number in range(3):
        row = {"id": 10 * run + number, "by": ODD[tap][0]}
        out += line("RECORD", stream, record=row, time_extracted=f"2024-05-0{run}T0{tap}:00:0{number}.000000Z")
    return out + f'{{"type":"STATE","value":{{"bookmarks":{{"of":{run}}}}}}}\n'
