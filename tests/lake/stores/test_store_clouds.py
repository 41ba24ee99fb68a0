"""Lakes on Google Cloud Storage and Azure when replies get lost: on imitations of the services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cloud_servers import PAGE, AzureServer, GcsServer, Server, azure_connection, serving
from s3_lakes import azure_lake, gcs_lake

from burler.errors import MissingExtra, StorageError, UsageError
from burler.lake import open_store, probe
from burler.testing import canary
from support.internals import azure_store as azure
from support.internals import gcs_store as gcs
from support.internals import lake_store, object_store

PATH = "raw/t/s/manifest.json"
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
CLOUDS = {"gcs": ("gcsfs", gcs_lake), "azure": ("adlfs", azure_lake)}


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest) -> Iterator[tuple[object_store.ObjectStore, Server]]:
    package, lake = CLOUDS[request.param]
    pytest.importorskip(package)
    with lake() as (store, server):
        assert probe(store)
        yield store, server


def content(store: object_store.ObjectStore, path: str = PATH) -> bytes | None:
    blob = store.read(path)
    return None if blob is None else blob.data


class Once:
    """A rule: the first requests that begin so get those answers, one after another."""

    def __init__(self, begin: tuple[str, ...], *answers: Any) -> None:
        self.begin, self.answers = begin, list(answers)

    def __call__(self, asked: str) -> Any:
        return self.answers.pop(0) if asked.startswith(self.begin) and self.answers else None


WRITES = ("PUT", "POST")
TROUBLES = {"busy": [(429, "TooMany")], "lost-request": ["hang up"], "lost-reply": ["answer is lost"]}
TROUBLE = pytest.mark.parametrize("answers", TROUBLES.values(), ids=TROUBLES.keys())


@TROUBLE
def test_writes_are_known_to_have_happened(cloud: tuple[object_store.ObjectStore, Server], answers: list[Any]) -> None:
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
def test_removals_are_known_to_have_happened(
    cloud: tuple[object_store.ObjectStore, Server], answers: list[Any]
) -> None:
    store, server = cloud
    tag = store.create(PATH, b"1")
    rule = Once(("DELETE",), *answers)
    with server.failing(rule):
        store.delete(PATH, tag=tag)
    assert rule.answers == [] and store.read(PATH) is None
    with pytest.raises(lake_store.Conflict):
        store.delete(PATH, tag=tag)


def test_a_data_file_is_published_once(cloud: tuple[object_store.ObjectStore, Server]) -> None:
    store, server = cloud
    file = store.new_file("raw/t")
    file.write(b"rows")
    with server.failing(Once(WRITES, "answer is lost")):
        file.publish("raw/t/f")
    other = store.new_file("raw/t")
    with pytest.raises(FileExistsError):
        other.publish("raw/t/f")
    other.discard()
    assert list(store.walk("raw")) == ["raw/t/f"] and content(store, "raw/t/f") == b"rows"


def test_a_big_data_file_goes_in_parts(
    cloud: tuple[object_store.ObjectStore, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, server = cloud
    monkeypatch.setattr(gcs, "PART_BYTES", 1 << 20)
    data = bytes(range(256)) * (3 << 12) + b"end"
    one, two = store.new_file("raw/t"), store.new_file("raw/t")
    for file in (one, two):
        file.write(data)
    one.publish("raw/t/f")
    with pytest.raises(FileExistsError):
        two.publish("raw/t/f")
    two.discard()
    assert content(store, "raw/t/f") == data
    if isinstance(server, GcsServer):
        assert sum("upload_id=" in asked for asked in server.requests) >= 4


def test_listings_of_many_pages(cloud: tuple[object_store.ObjectStore, Server]) -> None:
    store, server = cloud
    names = [f"raw/t/s{n:03}/f" for n in range(2 * PAGE + 7)]
    for name in names:
        server.put(f"lake/{name}", b"12", {})
    before = len(server.requests)
    assert [file.path for file in store.files("raw")] == names
    assert len(server.requests) - before == 3
    assert len(store.folders("raw/t")) == len(names)


def test_a_store_that_ignores_conditions_is_found_out(cloud: tuple[object_store.ObjectStore, Server]) -> None:
    store, _ = cloud
    fresh = object_store.ObjectStore(store.url, store._options, store._connect)
    bucket = fresh._calls()[0]
    put, delete = bucket.put, bucket.delete
    bucket.put = lambda *args, **more: put(*args, **{**more, "condition": None})  # type: ignore[method-assign]
    bucket.delete = lambda *args, **more: delete(*args, **{**more, "condition": None})  # type: ignore[method-assign]
    assert not probe(fresh)
    tag = fresh.create(PATH, b"1")
    with pytest.raises(FileExistsError):
        fresh.create(PATH, b"2")
    fresh.delete(PATH, tag=fresh.replace(PATH, b"2", tag=tag))
    with pytest.raises(lake_store.Conflict):
        fresh.delete(PATH, tag=tag)


def test_rights_and_buckets(cloud: tuple[object_store.ObjectStore, Server]) -> None:
    store, server = cloud
    for answer, cure in (((403, "AuthorizationFailure"), "Do the credentials hold"), (None, "name of the bucket")):
        wrong = object_store.ObjectStore(
            store.url if answer else store.url.replace("bucket", "none"), store._options, store._connect
        )
        with server.failing(lambda asked, answer=answer: answer), pytest.raises(UsageError, match=cure) as caught:
            wrong.check(must_exist=False)
        assert len(str(caught.value).splitlines()) <= 3 and str(caught.value).startswith(wrong.url)
    gone = object_store.ObjectStore(store.url.replace("bucket", "none"), store._options, store._connect)
    gone._held = store._held
    with pytest.raises(StorageError, match="name of the bucket"):
        gone.create(PATH, b"1")
    with pytest.raises(UsageError, match="there is no lake at"):
        store.check(must_exist=True)
    store.create(PATH, b"1")
    store.check(must_exist=True)


def test_urls_open_the_right_store() -> None:
    pytest.importorskip("gcsfs")
    pytest.importorskip("adlfs")
    with serving(GcsServer()) as url:
        opened = open_store("gs://bucket/a/b/", options={"endpoint_url": url, "token": "anon"})
        assert opened.url == "gs://bucket/a/b" and isinstance(opened._calls()[0], gcs.GcsBucket)  # type: ignore
    with serving(AzureServer()) as url:
        options = {"connection_string": azure_connection(url, canary("azure-key"))}
        opened = open_store("az://bucket/a", options=options)
        assert opened.locate("raw/x") == "az://bucket/a/raw/x" and isinstance(opened._calls()[0], azure.AzureBucket)  # type: ignore


def test_secrets_of_azure_do_not_show(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("adlfs")
    monkeypatch.setattr(object_store, "START_PATIENCE_SECONDS", 0.2)
    secret = canary("azure-key")
    with caplog.at_level("DEBUG", "burler"), pytest.raises((StorageError, UsageError)) as caught:
        open_store("az://bucket/lake", options={"connection_string": azure_connection("http://127.0.0.1:9", secret)})
    assert secret not in str(caught.value) and secret not in caplog.text


@pytest.mark.parametrize(("url", "package", "extra"), [("gs://b/x", "gcsfs", "gcs"), ("az://b/x", "adlfs", "azure")])
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, url: str, package: str, extra: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"needs the package '{package}', of burler's extra '{extra}'.*pip install '{package}>="
    ):
        open_store(url)
