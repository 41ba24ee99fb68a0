"""Lists and maps of Arrow taken apart, so that what is in them is text of one array, and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.pipeline.arrow_text import Parts, Unsure, join


def around_nulls(array: Any, present: Callable[[Any], Parts]) -> Parts:
    """The text of those that are there, and null where none is: what lies below a null must not be looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not array.null_count:
        return present(array)
    there = array.drop_null()
    text = join(present(there), len(there))
    valid = array.is_valid()
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int32())), 1), pa.nulls(1, pa.int32())[0])
    return [text.take(places)]


def flattened(array: Any) -> tuple[Any, Any]:
    """The items of lists (none of them null) in one array, and where each list begins and ends in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = pc.list_flatten(array)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return flat, _from_zero(array.offsets)
    ends = pc.cumulative_sum(pc.list_value_length(array).cast(pa.int64()))
    return flat, pa.concat_arrays([pa.array([0], pa.int64()), ends])


def entries(array: Any) -> tuple[Any, Any, Any]:
    """The keys and the values of maps (none of them null), and where each map begins and ends in them."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first), _from_zero(offsets)


def _from_zero(offsets: Any) -> Any:
    import pyarrow.compute as pc

    return pc.subtract(offsets, offsets[0]) if offsets[0].as_py() else offsets


def _lists(values: Any, offsets: Any) -> Any:
    import pyarrow as pa

    return (pa.LargeListArray if offsets.type == pa.int64() else pa.ListArray).from_arrays(offsets, values)


def joined_lists(text: Any, offsets: Any) -> Any:
    """The text of all items as the text of each list, with commas between."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = text if text.type == pa.string() else text.cast(pa.string())  # the kernel knows no other
    return pc.binary_join(_lists(text, offsets), ",")


def check_distinct(keys: Any, offsets: Any) -> None:
    """Raise ``Unsure`` if a map has a key twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    owners = pc.list_parent_indices(_lists(keys, offsets)).cast(pa.string())
    if pc.count_distinct(join([owners, ":", keys], len(keys))).as_py() != len(keys):
        raise Unsure
