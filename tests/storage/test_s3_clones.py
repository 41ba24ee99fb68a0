"""Stores that speak like S3 and keep no conditions, or not all: found out before anything is written."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from s3_lakes import PATH, Once, content, s3_lake, unconditional

from burler.lake import probe
from support.internals import lake_store


def test_a_store_that_ignores_conditions_is_found_out(s3_server: Any) -> None:
    store = s3_lake(s3_server)
    with unconditional(s3_server):
        assert not probe(store) and not store.conditional
        assert s3_server.keys() == []
        tag = store.create(PATH, b"1")
        with pytest.raises(FileExistsError):
            store.create(PATH, b"2")
        new = store.replace(PATH, b"2", tag=tag)
        with pytest.raises(lake_store.Conflict):
            store.replace(PATH, b"3", tag=tag)
        with pytest.raises(lake_store.Conflict):
            store.delete(PATH, tag=tag)
        file = store.new_file("raw/t")
        with pytest.raises(FileExistsError):
            file.publish(PATH)
        file.publish("raw/t/f")
        store.delete(PATH, tag=new)
        assert [file.path for file in store.files("raw")] == ["raw/t/f"]


@pytest.mark.parametrize("replaced", ["always", "never"])
def test_a_store_that_keeps_only_the_condition_of_creating(s3_server: Any, replaced: str) -> None:
    half = {"If-Match": None if replaced == "always" else '"another"'}
    store = s3_lake(s3_server)
    with s3_server.failing(lambda asked: half if asked.startswith("PUT") else None):
        assert not probe(store) and s3_server.keys() == []
        tag = store.create(PATH, b"1")
        store.replace(PATH, b"2", tag=tag)
        with pytest.raises(lake_store.Conflict):
            store.replace(PATH, b"3", tag=tag)
    assert content(store) == b"2"


def test_a_store_that_does_not_know_conditions(s3_server: Any) -> None:
    store = s3_lake(s3_server)
    with s3_server.failing(Once("PUT", (501, "NotImplemented"))):
        assert not probe(store)
    store.create(PATH, b"1")
    assert content(store) == b"1" and not store.conditional


def test_a_store_that_only_deletes_without_conditions(s3_server: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = s3_lake(s3_server)
    with caplog.at_level(logging.INFO), unconditional(s3_server, writes=False):
        assert probe(store)
        assert "removes files without a condition" in caplog.text
        tag = store.create(PATH, b"1")
        new = store.replace(PATH, b"2", tag=tag)
        with pytest.raises(lake_store.Conflict):
            store.delete(PATH, tag=tag)
        store.delete(PATH, tag=new)
    assert s3_server.keys() == []
