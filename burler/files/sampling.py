"""``schema``: a schema source made from files: Parquet from the footer, CSV and JSON from the rows of a sample."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from burler.errors import DataError, DeclarationError, FileError
from burler.files.contents import Contents, Table
from burler.files.options import ADDED, Csv, Options, patterns_of
from burler.numbers import is_count
from burler.pages import JsonPage, PageError
from burler.pipeline.yielded import rows_of
from burler.schema.infer import DEFAULT_FORMATS, DEFAULT_MAP_KEYS, Inference
from burler.schema_tree import types_of
from burler.storage.find import File, find
from burler.storage.location import shown

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)

Pattern = Any  # a path, a URL, several, or a function of the config


@dataclass(frozen=True, slots=True)
class Sampled:
    """A schema that is made from files; see ``schema``."""

    pattern: Pattern = field(repr=False)
    options: Options
    sample_rows: int
    sample_files: int
    nullable: bool
    map_keys: int
    formats: tuple[str, ...]
    storage_options: Any = field(repr=False)

    def load(self, *, where: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The schema.

        Raises:
            DeclarationError: no file, a broken one, no row in any of them, columns that are at odds.
        """
        pattern = self.pattern(config) if callable(self.pattern) else self.pattern
        more = self.storage_options(config) if callable(self.storage_options) else self.storage_options
        patterns = patterns_of(pattern)
        try:
            files = find(patterns, more).files
            if not files:
                raise FileError(f"no file fits {', '.join(shown(one) for one in patterns)}. Is the path right?")
            files.sort(key=lambda file: (file.modified or 0, file.name), reverse=True)
            return self._of(files[: self.sample_files])
        except (FileError, DataError, PageError, FileNotFoundError) as error:
            raise DeclarationError(f"{where}: burler.files.schema: {error}") from None

    def _of(self, files: list[File]) -> dict[str, Any]:
        inference = Inference(map_keys=self.map_keys, formats=self.formats)
        found: dict[str, Any] = {}
        for file in files:
            self.options.check(file)
            footers: list[Any] = []
            contents = Contents(replace(self.options, add=()), Table({}), footers.append)
            with contextlib.closing(contents.pages(file)) as pages:
                for page in _few(pages, self.sample_rows):
                    if isinstance(page, JsonPage):
                        inference.add_all(rows_of(page)[: self.sample_rows])
                    elif not footers:
                        inference.add_all(_typed(page.slice(0, self.sample_rows), self.options.csv or Csv()))
            for footer in footers:
                from burler.records.columns.types import properties_of

                _widen(found, properties_of(footer, nullable=self.nullable), file)
        if inference.records:
            inferred = inference.schema(nullable=self.nullable)
            _widen(found, inferred.get("properties", {}), files[0])
        if not found:
            raise FileError(f"there is no row in {', '.join(map(str, files))}, so nobody can say what the columns are.")
        found.update({name: dict(ADDED[name]) for name in self.options.add})
        return {"type": "object", "properties": found}


def schema(
    pattern: Any,
    *,
    format: str | None = None,
    compression: str | None = None,
    member: str | None = None,
    csv: Csv | None = None,
    records_path: str | Sequence[str] = (),
    add: Iterable[str] = (),
    sample_rows: int = 1000,
    sample_files: int = 3,
    nullable: bool = True,
    map_keys: int = DEFAULT_MAP_KEYS,
    formats: Iterable[str] = DEFAULT_FORMATS,
    storage_options: Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> Sampled:
    """A schema source: ``tap.schema("orders", method=burler.files.schema("in/orders-*.csv.gz"))``.

    Args:
        pattern: as ``read`` takes it, or a function of the config that gives it.
        sample_rows: so many rows of each file are looked at (of Parquet the footer alone counts).
        sample_files: so many files are looked at, those that changed last.
        nullable: let every field be null: a sample does not show all.
        map_keys, formats: as ``burler.inferred`` takes them.
        storage_options: as ``read`` takes it, or a function of the config.
        format, compression, member, csv, records_path, add: as ``read`` takes them.

    Raises:
        DeclarationError: an option that can't be.
    """
    options = Options(format, compression, member, csv, records_path, add)
    if not is_count(sample_rows, 1) or not is_count(sample_files, 1):
        raise DeclarationError("burler.files.schema: sample_rows and sample_files are whole numbers, 1 or more.")
    if not callable(pattern):
        pattern = patterns_of(pattern)
    chosen = (formats,) if isinstance(formats, str) else tuple(formats)
    return Sampled(pattern, options, sample_rows, sample_files, nullable, map_keys, chosen, storage_options)


def _few(pages: Iterator[Any], rows: int) -> Iterator[Any]:
    """Pages until they have so many rows."""
    for page in pages:
        yield page
        rows -= page.data.count(b"\n") or 1 if isinstance(page, JsonPage) else page.num_rows
        if rows <= 0:
            return


def _typed(batch: Any, csv: Csv) -> Iterator[dict[str, Any]]:
    """Rows of text with numbers and truth values where a whole column is such."""
    names = batch.schema.names
    for values in zip(*(_column(column, csv) for column in batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _column(column: Any, csv: Csv) -> list[Any]:
    texts = [None if text in csv.null_values else text for text in column.to_pylist()]
    known = {text for text in texts if text is not None}
    for kind, is_such in (
        (int, _WHOLE.fullmatch),
        (Decimal, _NUMBER.fullmatch),
        (set(csv.true_values).__contains__, {*csv.true_values, *csv.false_values}.__contains__),
    ):
        if all(map(is_such, known)):
            return [None if text is None else kind(text) for text in texts]
    if csv.zone is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    import pyarrow as pa

    from burler.files.cells import narrowing

    narrow = narrowing({"properties": {"it": {"type": ["null", "string"], "format": "date-time"}}}, csv)
    batches = narrow(pa.RecordBatch.from_arrays([column], names=["it"]))
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def _widen(found: dict[str, Any], more: Mapping[str, Any], file: File) -> None:
    """Add columns; one of two types becomes the wider one.

    Raises:
        FileError: there is none.
    """
    for name, node in more.items():
        before = found.get(name) or node  # {} says nothing
        if before == node or not node:
            found[name] = before
            continue
        first, second = set(types_of(before)), set(types_of(node))
        kinds = (first | second) - {"null"}
        if kinds == {"integer", "number"}:
            kinds = {"number"}
        if len(kinds) > 1:
            here, there = (" or ".join(sorted(types - {"null"})) or "null" for types in (second, first))
            raise FileError(
                f"column '{name}' is {here} in file '{file}' and {there} in another one.\n"
                "  Narrow the pattern, or write the schema yourself."
            )
        types = [*sorted({"null"} & (first | second)), *kinds]
        more_of = {**before, **node}
        if not kinds & {"object", "array"}:
            more_of = {key: value for key, value in more_of.items() if before.get(key) == node.get(key)}
        found[name] = {**more_of, "type": types if len(types) > 1 else types[0]}
