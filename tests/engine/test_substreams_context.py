"""Each function of a family has its own bookmark, state and context; the method of its parent holds of a child."""

from __future__ import annotations

import hashlib
from typing import Any
from unittest.mock import ANY

import pytest
from families import CHILD, GRANDCHILD, PARENT, parents_of, three_levels

import burler
from burler.errors import DeclarationError
from burler.testing import TapRun, discover, run_tap, without_times

# ---- context, bookmark and state of each ------------------------------------------------------------


def test_each_function_sees_its_own_bookmark_state_and_name_however_they_are_interleaved():
    tap = burler.tap("tap-family")
    seen: list[tuple[str, Any, Any]] = []

    def note(stream: burler.StreamRun) -> None:
        assert tap.get_bookmark() == stream.bookmark
        assert tap.key_properties == stream.key_properties
        seen.append((stream.name, stream.bookmark, dict(stream.state)))

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def parents(stream):
        note(stream)
        for i in (5, 6):
            yield {"id": i, "key": i}
            note(stream)
            stream.state["parent"] = i
        note(stream)

    @tap.sync("children", parent="parents", key_properties=["parent", "id"], replication_key="id", schema=CHILD)
    def children(parent, stream):
        note(stream)
        for i in (1, 2):
            yield {"id": i, "parent": parent["id"]}
            note(stream)
        stream.state["child"] = parent["id"]

    digest = hashlib.blake2b(b'{"a":1}', digest_size=8).hexdigest()
    state = {
        "bookmarks": {
            "parents": {"key": 5, "stream_state": {"a": 1}},
            "children": {"id": -3, "parent_bookmark": {"key": 5, "stream_state": digest}},
        }
    }
    for page in (1, 2, 1000):
        seen.clear()
        run = run_tap(tap, {"page_max_rows": page}, state=state)
        assert not run.result.errors
        assert {(name, bookmark) for name, bookmark, _ in seen} == {("parents", 5), ("children", -3)}
        assert [own for name, _, own in seen if name == "children"] == [{}] * 3 + [{"child": 5}] * 3
        assert [own for name, _, own in seen if name == "parents"][-1] == {"a": 1, "parent": 6}
        assert run.states[-1] == {
            "bookmarks": {
                "parents": {"key": 6, "stream_state": {"a": 1, "parent": 6}},
                "children": {"id": 2, "parent_bookmark": ANY, "stream_state": {"child": 6}},
            }
        }
        assert run.states[-1]["bookmarks"]["children"]["parent_bookmark"]["key"] == 6


def test_the_bookmark_of_a_child_moves_when_all_is_out():
    def tap_of(broken: bool) -> burler.Tap:
        tap = burler.tap("tap-family")
        parents = tap.stream("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)

        @parents.sync
        def rows():
            yield {"id": 1, "key": 1}
            if broken:
                raise RuntimeError("boom")
            yield {"id": 2, "key": 2}

        children = parents.substream("children", key_properties="id", replication_key="id", schema=CHILD)
        children.sync(lambda parent: [{"id": 10 * parent["id"], "parent": parent["id"]}])
        return tap

    broken = run_tap(tap_of(True), {"page_max_rows": 1})
    assert broken.result.errors
    assert "id" not in broken.states[-1]["bookmarks"].get("children", {})
    assert run_tap(tap_of(False)).states[-1]["bookmarks"]["children"]["id"] == 20


def test_start_date_is_a_childs_first_bookmark_too():
    tap = burler.tap("tap-family")
    seen = []
    at = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}
    parents = tap.stream("parents", replication_key="at", schema=at)
    parents.sync(lambda: [{"at": "2024-05-01T00:00:00Z"}])
    parents.substream("own", replication_key="at", schema=at).sync(lambda stream: seen.append(stream.bookmark))
    parents.substream("none", schema=at).sync(lambda stream: seen.append(stream.bookmark))
    run_tap(tap, {"start_date": "2024-01-01T00:00:00Z"})
    assert seen == ["2024-01-01T00:00:00Z", None]


def test_a_state_of_a_child_that_is_no_json_names_the_child():
    tap, parents = parents_of(1)

    @parents.substream("children", schema=CHILD).sync
    def rows(parent, stream):
        stream.state["x"] = object()
        yield {"id": 1, "parent": 1}

    assert "stream 'children'" in str(run_tap(tap).result.errors["parents"])


def test_the_client_and_the_config_come_by_name():
    tap, parents = parents_of(2)
    made = []

    @tap.client
    def client(config):
        made.append(config)
        return {"n": config["n"]}

    @parents.substream("children", schema=CHILD).sync
    def rows(client, config, parent, state, catalog, stream):
        assert client["n"] == config["n"] == tap.client.get("n")
        assert set(catalog.entries) == {"parents", "children"}
        assert state == {"currently_syncing": "parents"}
        yield {"id": client["n"], "parent": parent["id"]}

    run = run_tap(tap, {"n": 4})
    assert not run.result.errors
    assert [row["id"] for row in run.records("children")] == [4, 4]
    assert len(made) == 1


# ---- replication method -----------------------------------------------------------------------------


def activations(run: TapRun) -> list[str]:
    return [m["stream"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"]


def method_in_catalog(tap: burler.Tap, stream: str) -> str:
    return discover(tap, {}).entries[stream].replication_method or ""


def test_children_are_replicated_as_their_parent_is():
    full = run_tap(three_levels())
    assert set(activations(full)) == {"parents", "children", "grandchildren"}
    incremental = run_tap(three_levels(replication_key="key", order="asc"))
    assert activations(incremental) == []
    assert all("version" not in m for m in incremental.messages)


def test_a_child_that_says_full_table_of_itself_does_not_drop_the_rows_of_earlier_runs():
    tap, parents = parents_of(2, replication_key="key", order="asc")
    parents.substream("children", replication_method=burler.FULL_TABLE, schema=CHILD).sync(
        lambda parent: [{"id": 1, "parent": parent["id"]}]
    )
    assert activations(run_tap(tap)) == []
    assert method_in_catalog(tap, "children") == "INCREMENTAL"


def test_a_grandchild_below_an_incremental_child_of_a_full_table():
    """The child asks for what is new by its own bookmark, so its children are never complete either."""
    tap, parents = parents_of(2)
    children = parents.substream("children", key_properties="id", replication_key="id", schema=CHILD)
    children.sync(lambda parent, stream: [{"id": stream.bookmark or 0, "parent": parent["id"]}])
    children.substream("grandchildren", schema=GRANDCHILD).sync(lambda: [{"id": 1}])
    assert set(activations(run_tap(tap))) == {"parents"}


def test_a_method_that_metadata_gives_the_parent_holds_of_its_children():
    tap, parents = parents_of(2)
    parents.metadata({"": {"forced-replication-method": "INCREMENTAL", "valid-replication-keys": ["key"]}})
    parents.substream("children", schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    tap.stream("beside", emitted_by="children", schema=CHILD)
    run = run_tap(tap)
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert activations(run) == []
    assert method_in_catalog(tap, "children") == "INCREMENTAL"


def test_a_method_that_the_user_chooses_for_the_parent_holds_of_its_children():
    tap, parents = parents_of(2)
    parents.metadata({"": {"valid-replication-keys": ["key", "id"]}})
    parents.substream("children", schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    catalog = discover(tap, {}).to_wire()
    for entry in catalog["streams"]:
        entry["metadata"][0]["metadata"]["selected"] = True
    catalog["streams"][0]["metadata"][0]["metadata"] |= {"replication-method": "INCREMENTAL", "replication-key": "key"}
    run = run_tap(tap, catalog=catalog)
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert activations(run) == []


def test_metadata_that_calls_a_child_of_an_incremental_stream_a_full_table_is_refused():
    tap, parents = parents_of(2, replication_key="key")
    children = parents.substream("children", schema=CHILD)
    children.sync(lambda parent: [])
    children.metadata({"": {"forced-replication-method": "FULL_TABLE"}})
    with pytest.raises(DeclarationError, match=r"stream 'children'.*FULL_TABLE.*'parents'"):
        discover(tap, {})


def test_an_emitted_stream_may_be_a_full_table_where_its_author_says_so():
    """Its function may yield all of it in each run: a small table beside a long one."""
    tap = burler.tap("tap-family")
    tap.sync("main", key_properties="id", replication_key="key", schema=PARENT)(lambda: [("rates", {"id": 1})])
    tap.stream("rates", emitted_by="main", replication_method=burler.FULL_TABLE, key_properties="id", schema=PARENT)
    assert set(activations(run_tap(tap))) == {"rates"}


# ---- the tap's own catalog, given back ----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"replication_key": "key", "order": "asc"}])
def test_the_taps_own_catalog_gives_the_same_run(options: dict[str, Any]):
    tap = three_levels(**options)
    catalog = discover(tap, {}).to_wire()
    for entry in catalog["streams"]:
        entry["metadata"][0]["metadata"]["selected"] = True
    catalog["streams"].reverse()  # the order is the tap's own affair
    config = {"full_table_versions": False}
    assert without_times(run_tap(tap, config, catalog=catalog).messages) == without_times(run_tap(tap, config).messages)
