"""Functions of tail runs stay what they are, whatever they are decorated with."""

from collections.abc import Callable, Iterator
from typing import assert_type

import burler

tap = burler.tap("tap-x")
handle = tap.stream("orders", new_record_polling_interval_ms=5000)


@tap.tail("events", overlap=True, key_properties="id", max_full_table_age_seconds=2.5)
def events(client: str) -> Iterator[dict[str, int]]:
    yield {"id": 1}


@handle.tail(overlap=True, key_properties="id")
def orders(config: dict[str, str]) -> Iterator[dict[str, int]]:
    yield {"id": 1}


@handle.tail
def more(config: dict[str, str]) -> list[int]:
    return []


@tap.wake("orders")
@handle.wake
@handle.wake()
def wakes(client: int) -> Iterator[None]:
    yield


@tap.ack("orders")
@handle.ack
@handle.ack()
def acks(bookmark: int) -> None: ...


assert_type(events("x"), Iterator[dict[str, int]])
assert_type(orders({}), Iterator[dict[str, int]])
assert_type(more({}), list[int])
assert_type(wakes(1), Iterator[None])
plain: Callable[[int], None] = acks
