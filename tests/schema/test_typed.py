"""Schemas out of typed classes, and rows of such classes through a tap."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import attrs
import jsonschema
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

import burler
from burler.errors import DeclarationError
from burler.schema import is_typed, typed
from burler.testing import run_tap

WHERE = "stream 'a' (tap.py:3)"
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Address:
    """Where somebody lives."""

    city: str
    zip: str | None = None


@dataclasses.dataclass
class Contact:
    id: int
    name: str | None
    created_at: dt.datetime
    local_time: Annotated[dt.datetime, msgspec.Meta(tz=False)]
    born: dt.date
    amount: Decimal
    key: uuid.UUID
    photo: bytes
    colour: Colour
    level: Level | None
    state: Literal["open", "closed"]
    mixed: Literal["a", 1, None]
    counts: dict[str, int]
    pair: tuple[int, str]
    numbers: tuple[float, ...]
    address: Address
    addresses: list[Address]
    score: Annotated[int, msgspec.Meta(ge=0, description="From 0 on.")]
    anything: Any
    tags: list[str] = dataclasses.field(default_factory=list)
    work: Address | None = None
    active: bool = True
    union: int | str | None = None


ADDRESS = {
    "type": "object",
    "description": "Where somebody lives.",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "zip": {"type": ["null", "string"]}},
}
PROPERTIES = {
    "id": {"type": "integer"},
    "name": {"type": ["null", "string"]},
    "created_at": {"type": "string", "format": "date-time"},
    "local_time": {"type": "string"},
    "born": {"type": "string", "format": "date"},
    "amount": {"type": "number", "format": "singer.decimal"},
    "key": {"type": "string", "format": "uuid"},
    "photo": {"type": "string", "contentEncoding": "base64"},
    "colour": {"type": "string", "enum": ["red", "blue"]},
    "level": {"type": ["null", "integer"], "enum": [1, None]},
    "state": {"type": "string"},
    "mixed": {},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "pair": {"type": "array", "items": {"type": ["integer", "string"]}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "address": ADDRESS,
    "addresses": {"type": "array", "items": ADDRESS},
    "score": {"type": "integer", "minimum": 0, "description": "From 0 on."},
    "anything": {},
    "tags": {"type": "array", "items": {"type": "string"}},
    "work": {**ADDRESS, "type": ["null", "object"]},
    "active": {"type": "boolean"},
    "union": {"type": ["null", "integer", "string"]},
}


def load(cls):
    schema = typed(cls).load(where=WHERE, config={})
    assert not {"$ref", "$defs", "default", "anyOf"} & words(schema)
    return schema


def words(node):
    """All keys of a schema, at every depth, with those of fields."""
    if isinstance(node, list):
        return set().union(*map(words, node))
    return set(node).union(*map(words, node.values())) if isinstance(node, dict) else set()


def test_a_dataclass_of_everything():
    schema = load(Contact)
    fields = schema["properties"]
    assert sorted(fields["state"].pop("enum")) == ["closed", "open"]
    assert sorted(fields["mixed"].pop("enum"), key=str) == [1, None, "a"]
    assert set(fields["mixed"].pop("type")) == {"null", "integer", "string"}
    assert fields == PROPERTIES
    assert schema["required"] == list(PROPERTIES)[: list(PROPERTIES).index("tags")]
    assert set(schema) == {"type", "properties", "required"}
    jsonschema.Draft4Validator.check_schema(schema)


class Movie(TypedDict):
    title: str
    year: NotRequired[int | None]


class Loose(TypedDict, total=False):
    title: str


class Point(NamedTuple):
    x: int
    label: str | None = None


class Item(msgspec.Struct, rename="camel"):
    item_id: int
    unit_price: Decimal = Decimal(1)


class Tagged(msgspec.Struct, tag="cat", forbid_unknown_fields=True):
    lives: int


class Page(msgspec.Struct, Generic[T]):
    data: list[T]


@attrs.define
class Plane:
    seats: int
    names: list[str] = attrs.field(factory=list)


@dataclasses.dataclass
class Track:
    points: list[Point]


@pytest.mark.parametrize(
    ("cls", "properties", "required"),
    [
        (Movie, {"title": {"type": "string"}, "year": {"type": ["null", "integer"]}}, ["title"]),
        (Loose, {"title": {"type": "string"}}, None),
        (Point, {"x": {"type": "integer"}, "label": {"type": ["null", "string"]}}, ["x"]),
        (
            Item,
            {"itemId": {"type": "integer"}, "unitPrice": {"type": "number", "format": "singer.decimal"}},
            ["itemId"],
        ),
        (
            Tagged,
            {"type": {"type": "string", "enum": ["cat"]}, "lives": {"type": "integer"}},
            ["type", "lives"],
        ),
        (Page[Address], {"data": {"type": "array", "items": ADDRESS}}, ["data"]),
        (Plane, {"seats": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}}, ["seats"]),
        (
            Track,
            {
                "points": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": ["null", "integer", "string"]}},
                }
            },
            ["points"],
        ),
    ],
)
def test_other_kinds_of_classes(cls, properties, required):
    schema = load(cls)
    assert schema["properties"] == properties
    assert schema.get("required") == required
    assert schema["type"] == "object"
    assert schema.get("additionalProperties", True) is (cls is not Tagged)


# ---- pydantic ------------------------------------------------------------------------------------


class Street(pydantic.BaseModel):
    name: str


class Person(pydantic.BaseModel):
    id: int = pydantic.Field(alias="personId", description="The key.")
    name: str | None
    created_at: dt.datetime
    born: dt.date | None = None
    amount: Decimal
    share: Decimal | None = pydantic.Field(default=None, max_digits=5, decimal_places=2)
    key: uuid.UUID
    photo: bytes = b"x"
    colour: Colour | None
    state: Literal["open"]
    counts: dict[str, int]
    pair: tuple[int, str]
    street: Street
    streets: list[Street]
    work: Street | None = None
    secret: pydantic.SecretStr | None = pydantic.Field(default="hush", exclude=True)

    @pydantic.computed_field
    @property
    def initial(self) -> str:
        return (self.name or "?")[0]


STREET = {"type": "object", "title": "Street", "required": ["name"], "properties": {"name": {"type": "string"}}}


def test_a_pydantic_model():
    schema = load(Person)
    assert schema["properties"] == {
        "id": {"type": "integer", "description": "The key."},
        "name": {"type": ["null", "string"]},
        "created_at": {"type": "string", "format": "date-time"},
        "born": {"type": ["null", "string"], "format": "date"},
        "amount": {"type": "number", "format": "singer.decimal"},
        "share": {"type": ["null", "number"], "format": "singer.decimal"},
        "key": {"type": "string", "format": "uuid"},
        "photo": {"type": "string", "contentEncoding": "base64"},
        "colour": {"type": ["null", "string"], "enum": ["red", "blue", None], "title": "Colour"},
        "state": {"type": "string", "enum": ["open"]},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "pair": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["integer", "string"]}},
        "street": STREET,
        "streets": {"type": "array", "items": STREET},
        "work": {**STREET, "type": ["null", "object"]},
        "initial": {"type": "string"},
    }
    assert "hush" not in json.dumps(schema)
    assert set(schema["required"]) == set(schema["properties"]) - {"born", "share", "photo", "work"}


class ByAlias(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=True, extra="forbid")
    id: int = pydantic.Field(alias="personId")


class Wrapped(pydantic.BaseModel, Generic[T]):
    inner: T


@pydantic.dataclasses.dataclass
class Checked:
    id: int
    amount: Decimal = Decimal(1)


@dataclasses.dataclass
class Holder:
    street: Street | None


def test_more_of_pydantic():
    assert load(ByAlias)["properties"] == {"personId": {"type": "integer"}}
    assert load(ByAlias)["additionalProperties"] is False
    assert load(Wrapped[Street])["properties"] == {"inner": STREET}
    assert load(Checked)["properties"]["amount"] == {"type": "number", "format": "singer.decimal"}
    assert load(Checked)["required"] == ["id"]
    assert load(Holder)["properties"] == {"street": {**STREET, "type": ["null", "object"]}}


# ---- rows ------------------------------------------------------------------------------------------

CONTACT = Contact(
    id=1,
    name=None,
    created_at=dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    local_time=dt.datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001 - naive on purpose
    born=dt.date(2000, 1, 2),
    amount=Decimal("12345678901234567890.12"),
    key=uuid.UUID(int=7),
    photo=b"\x00\xff",
    colour=Colour.RED,
    level=None,
    state="open",
    mixed=1,
    counts={"a": 1},
    pair=(1, "b"),
    numbers=(1.5,),
    address=Address("Bern"),
    addresses=[Address("Oslo", "0150")],
    score=3,
    anything={"x": [1]},
    work=Address("Rome"),
    union="u",
)
PERSON = Person(
    personId=1,
    name="Ann",
    created_at=dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    amount=Decimal("0.10"),
    key=uuid.UUID(int=7),
    colour=Colour.RED,
    state="open",
    counts={"a": 1},
    pair=(1, "b"),
    street=Street(name="High"),
    streets=[],
)


@pytest.mark.parametrize(
    ("cls", "row", "checks"),
    [
        (
            Contact,
            dataclasses.asdict(CONTACT),
            {"photo": "AP8=", "colour": "red", "pair": [1, "b"], "amount": 12345678901234567890.12},
        ),
        (Contact, msgspec.to_builtins(CONTACT), {"photo": "AP8=", "created_at": "2024-01-02T03:04:05Z"}),
        (Person, PERSON.model_dump(), {"id": 1, "photo": "eA==", "initial": "A", "amount": 0.1}),
        (Movie, Movie(title="Jaws"), {"title": "Jaws"}),
        (Point, Point(1)._asdict(), {"x": 1, "label": None}),
        (Item, msgspec.to_builtins(Item(3)), {"itemId": 3, "unitPrice": 1}),
        (Tagged, msgspec.to_builtins(Tagged(9)), {"type": "cat", "lives": 9}),
        (Plane, attrs.asdict(Plane(3, ["x"])), {"seats": 3, "names": ["x"]}),
        (Track, dataclasses.asdict(Track([Point(1, "a")])), {"points": [[1, "a"]]}),
        (Checked, dataclasses.asdict(Checked(1)), {"id": 1, "amount": 1}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_row_fits_the_schema_of_its_class(cls, row, checks):
    tap = burler.tap("tap-x")
    tap.sync("rows")(lambda: [row])
    schema = load(cls)
    tap.schema("rows", schema)
    out = run_tap(tap)
    assert out.result.errors == {}
    (record,) = out.records("rows")
    assert set(record) == set(row)
    assert {name: record[name] for name in checks} == checks
    jsonschema.Draft4Validator(schema).validate(record)


def test_a_row_without_a_required_field_fails():
    tap = burler.tap("tap-x")
    tap.sync("rows")(lambda: [{"x": 1}, {"label": "a"}])
    tap.schema("rows", load(Point))
    out = run_tap(tap)
    assert "field 'x' is missing" in str(out.result.errors["rows"])


# ---- what can't be ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Node:
    children: list[Node]


class Ping(msgspec.Struct):
    pong: Pong | None


class Pong(msgspec.Struct):
    ping: Ping


class Tree(pydantic.BaseModel):
    children: list[Tree]


@dataclasses.dataclass
class Unresolved:
    x: NoSuchName  # noqa: F821


class UnresolvedModel(pydantic.BaseModel):
    x: NoSuchName  # noqa: F821


@dataclasses.dataclass
class Odd:
    inner: list[dict[str, complex]]


class Rows(pydantic.RootModel[list[int]]):
    pass


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (Node, "typed(Node): the class holds itself: Node -> Node."),
        (Ping, "typed(Ping): the class holds itself: Ping -> Pong -> Ping."),
        (Tree, "typed(Tree): the schema refers to itself"),
        (Unresolved, "typed(Unresolved): the name 'NoSuchName' in an annotation can't be resolved."),
        (UnresolvedModel, "NoSuchName"),
        (Odd, "field 'inner[].*' has the type complex, which has no JSON form"),
        (Rows, "typed(Rows): the class describes no object with named fields"),
    ],
)
def test_classes_without_a_schema(cls, message):
    with pytest.raises(DeclarationError) as caught:
        typed(cls).load(where=WHERE, config={})
    assert str(caught.value).startswith(f"{WHERE}: typed({cls.__name__}): ")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_what_is_typed():
    for cls in (Contact, Movie, Point, Item, Page[Address], Page, Plane, Person, Wrapped[Street], Checked, Rows):
        assert is_typed(cls), cls
    for value in (
        CONTACT,
        PERSON,
        dict,
        {},
        tuple,
        str,
        "Contact",
        None,
        1,
        list[Contact],
        lambda: 1,
        enum.Enum,
        Colour,
    ):
        assert not is_typed(value), value
    with pytest.raises(TypeError, match=r"typed\(\) takes a dataclass, .* not <class 'dict'>"):
        typed(dict)


def test_pydantic_is_not_loaded_for_others():
    code = (
        "import sys, dataclasses, burler.schema\n"
        "@dataclasses.dataclass\nclass A:\n    x: int\n"
        "burler.schema.typed(A).load(where='w', config={})\n"
        "print(*({'pydantic', 'attrs', 'attr'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
