"""``--select``: ``'contacts,contacts.name,!contacts.email'``, laid over what a catalog or the tap says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from burler.errors import CatalogError
from burler.singer import metadata as md
from burler.singer.selection import fields_selected, stream_selected
from burler.suggest import did_you_mean
from burler.words import some

Crumb = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectRule:
    """One part of ``--select``: ``contacts``, ``contacts.name``, ``!contacts.email``, with ``*`` and ``?``."""

    pattern: str
    keep: bool

    def field_of(self, stream: str) -> str | None:
        """The field pattern where the rule speaks of a stream's fields, "" where it speaks of the stream, None
        where it does not speak of it. A stream's own name may hold dots (``public.users``)."""
        if like(stream, self.pattern):
            return ""
        at = self.pattern.find(".")
        while at >= 0:
            if like(stream, self.pattern[:at]):
                return self.pattern[at + 1 :]
            at = self.pattern.find(".", at + 1)
        return None


def like(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern, in which ``*`` stands for any text and ``?`` for one character; all else, brackets
    too, stands for itself."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def parse_select(text: str) -> tuple[SelectRule, ...]:
    """``'contacts,contacts.name,!contacts.email'`` as rules.

    Raises:
        CatalogError: an empty part.
    """
    rules = []
    for part in text.split(","):
        part = part.strip()
        pattern = part.removeprefix("!").strip()
        if not pattern or pattern.startswith((".", "!")) or pattern.endswith("."):
            raise CatalogError(
                f"--select {text!r}: an empty part. Write stream or stream.field, parted by commas, '!' leaves out."
            )
        rules.append(SelectRule(pattern, not part.startswith("!")))
    return tuple(rules)


def apply_select(
    rules: tuple[SelectRule, ...],
    schemas: Mapping[str, Mapping[str, Any]],
    metadata: Mapping[str, md.MetadataMap],
    *,
    over: bool = False,
) -> dict[str, md.MetadataMap]:
    """Metadata with ``selected`` set as ``--select`` says; the maps given are not changed. Later rules win.

    Without ``over`` (no catalog) the rules alone decide: a stream is on if a rule keeps it or one of its fields; if
    all rules leave out, every stream is on but those and the ones that are off by default. Where rules keep
    fields of a stream, its other fields are off.

    With ``over`` the rules are laid over a catalog's selection: what they keep is added, what they leave out is
    taken away, all else stays. A stream that is off and gets a field gets nothing but its kept fields.

    ``automatic`` fields stay in any case, ``unsupported`` ones never come.

    Raises:
        CatalogError: a rule that matches no stream or no field.
    """
    out = {name: {crumb: dict(entry) for crumb, entry in compiled.items()} for name, compiled in metadata.items()}
    unused = set(rules)
    only_less = not any(rule.keep for rule in rules)
    for name, schema in schemas.items():
        compiled = out.setdefault(name, {})
        streamwide = [rule for rule in rules if rule.field_of(name) == ""]
        of_fields = {rule: field for rule in rules if (field := rule.field_of(name))}
        unused.difference_update(streamwide)
        was_on = stream_selected(compiled, stream=name, default=not over) and (over or only_less)
        kept = any(rule.keep for rule in of_fields)
        on = streamwide[-1].keep if streamwide else was_on or kept
        compiled.setdefault((), {})["selected"] = on
        if of_fields:
            bare = kept and not (over and (was_on or any(rule.keep for rule in streamwide)))
            unused -= _select_fields(of_fields, schema, compiled, bare=bare, stream=name)
    _refuse_unused(rules, unused, schemas)
    return out


def _select_fields(
    rules: Mapping[SelectRule, str], schema: Mapping[str, Any], compiled: md.MetadataMap, *, bare: bool, stream: str
) -> set[SelectRule]:
    """Set ``selected`` of every field; gives the rules that matched one. A kept field keeps its parents, and
    of a parent that was off nothing else. ``bare``: begin with no field at all."""
    shown = _field_names(schema)
    selected = dict.fromkeys(shown, False) if bare else fields_selected(shown, compiled, stream=stream)
    used: set[SelectRule] = set()
    for rule, pattern in rules.items():
        named = {crumb for crumb, name in shown.items() if like(name, pattern)}
        if named:
            used.add(rule)
        above = {one for crumb in named for one in _above(crumb)} if rule.keep else set()
        for crumb in shown:
            if crumb in above or crumb in named or not named.isdisjoint(_above(crumb)):
                selected[crumb] = rule.keep
    for crumb, wanted in selected.items():
        compiled.setdefault(crumb, {})["selected"] = wanted
    return used


def _above(crumb: Crumb) -> Iterator[Crumb]:
    while crumb := md.parent_of(crumb):
        yield crumb


def _field_names(schema: Mapping[str, Any]) -> dict[Crumb, str]:
    """Breadcrumb -> the name that patterns are held against: ``address.city``, ``tags.name``."""
    return {crumb: ".".join(md.names(crumb)) for crumb, _node in md.fields(schema)}


def _refuse_unused(
    rules: Iterable[SelectRule], unused: set[SelectRule], schemas: Mapping[str, Mapping[str, Any]]
) -> None:
    wrong = next((rule for rule in rules if rule in unused), None)
    if wrong is None:
        return
    known = ", ".join(sorted(schemas)) or "none"
    streams = [name for name in schemas if wrong.field_of(name)]
    if not streams:
        near = did_you_mean(wrong.pattern.partition(".")[0], schemas)
        raise CatalogError(f"--select: nothing is called '{wrong.pattern}'.{near} Streams: {known}.")
    field = wrong.field_of(streams[0]) or ""
    fields = list(dict.fromkeys(name for stream in streams for name in _field_names(schemas[stream]).values()))
    which = f"stream '{streams[0]}' has" if len(streams) == 1 else f"streams {', '.join(streams[:5])} have"
    raise CatalogError(
        f"--select: {which} no field '{field}'.{did_you_mean(field, fields)} Fields: {some(fields)}.",
    )
