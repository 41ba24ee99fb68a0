"""JSON in a column of Arrow: texts that stand for the values that they spell."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from burler.pages import BROKEN, decoded
from burler.records.arrow.kernels import Parts, Unsure, bytes_of, join, one_text
from burler.records.shape.fixes import goes_as_it_is


class _JsonText(pa.ExtensionType):  # type: ignore[misc]
    """Strings, each a JSON text without white space around it."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "burler.json")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _JsonText:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return _JsonValue


class _JsonValue(pa.ExtensionScalar):  # type: ignore[misc]
    def as_py(self, **_options: Any) -> Any:
        """The value, not its text: of ``to_pylist`` a tap's author yields rows."""
        return None if self.value is None else decoded(self.value.as_py().encode())


JSON_TEXT = _JsonText()


def values_of(array: Any) -> list[Any]:
    """The values, numbers with a fraction as Decimals.

    Raises:
        ValueError: Python has no form for one.
    """
    texts = bytes_of(join([array.storage, ","], len(array)))
    try:
        values: list[Any] = decoded(b"[" + bytes(texts[:-1]) + b"]")
    except BROKEN as error:
        raise ValueError(f"JSON in a column can't be read: {error}") from None
    return values


def parts(array: Any) -> Parts:
    """The texts as they are, if none has half of a surrogate pair."""
    data = bytes(bytes_of(array.storage))
    if b"\\ud" in data or b"\\uD" in data or not goes_as_it_is(data):
        raise Unsure
    return [array.storage]


def as_column(array: Any) -> Any:
    """The same for a column of text, in which JSON's null is one."""
    (texts,) = parts(array)
    nulls = pc.equal(texts, one_text("null")[0])
    return pc.if_else(nulls, pa.nulls(1, pa.string())[0], texts) if pc.any(nulls).as_py() else texts
