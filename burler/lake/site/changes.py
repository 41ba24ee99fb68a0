"""What changed from one schema version to the next, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from burler.lake.site.fields import Field, Fields

Kind = Literal["added", "removed", "changed"]
_SHORT = 160


@dataclass(frozen=True, slots=True)
class View:
    """One schema version as pages show it: its fields, keys and bookmark fields."""

    fields: Fields
    keys: tuple[str, ...] = ()
    bookmarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``path`` is a field, or empty for what concerns the stream itself; ``what`` says it in words."""

    kind: Kind
    path: str
    what: str


def compare(old: View, new: View) -> tuple[Change, ...]:
    """All differences: those of the stream first, then fields added, removed and changed, each in schema order."""
    before = {field.path: field for field in old.fields.fields}
    after = {field.path: field for field in new.fields.fields}
    return (
        *_of_stream(old, new),
        *_only_in("added", after, before),
        *_only_in("removed", before, after),
        *(
            Change("changed", path, "; ".join(said))
            for path, field in after.items()
            if path in before and (said := list(_differences(before[path], field)))
        ),
    )


def counts(changes: Sequence[Change]) -> str:
    """``2 added, 1 removed``; what there is none of is left out."""
    kinds: tuple[Kind, ...] = ("added", "removed", "changed")
    found = [(sum(change.kind == kind for change in changes), kind) for kind in kinds]
    return ", ".join(f"{count:,} {kind}" for count, kind in found if count)


def _of_stream(old: View, new: View) -> Iterator[Change]:
    for words, before, after in (("keys", old.keys, new.keys), ("bookmark fields", old.bookmarks, new.bookmarks)):
        if before != after:
            yield Change("changed", "", f"{words}: was {_names(before)}, now {_names(after)}")
    if old.fields.description != new.fields.description:
        yield Change("changed", "", _text("description", old.fields.description, new.fields.description))


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _only_in(kind: Kind, here: dict[str, Field], there: dict[str, Field]) -> Iterator[Change]:
    """Fields of one side alone. What lies inside such a field is counted, not listed."""
    alone = [field for field in here.values() if field.path not in there]
    paths = {field.path for field in alone}
    inside: dict[str, int] = {}
    tops: dict[str, str] = {}
    for field in alone:  # parents come before their fields
        tops[field.path] = tops[field.parent] if field.parent in paths else field.path
        inside[tops[field.path]] = inside.get(tops[field.path], -1) + 1
    for field in alone:
        if field.parent not in paths:
            yield Change(kind, field.path, _summary(field, inside[field.path]))


def _summary(field: Field, inside: int) -> str:
    words = [field.type]
    if field.nullable:
        words.append("may be null")
    if inside:
        words.append(f"with {inside:,} field{'s' if inside > 1 else ''} inside")
    return ", ".join(words)


def _differences(old: Field, new: Field) -> Iterator[str]:
    if old.type != new.type:
        yield f"type: was {old.type}, now {new.type}"
    if bool(old.nullable) != bool(new.nullable):
        yield "may be null now" if new.nullable else "may not be null any more"
    if old.required != new.required:
        yield "always there now" if new.required else "may be missing now"
    if old.limits != new.limits:
        yield f"limits: was {_cut('; '.join(old.limits)) or 'none'}, now {_cut('; '.join(new.limits)) or 'none'}"
    if old.description != new.description:
        yield _text("description", old.description, new.description)


def _text(what: str, old: str, new: str) -> str:
    if not old:
        return f"{what} is new: “{_cut(new)}”"
    return f"{what}: was “{_cut(old)}”, now {f'“{_cut(new)}”' if new else 'none'}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
