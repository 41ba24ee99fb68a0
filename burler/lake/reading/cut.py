"""What is taken out of rows, at any depth, while all that stays keeps its bytes.

A row is taken apart no further than needed: into its fields' source texts (``msgspec.Raw``), and below a field only
where something in it goes. So numbers keep their digits and texts their spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler.singer.messages import encode
from burler.surrogates import decode_veiled, unveil

Fields = dict[str, Raw]
_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_BLANKS = b" \t\r\n"


@dataclass(slots=True)
class Cut:
    """What goes at one place of the rows. ``keep``: these fields alone stay, less those of ``drop``; None: all others.

    ``below``: what goes inside of fields that stay. ``items``: what goes inside of the items, if here is an array.
    """

    drop: set[str] = field(default_factory=set)
    keep: dict[str, None] | None = None  # a set that has an order
    below: dict[str, Cut] = field(default_factory=dict)
    items: Cut | None = None

    def __bool__(self) -> bool:
        """Whether anything goes."""
        return bool(self.drop or self.keep is not None or self.below or self.items)

    def fields(self, row: Fields) -> None:
        """Take out of an object, in place."""
        if self.keep is not None:
            for name in [name for name in row if name not in self.keep]:
                del row[name]
        for name in self.drop:
            row.pop(name, None)
        for name, inner in self.below.items():
            value = row.get(name)
            if value is not None:
                row[name] = inner.value(value)

    def value(self, raw: Raw) -> Raw:
        """Take out of any JSON value: an object, or the items of an array."""
        text = bytes(raw)
        begins = text.lstrip(_BLANKS)[:1]
        if begins == b"{":
            row = _decode_fields(text)
            self.fields(row)
            return Raw(encode(row))
        if begins == b"[" and self.items:
            return Raw(encode([self.items.value(item) for item in _decode_items(text)]))
        return raw

    def record(self, text: bytes) -> bytes:
        """Take out of one row, given as JSON; also where a text of it holds half of a surrogate pair.

        Raises:
            msgspec.DecodeError: it is no JSON object.
        """
        cut, veiled = decode_veiled(self._record, text)
        return unveil(cut) if veiled else cut

    def _record(self, text: bytes) -> bytes:
        row = _decode_fields(text)
        self.fields(row)
        return encode(row)


def cut_of(off: Iterable[tuple[str, ...]], keep: Iterable[str] | None = None) -> Cut:
    """What to take out. ``off``: breadcrumbs of what is not wanted; ``keep``: the fields of a row that stay at most."""
    root = Cut(keep=None if keep is None else dict.fromkeys(keep))
    for crumb in sorted(off, key=len):
        _add(root, crumb)
    return root


def _add(cut: Cut, crumb: tuple[str, ...]) -> None:
    at = 0
    while at < len(crumb):
        step = crumb[at]
        if step == "items":
            if cut.items is None:
                cut.items = Cut()
            cut = cut.items
            at += 1
        elif step == "properties" and at + 1 < len(crumb):
            name = crumb[at + 1]
            if name in cut.drop or (cut.keep is not None and name not in cut.keep):
                return
            if at + 2 == len(crumb):
                cut.drop.add(name)
                cut.below.pop(name, None)
                return
            cut = cut.below.setdefault(name, Cut())
            at += 2
        else:
            return  # no place that rows have


def kept_struct(cut: Cut, names: Iterable[str]) -> tuple[Any, dict[str, str]] | None:
    """A msgspec type that reads the fields of ``names`` that stay and passes over all others, and its attribute for
    each of them; None where a name can't be a struct's. Only for rows of which no other field is wanted."""
    kept = [name for name in dict.fromkeys(names) if name not in cut.drop and (cut.keep is None or name in cut.keep)]
    attributes = {name: f"f{at}" for at, name in enumerate(kept)}
    try:
        made = msgspec.defstruct(
            "Row",
            [(attribute, Raw | UnsetType, UNSET) for attribute in attributes.values()],
            rename={attribute: name for name, attribute in attributes.items()},
            gc=False,
        )
        msgspec.json.Decoder(made)
    except (ValueError, TypeError):
        return None
    return made, attributes
