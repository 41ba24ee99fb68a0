"""Lakes on Google Cloud Storage and Azure when replies get lost: on imitations of the services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cloud_servers import PAGE, GcsServer, Server, azure_connection
from s3_lakes import BIG, PATH, Once, again, azure_lake, content, gcs_lake

from burler.errors import MissingExtra, StorageError, UsageError
from burler.lake import Store, open_store, probe
from burler.testing import canary
from support.internals import clocks, lake_store

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
CLOUDS = {"gcs": ("gcsfs", gcs_lake), "azure": ("adlfs", azure_lake)}


@pytest.fixture(params=[*CLOUDS, *(f"batch-{cloud}" for cloud in CLOUDS)])
def cloud(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Server]]:
    """A store that has been probed, or that BATCH has opened."""
    package, lake = CLOUDS[request.param.removeprefix("batch-")]
    pytest.importorskip(package)
    with lake(batch=request.param.startswith("batch-")) as (store, server):
        assert probe(store)
        yield store, server


WRITES = ("PUT", "POST")
TROUBLES = {"busy": [(429, "TooMany")], "lost-request": ["hang up"], "lost-reply": ["answer is lost"]}
TROUBLE = pytest.mark.parametrize("answers", TROUBLES.values(), ids=TROUBLES.keys())


@TROUBLE
def test_writes_are_known_to_have_happened(cloud: tuple[Store, Server], answers: list[Any]) -> None:
    store, server = cloud
    for act, wanted in (
        (lambda: store.create(PATH, b"1"), b"1"),
        (lambda: store.replace(PATH, b"2", tag=(store.read(PATH) or pytest.fail()).tag), b"2"),
    ):
        rule = Once(WRITES, *answers)
        with server.failing(rule):
            tag = act()
        blob = store.read(PATH)
        assert rule.answers == [] and blob is not None and (blob.data, blob.tag) == (wanted, tag)


@TROUBLE
def test_removals_are_known_to_have_happened(cloud: tuple[Store, Server], answers: list[Any]) -> None:
    store, server = cloud
    tag = store.create(PATH, b"1")
    rule = Once(("DELETE",), *answers)
    with server.failing(rule):
        store.delete(PATH, tag=tag)
    assert rule.answers == [] and store.read(PATH) is None
    with pytest.raises(lake_store.Conflict):
        store.delete(PATH, tag=tag)


def test_a_data_file_is_published_once(cloud: tuple[Store, Server]) -> None:
    store, server = cloud
    file = store.new_file("raw/t")
    file.write(b"rows")
    with server.failing(Once(WRITES, "answer is lost")):
        file.publish("raw/t/f")
    other = store.new_file("raw/t")
    with pytest.raises(FileExistsError):
        other.publish("raw/t/f")
    other.discard()
    assert [file.path for file in store.files("raw")] == ["raw/t/f"] and content(store, "raw/t/f") == b"rows"


def test_a_big_data_file_goes_in_parts(cloud: tuple[Store, Server]) -> None:
    store, server = cloud
    before = len(server.requests)
    data = bytes(range(256)) * (BIG // 256) + b"of the second part"
    one, two = store.new_file("raw/t"), store.new_file("raw/t")
    for file in (one, two):
        file.write(data)
    one.publish("raw/t/f")
    with pytest.raises(FileExistsError):
        two.publish("raw/t/f")
    two.discard()
    assert content(store, "raw/t/f") == data
    if isinstance(server, GcsServer):
        assert sum("upload_id=" in asked for asked in server.requests[before:]) >= 4


def test_listings_of_many_pages(cloud: tuple[Store, Server]) -> None:
    store, server = cloud
    names = [f"raw/t/s{n:03}/f" for n in range(2 * PAGE + 7)]
    for name in names:
        server.put(f"{store.url.partition('bucket/')[2]}/{name}", b"12", {})
    before = len(server.requests)
    assert [file.path for file in store.files("raw")] == names
    assert len(server.requests) - before == 3
    assert len(store.folders("raw/t")) == len(names)


def test_a_store_that_ignores_conditions_is_found_out(cloud: tuple[Store, Server]) -> None:
    store, server = cloud
    fresh = again(store, server)
    server.heeds_conditions = False
    try:
        assert not probe(fresh)
        tag = fresh.create(PATH, b"1")
        with pytest.raises(FileExistsError):
            fresh.create(PATH, b"2")
        fresh.delete(PATH, tag=fresh.replace(PATH, b"2", tag=tag))
        with pytest.raises(lake_store.Conflict):
            fresh.delete(PATH, tag=tag)
    finally:
        server.heeds_conditions = True


def test_rights_and_buckets(cloud: tuple[Store, Server]) -> None:
    store, server = cloud
    refused = pytest.raises(UsageError, match="Do the credentials hold")
    with server.failing(lambda asked: (403, "AuthorizationFailure")), refused as caught:
        again(store, server)
    assert len(str(caught.value).splitlines()) <= 3 and str(caught.value).startswith(store.url)
    with server.failing(lambda asked: (404, "ContainerNotFound")):
        with pytest.raises(UsageError, match="name of the bucket"):
            again(store, server)
        with pytest.raises(StorageError, match="name of the bucket"):
            store.create(PATH, b"1")
    with pytest.raises(UsageError, match="there is no lake at"):
        again(store, server, must_exist=True)
    store.create(PATH, b"1")
    assert again(store, server, must_exist=True).url == store.url


def test_secrets_of_azure_do_not_show(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("adlfs")
    secret = canary("azure-key")
    raises = pytest.raises((StorageError, UsageError))
    with caplog.at_level("DEBUG", "burler"), clocks.briefly(0.2), raises as caught:
        open_store("az://bucket/lake", options={"connection_string": azure_connection("http://127.0.0.1:9", secret)})
    assert secret not in str(caught.value) and secret not in caplog.text


@pytest.mark.parametrize(("url", "package", "extra"), [("gs://b/x", "gcsfs", "gcs"), ("az://b/x", "adlfs", "azure")])
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, url: str, package: str, extra: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"needs the package '{package}', of burler's extra '{extra}'.*pip install '{package}>="
    ):
        open_store(url)
