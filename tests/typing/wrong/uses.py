"""What a type checker must refuse: each line with ``# wrong:`` is an error, of mypy's code and of pyright's rule."""

from collections.abc import Iterator
from typing import Any

import burler
import burler.spark
from burler import StreamRun
from burler.http import Client, Offset
from burler.testing import bind_stream, run_tap, verify_tap

tap = burler.tap("tap-x", config_sepc=["a"])  # wrong: arg-type reportArgumentType


@tap.sync("a", key_propertys="id")  # wrong: call-arg reportCallIssue
def a() -> list[dict[str, Any]]:
    return []


@tap.sync("b", replication_key=5)  # wrong: arg-type reportArgumentType
def b() -> list[dict[str, Any]]:
    return []


@tap.sync("c", bookmark_strategy=100)  # wrong: arg-type reportArgumentType
def c() -> list[dict[str, Any]]:
    return []


@tap.sync("d", bookmark_strategy=burler.EveryN)  # wrong: arg-type reportArgumentType
def d() -> list[dict[str, Any]]:
    return []


@tap.sync("e", order="ascending")  # wrong: arg-type reportArgumentType
def e() -> list[dict[str, Any]]:
    return []


@tap.sync("f", replication_method="INCREMENTL")  # wrong: arg-type reportArgumentType
def f() -> list[dict[str, Any]]:
    return []


@tap.sync  # wrong: arg-type reportArgumentType
def g() -> list[dict[str, Any]]:
    return []


@tap.sync("h", retry_sync_on="ConnectionError")  # wrong: arg-type reportArgumentType
def h(client: Client, stream: StreamRun) -> Iterator[burler.JsonPage]:
    yield from client.pages("/h", paramz={"a": 1})  # wrong: call-arg reportCallIssue
    yield from client.rows("/h")  # wrong: misc reportReturnType
    stream.state = []  # wrong: assignment reportAttributeAccessIssue
    stream.save_bookmrk()  # wrong: attr-defined reportAttributeAccessIssue


h()  # wrong: call-arg reportCallIssue
h(1, StreamRun(tap, "h"))  # wrong: arg-type reportArgumentType


@tap.stream
class I(burler.Stream):  # noqa: E742
    key_properties = 5  # wrong: assignment reportAssignmentType
    replication_key = 5  # wrong: assignment reportAssignmentType
    bookmark_strategy = burler.Since(1, 1.0, 1)  # wrong: assignment reportAssignmentType
    retry_sync_on = "ConnectionError"  # wrong: assignment reportAssignmentType


tap.stream("j", workers="4")  # wrong: call-overload reportArgumentType
tap.stream("k").snyc(b)  # wrong: attr-defined reportAttributeAccessIssue
tap.tail("b", overlap="yes")  # wrong: arg-type reportArgumentType
tap.stream("l").tail(new_record_polling_interval_ms="5")  # wrong: call-overload reportArgumentType
tap.partitions("j", order="ascending")  # wrong: arg-type reportArgumentType

burler.json_fil("a.json")  # wrong: attr-defined reportAttributeAccessIssue
burler.http.Clinet("https://api.example.com")  # wrong: attr-defined reportAttributeAccessIssue
burler.lake.raed("./lake")  # wrong: attr-defined reportAttributeAccessIssue
burler.spark.exprot(None, "./lake", "./tables")  # wrong: attr-defined reportAttributeAccessIssue
burler.config.loda  # wrong: attr-defined reportAttributeAccessIssue  # noqa: B018
Client("https://api.example.com", retrys=3)  # wrong: call-arg reportCallIssue
Client("https://api.example.com", retries="3")  # wrong: arg-type reportArgumentType
Offset(page_size=100)  # wrong: call-arg reportCallIssue
burler.files.export(request=str, ready=len, download=5)  # wrong: arg-type reportArgumentType
burler.json_page("[]")  # wrong: arg-type reportArgumentType

run_tap(tap, config="config.json")  # wrong: arg-type reportArgumentType
run_tap(tap).record("a")  # wrong: attr-defined reportAttributeAccessIssue
verify_tap(tap, ingore=["R1"])  # wrong: call-arg reportCallIssue
with bind_stream(tap, "a", bookmrk=1):  # wrong: call-arg reportCallIssue
    pass
