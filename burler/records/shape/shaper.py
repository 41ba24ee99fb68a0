"""Shape: rows of user code to RECORD lines: selected fields, typed, lossless, a page at a time.

The fast path converts a page in C and looks at some of its columns; a row that does not fit there goes alone
through the exact path, which repairs it or says what is wrong. Both give the same (property tests hold them
together).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from burler.errors import BadRecordError, StreamError
from burler.pages import JsonPage
from burler.records.shape.bad_rows import DEFAULT_RULES, BadRows, Rules
from burler.records.shape.compile import Compiled, FastPath, count_unknown, is_name, ordered, repair
from burler.records.shape.exact import Exact
from burler.records.shape.form import shaping_form, with_required
from burler.records.shape.leaves import Leaf, column, plain, value_of
from burler.records.shape.proof import Vouch, Voucher, voucher
from burler.records.shape.unknown import Unknown
from burler.records.shape.values import DROPPED, Misfit
from burler.singer.bookmark_values import KeyValues
from burler.singer.messages import Vouched

_encoder = msgspec.json.Encoder(decimal_format="number")

SPILL_BYTES = 56 * 1024  # what a pipe holds, nearly
_CHUNK_BYTES = 32 * 1024  # as much as is encoded at once: it stays in the cache, and in memory that was used before
_MOST_ROWS = 256
FIRST_ROWS = 16


class Output:
    """Where lines go: a buffer, and what stands before and after each row. Here they stay in it.

    A buffer that grows to a whole page is memory that was not used before, which costs more than to write the page in
    parts: whoever hands lines on says from how many bytes on (``most_bytes``), and how (``flush``).

    Args:
        prefix, suffix: the suffix ends the line.

    Attributes:
        count: lines in the buffer. vouched: what is known of all rows in it.
    """

    __slots__ = ("_rows", "buffer", "count", "most_bytes", "prefix", "suffix", "vouched")

    def __init__(self, buffer: bytearray, prefix: bytes, suffix: bytes) -> None:
        self.buffer = buffer
        self.prefix = prefix
        self.suffix = suffix
        self.count = 0
        self.vouched: Vouched | None = None
        self.most_bytes = sys.maxsize
        self._rows = FIRST_ROWS

    def append(
        self,
        rows: list[Any],
        further: Mapping[int, Mapping[str, Any]] | None = None,
        vouched: Vouched | None = None,
    ) -> int:
        """Append rows; how many have become lines: all, or those before a chunk that holds a value without a form in
        JSON.

        Args:
            further: more fields of some rows, by their places in ``rows``.
            vouched: what is known of the rows.
        """
        self.vouched = None if self.count else vouched  # of rows of several pages nothing is said
        done, size = 0, 1 if further else self._rows
        while done < len(rows):
            begun = len(self.buffer)
            chunk = rows[done : done + size] if done or size < len(rows) else rows
            try:
                self._encode(chunk, further.get(done) if further else None)
            except (TypeError, ValueError, RecursionError):
                del self.buffer[begun:]
                return done
            done += len(chunk)
            self.count += len(chunk)
            written = len(self.buffer) - begun
            if not further:
                size = self._rows = max(1, min(_MOST_ROWS, _CHUNK_BYTES * len(chunk) // max(1, written)))
            if len(self.buffer) >= self.most_bytes:
                self.flush()
        return done

    def flush(self) -> None:
        """Hand on what is in the buffer, where somebody takes it."""

    def pass_on(self, lines: memoryview, count: int) -> None:
        """Take lines that were made elsewhere."""
        self.vouched = None
        self.buffer += lines
        self.count += count

    def _encode(self, rows: list[Any], further: Mapping[str, Any] | None) -> None:
        buffer, prefix = self.buffer, self.prefix
        buffer += prefix
        if len(rows) == 1:
            _encoder.encode_into(rows[0], buffer, -1)
            if further:
                _splice(further, buffer)
            buffer += self.suffix
            return
        lines = _encoder.encode_lines(rows)
        if not prefix and self.suffix == b"\n":
            buffer += lines
            return
        # Text in JSON holds no line end, so that each one here stands behind a row.
        buffer += lines.replace(b"\n", self.suffix + prefix)
        if prefix:
            del buffer[-len(prefix) :]


def _splice(fields: Mapping[str, Any], buffer: bytearray) -> None:
    """Put more fields into the object that the buffer ends with."""
    empty = buffer.endswith(b"{}")
    del buffer[-1:]
    if not empty:
        buffer += b","
    buffer += _encoder.encode(fields)[1:]


class Fitted:
    """Where rows go as dicts of what JSON knows (and Decimals), which share nothing with those that were given.

    Attributes:
        rows: that came.
    """

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(
        self,
        rows: list[Any],
        further: Mapping[int, Mapping[str, Any]] | None = None,
        vouched: Vouched | None = None,
    ) -> int:
        """See ``Output.append``: all of them or none."""
        try:
            made: list[dict[str, Any]] = msgspec.to_builtins(rows, builtin_types=(Decimal,))
            for place, fields in (further or {}).items():
                made[place].update(msgspec.to_builtins(fields, builtin_types=(Decimal,)))
            _encoder.encode(made)  # what has no form in UTF-8 is seen here
        except (TypeError, ValueError, RecursionError):
            return 0
        self.rows += made
        return len(made)


# ---- rows ------------------------------------------------------------------------------------------------------------

_FEW = 8  # rows that are cheaper to do one by one than to try again


@dataclass(slots=True)
class ShapedPage:
    """``count`` lines were added to the buffer; ``keys`` are their replication key values, if asked for.

    ``taken`` rows were dealt with; those at ``skipped`` have no line, since they did not fit and the rules let them
    go. ``error`` is set where a row did not fit: the rows before it are dealt with, it and those after it are not.
    """

    count: int
    keys: list[Any]
    error: StreamError | None = None
    skipped: list[int] = field(default_factory=list)

    @property
    def taken(self) -> int:
        """Rows that were dealt with."""
        return self.count + len(self.skipped)

    def followed_by(self, other: ShapedPage) -> ShapedPage:
        """This page and the one behind it as one."""
        skipped = self.skipped + [self.taken + i for i in other.skipped]
        return ShapedPage(self.count + other.count, KeyValues.joined((self.keys, other.keys)), other.error, skipped)


@dataclass(slots=True)
class FittedPage:
    """Rows as they would be emitted, as dicts, with their replication key values; the rest as in ``ShapedPage``.

    ``origin`` says where each of them stood among the rows that were given.
    """

    rows: list[dict[str, Any]]
    keys: KeyValues
    origin: list[int]
    error: StreamError | None = None


class Shaper:
    """Makes RECORD lines of one stream's rows.

    Args:
        schema: what is emitted: selected fields only.
        key_properties: name the row in errors.
        key: the replication key, whose values ``shape`` gives back.
        deselected: breadcrumbs of fields that are known and not wanted. They are dropped without being
            called unknown, also where ``additionalProperties`` would keep them.
        keys_required: a row without its key properties does not fit.
        rules: what happens to rows that do not fit.
    """

    def __init__(
        self,
        stream: str,
        schema: Mapping[str, Any],
        *,
        key_properties: tuple[str, ...] = (),
        key: str | None = None,
        deselected: Iterable[tuple[str, ...]] = (),
        keys_required: bool = True,
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        self.stream = stream
        self.schema = ordered(with_required(shaping_form(schema, deselected), key_properties if keys_required else ()))
        self.rules = rules
        self.key = key
        self.bad = BadRows(stream, key_properties, rules)
        protected = (*key_properties, *((key,) if key is not None else ()))
        self.exact = Exact(rules, protected=protected)
        self._voucher: tuple[Compiled, Voucher | None] | None = None
        self.fast = FastPath(self.schema, rules, raw=False)
        properties = self.schema.get("properties") or {}
        free = self.schema.get("additionalProperties") is True and not self.schema.get("patternProperties")
        self._takes_all = free and not any(node is DROPPED or not is_name(name) for name, node in properties.items())

    @property
    def unknown(self) -> Unknown:
        """Fields that were dropped because no schema knows them: counted in rows (in arrays: in objects)."""
        return self.exact.unknown

    def shape(self, rows: list[dict[str, Any]], output: Output | Fitted) -> ShapedPage:
        """Append each row."""
        structs = self.fast.structs(rows)
        if structs is None:
            return self._halve(rows, output)
        done, keys = self._write(self.fast, structs, rows, output)
        if done == len(rows):
            return ShapedPage(done, keys)
        return ShapedPage(done, keys).followed_by(self._halve(rows[done:], output))

    def _scratch(self) -> Exact:
        """For values on the way: what it finds unknown counts once they are out."""
        scratch = Exact(self.rules.strictly)
        scratch.unknown = Unknown(onto=self.unknown)
        return scratch

    def decode(self, page: JsonPage) -> list[Any] | None:
        """A page of bytes as structs, for ``write_decoded``; None: it must be read as dicts."""
        return self._bytes.structs(page)

    def write_decoded(self, structs: list[Any], output: Output) -> tuple[int, list[Any]]:
        """Append the lines of decoded rows: how many, and their replication key values. Where it is not all, some row
        after them does not fit, and the caller counts (``count``) what is unknown in those that are out."""
        return self._write(self._bytes, structs, None, output)

    @functools.cached_property
    def _bytes(self) -> FastPath:
        return FastPath(self.schema, self.rules, raw=True)

    def _write(
        self, path: FastPath, structs: list[Any], rows: list[dict[str, Any]] | None, output: Output | Fitted
    ) -> tuple[int, list[Any]]:
        compiled = path.compiled
        assert compiled is not None  # who made the structs?
        scratch, leaf = self._scratch(), compiled.key_leaf(self.key)
        try:
            further = self._look_at(compiled, structs, rows, scratch)
        except (Misfit, TypeError, ValueError, RecursionError):
            return 0, []
        done = output.append(structs, further, self._vouched(compiled, structs) if not further else None)
        if done < len(structs):  # a lone surrogate, an integer of too many digits
            if scratch.unknown:
                scratch = self._scratch()
                if rows is not None:
                    self.count(rows[:done])
            structs = structs[:done]
        if scratch.unknown:
            self.unknown.merge(scratch.unknown)
        return done, self._keys(compiled, leaf, structs, further)

    def _vouched(self, compiled: Compiled, structs: list[Any]) -> Vouch | None:
        """What can be said of rows that were looked at just now."""
        if self._voucher is None or self._voucher[0] is not compiled:
            self._voucher = compiled, voucher(compiled, self.schema)
        known = self._voucher[1]
        return known.vouch(structs) if known is not None else None

    def _look_at(
        self, compiled: Compiled, structs: list[Any], rows: list[dict[str, Any]] | None, scratch: Exact
    ) -> dict[int, dict[str, Any]]:
        """Look at what msgspec let through, and count what it did not know; gives the rows' further fields.

        Raises:
            Misfit: a value does not fit.
        """
        tree = compiled.tree
        if tree.looks:
            repair(tree, structs, _one(scratch))
        if rows is None:
            return {}
        if tree.counts_below:
            count_unknown(tree, rows, scratch.unknown)
        return self._further(compiled, rows, scratch) if tree.splices else {}

    def count(self, rows: list[dict[str, Any]]) -> None:
        """Count what is unknown in rows that are out, and known to fit."""
        scratch = self._scratch()
        for row in rows:
            scratch.row(row, self.schema)
        self.unknown.merge(scratch.unknown)

    def _keys(
        self, compiled: Compiled, leaf: Leaf | None, structs: list[Any], further: Mapping[int, Mapping[str, Any]]
    ) -> list[Any]:
        if self.key is None:
            return []
        attribute = compiled.tree.attributes.get(self.key)
        if attribute is None:
            return [further.get(i, {}).get(self.key) for i in range(len(structs))]
        if leaf is None:
            return column(attribute)(structs)
        given = leaf.given and leaf.given[: len(structs)]
        if leaf.moments is not None:
            values = leaf.moments[: len(structs)]
        else:
            values = [value_of(value) for value in column(attribute)(structs)]
            given = given and [value_of(value) for value in given]
        return values if given is None else KeyValues(values, given)

    def _further(self, compiled: Compiled, rows: list[dict[str, Any]], scratch: Exact) -> dict[int, dict[str, Any]]:
        """What belongs to the rows beside their structs' fields, by their places in the page."""
        known = compiled.tree.known
        if set().union(*rows) <= known:
            return {}
        if self._takes_all:
            taken = {
                i: {name: value for name, value in row.items() if name not in known}
                for i, row in enumerate(rows)
                if not row.keys() <= known
            }
            if plain(list(taken.values())):
                return taken
        found: dict[int, dict[str, Any]] = {}
        for i, row in enumerate(rows):
            names = row.keys() - known
            if names:
                made = scratch.beside([name for name in row if name in names], row, self.schema)
                if made:
                    found[i] = made
        return found

    def fit(self, rows: list[dict[str, Any]]) -> FittedPage:
        """The same rows as dicts, for a function of the author's that sees them."""
        fitted = Fitted()
        page = self.shape(rows, fitted)
        skipped = set(page.skipped)
        origin = [i for i in range(page.taken) if i not in skipped]
        if self.key is None:
            return FittedPage(fitted.rows, KeyValues(), origin, page.error)
        keys = KeyValues((row.get(self.key) for row in fitted.rows), [rows[i].get(self.key) for i in origin])
        return FittedPage(fitted.rows, keys, origin, page.error)

    def _fit_row(self, row: Mapping[str, Any], output: Output | Fitted) -> dict[str, Any] | None:
        """One row by the exact path, appended to ``output``; None where the rules let it go.

        Raises:
            BadRecordError: it does not fit, and the rules do not let it go (any more).
        """
        try:
            made = self.exact.row(row, self.schema)
            if self.exact.nulled:
                self.bad.null(row, self.exact.nulled)
            if not output.append([made]):
                raise Misfit(("(the whole row)",), row, "values that JSON has a form for")
        except (Misfit, RecursionError) as error:
            misfit = error if isinstance(error, Misfit) else Misfit(("(the whole row)",), row, "fewer levels")
            if self.rules.on_bad_record != "skip":
                raise self.bad.error(row, misfit) from None
            self.bad.skip(row, misfit)
            return None
        return made

    def _halve(self, rows: list[dict[str, Any]], output: Output | Fitted) -> ShapedPage:
        """Some row does not fit the fast path: halve the page until only rows near it take the exact path."""
        if self.fast.compiled is None or len(rows) <= _FEW:
            return self._one_by_one(rows, output)
        middle = len(rows) // 2
        first = self.shape(rows[:middle], output)
        if first.error is not None:
            return first
        return first.followed_by(self.shape(rows[middle:], output))

    def _one_by_one(self, rows: list[dict[str, Any]], output: Output | Fitted) -> ShapedPage:
        keys = KeyValues(given=[])
        page = ShapedPage(0, keys)
        for i, row in enumerate(rows):
            try:
                fitted = self._fit_row(row, output)
            except BadRecordError as error:
                page.error = error
                return page
            if fitted is None:
                page.skipped.append(i)
                continue
            page.count += 1
            if self.key is not None:
                keys.append(fitted.get(self.key))
                keys.given.append(row.get(self.key))
        return page


def _one(scratch: Exact) -> Any:
    """How a single value of a leaf goes out."""

    def one(leaf: Leaf, value: Any) -> Any:
        if value is msgspec.UNSET:
            return value
        return scratch.value(value_of(value), leaf.schema, leaf.place)

    return one
