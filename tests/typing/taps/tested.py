"""A tap's own tests."""

from typing import Any, assert_type

import burler
from burler import StreamRun
from burler.testing import FakeClock, TapRun, bind_stream, discover, run_tap, verify_class, without_times

tap = burler.tap("tap-shop")


@tap.sync("orders", key_properties="id", replication_key="at")
def orders(stream: StreamRun) -> list[dict[str, Any]]:
    return [{"id": 1, "at": stream.bookmark}]


def test_function() -> None:
    with bind_stream(tap, "orders", bookmark="2024-05-01T00:00:00Z", partition={"shop": "a"}) as stream:
        assert_type(stream, StreamRun)
        assert orders(stream)[0]["id"] == 1
        assert_type(stream.state, dict[str, Any])
        stream.state = {"at": 1}


def test_run() -> None:
    out = run_tap(tap, {"tail": True}, clock=FakeClock(), limit=10)
    assert_type(out, TapRun)
    assert_type(out.messages, list[dict[str, Any]])
    assert_type(out.types, list[str])
    assert_type(without_times(out.messages), list[dict[str, Any]])
    assert not out.result.errors
    assert_type(discover(tap, {"tail": True}).entries["orders"].key_properties, tuple[str, ...])


TestRules = verify_class(tap, {}, ignore=["R502"], per_stream_ignores={"orders": ["B324"]})
