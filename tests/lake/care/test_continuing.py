"""What a rebuild leaves as it is: healthy streams, the place of each commit for readers that go on, whole names."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from care_lakes import TEXT, document, fill, put
from lake_reads import replay

from burler.lake import care, streams
from support.internals import layout

LONG_TAP = "tap-" + "x" * 300


def read(lake: Any, state: Any = None, *options: str) -> tuple[list[int], Any]:
    """One run of ``lake read``: the ids that come out, and the STATE at its end."""
    out = replay(lake, *options, state=state)
    return out.ids, out.state


def orphan(lake: Any, *ids: int, stream: str = "users") -> None:
    lake.clock.forward(60)
    rows = [{"id": one} for one in ids]
    put(lake, stream, f"{stream}-{{times}}-900.singer.gz", rows, lake.clock.moment, lake.schema(stream))


def test_a_manifest_that_is_right_stays_as_it_is(rich: Any) -> None:
    care.compact(rich.store)
    care.rebuild(rich.store)  # takes in the file of the partition folder
    before = {path: path.read_bytes() for path in rich.path.rglob("*") if path.is_file()}

    done = care.rebuild(rich.store)

    assert {path: path.read_bytes() for path in rich.path.rglob("*") if path.is_file()} == before
    assert done.is_whole
    assert [(one.stream, one.records > 0, one.adopted) for one in done.streams] == [
        ("orders of/us", True, ()),
        ("users", True, ()),
        ("users", True, ()),
    ]


def test_a_writer_is_left_alone_where_nothing_is_wrong(lake: Any) -> None:
    with lake.writer(max_file_records=2) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, 2))
        writer.state(lake.state("first"))
        care.rebuild(lake.store)
        writer.records(lake.page("users", 3))
        writer.state(lake.state("second"))
    assert lake.states == [{"at": "first"}, {"at": "second"}]
    assert lake.ids() == [1, 2, 3]


def test_a_rebuild_ends_each_claim_by_a_higher_epoch(lake: Any) -> None:
    fill(lake, 1)
    (before,) = document(lake)["writers"].values()
    orphan(lake, 7)
    care.rebuild(lake.store)
    (after,) = document(lake)["writers"].values()
    assert after["epoch"] == before["epoch"] + 1
    assert after["writer-id"] != before["writer-id"]


def test_a_reader_goes_on_from_its_state_after_a_rebuild(lake: Any) -> None:
    fill(lake, 2, 1)
    fill(lake, 2, stream="orders")
    _, state = read(lake)
    old = document(lake)["generation"]
    orphan(lake, 7)
    care.rebuild(lake.store)
    fill(lake, 1, start=20)
    orphan(lake, 8)
    care.rebuild(lake.store)  # the second generation after the one that the state knows

    out = replay(lake, state=state)

    assert (out.ids, out.warnings) == ([7, 20, 8], [])
    assert document(lake)["generation"] != old
    assert document(lake)["continues"][old] == 2
    assert read(lake, out.state)[0] == []
    # A state that is ahead of where the old manifest ended is of another lake.
    state["bookmarks"]["users"]["sequence"] = 4
    assert read(lake, state)[0] == [0, 1, 2, 7, 20, 8]


def test_generations_of_long_ago_are_forgotten(lake: Any) -> None:
    fill(lake, 1)
    first = document(lake)["generation"]
    for number in range(21):
        orphan(lake, 100 + number)
        care.rebuild(lake.store)
    assert len(document(lake)["continues"]) == 20
    assert first not in document(lake)["continues"]


def test_a_file_that_has_other_rows_now_is_read_again_with_all_others(lake: Any) -> None:
    fill(lake, 2, 1)
    _, state = read(lake)
    orphan(lake, 7)
    care.rebuild(lake.store)
    first = lake.path / lake.load().files[0].path
    first.write_bytes((lake.path / lake.load().files[1].path).read_bytes())  # a restored copy of another file

    care.rebuild(lake.store)

    assert document(lake)["continues"] == {}
    assert read(lake, state)[0] == [2, 2, 7]


def test_files_that_stand_in_for_a_compacted_one_keep_their_places(lake: Any) -> None:
    fill(lake, 2, 2)
    _, before = read(lake)
    fill(lake, 1, start=10)
    care.compact(lake.store)
    fill(lake, 1, start=20)
    _, after = read(lake)
    compacted = next(file for file in lake.load().files if file.stats.replaces)
    (lake.path / compacted.path).write_bytes(b"garbage")

    care.rebuild(lake.store)

    assert lake.ids() == [0, 1, 2, 3, 10, 20]
    assert read(lake, after)[0] == []
    assert read(lake, before)[0] == [10, 20]


def test_a_file_that_has_the_name_of_a_replaced_one_is_new(lake: Any) -> None:
    fill(lake, 2, 2)
    first = lake.path / lake.load().files[0].path
    care.compact(lake.store)
    _, state = read(lake)
    (lake.path / lake.load().files[0].path).write_bytes(b"garbage")
    times = dt.datetime(2024, 1, 2, 12, 1, tzinfo=dt.UTC)
    put(lake, "users", first.name, [{"id": 70}, {"id": 71}, {"id": 72}], times, lake.schema())

    care.rebuild(lake.store)

    assert read(lake, state)[0] == [70, 71, 72]


def test_an_unfinished_compaction_of_compacted_files_brings_nothing_again(lake: Any) -> None:
    fill(lake, 2, 2, 2)
    care.compact(lake.store)
    care.vacuum(lake.store, yes=True, older_than_seconds=0)
    fill(lake, 2, 2, start=10)
    _, state = read(lake)
    kept = lake.manifest_path().read_bytes()
    care.compact(lake.store)
    lake.manifest_path().write_bytes(kept)  # as if it had been killed before its commit

    care.rebuild(lake.store)

    assert len(lake.load().files) == 1
    assert read(lake, state)[0] == []


def test_the_cure_of_an_orphan_names_its_stream_alone(lake: Any) -> None:
    fill(lake, 1)
    orphan(lake, 7)
    (found,) = care.check(lake.store).findings
    assert found.cure.startswith("burler lake rebuild --tap tap-x --stream users takes it in; ")


def test_a_tap_whose_name_was_cut_is_found_by_its_manifests(lake: Any) -> None:
    lake.tap_id = LONG_TAP
    fill(lake, 1)
    fill(lake, 2, stream="s" * 300)
    (lake.path / "raw/singerlake.json").unlink()
    orphan_of = lake.path / "raw" / layout.component(LONG_TAP) / "users"
    (one,) = orphan_of.rglob("*.singer.gz")
    one.with_name(one.name.replace(".singer", "-9.singer")).write_bytes(one.read_bytes())
    assert [tap.tap_id for tap in care.ls(lake.store, taps=[LONG_TAP]).taps] == [LONG_TAP]

    done = care.rebuild(lake.store)

    assert done.is_whole
    assert [(one.tap_id, one.stream) for one in done.streams] == [(LONG_TAP, "s" * 300), (LONG_TAP, "users")]
    assert streams(lake.store) == [(LONG_TAP, "s" * 300), (LONG_TAP, "users")]
    assert sorted(read(lake)[0]) == [0, 0, 0, 1]
    assert list(json.loads((lake.path / "raw/singerlake.json").read_bytes())["taps"]) == [LONG_TAP]


def test_a_folder_s_name_in_a_manifest_gives_way_to_the_tap_s(lake: Any) -> None:
    lake.tap_id = LONG_TAP
    fill(lake, 1)
    path = lake.path / "raw" / layout.component(LONG_TAP) / "users" / "manifest.json"
    wire = json.loads(path.read_bytes())
    path.write_text(json.dumps(wire | {"tap_id": layout.component(LONG_TAP)}))

    assert streams(lake.store) == [(LONG_TAP, "users")]
    care.rebuild(lake.store)

    assert json.loads(path.read_bytes())["tap_id"] == LONG_TAP
    assert read(lake)[0] == [0]


def test_a_tap_whose_name_nothing_says_is_told_and_read_by_its_name(lake: Any) -> None:
    fill(lake, 1, start=5)
    lake.tap_id = LONG_TAP
    fill(lake, 1)
    (lake.path / "raw/singerlake.json").unlink()
    path = lake.path / "raw" / layout.component(LONG_TAP) / "users" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"tap_id": path.parts[-3]}))  # the folder's name

    out = replay(lake)
    assert out.ids == [5]
    assert f"raw/{layout.component(LONG_TAP)} is left out" in out.said
    assert read(lake, None, "--tap", LONG_TAP)[0] == [0]


def test_a_catalogue_that_was_lost_has_its_numbers_digit_for_digit(lake: Any) -> None:
    exact = {"multipleOf": Decimal("0.10000000000000000001"), "maximum": 123456789012345678901234567890}
    fill(lake, 1, number=exact)
    catalogue = lake.path / "raw/tap-x/catalogue.json"
    before = catalogue.read_bytes()
    catalogue.unlink()

    care.rebuild(lake.store)

    assert b"0.10000000000000000001" in before
    assert json.loads(catalogue.read_bytes(), parse_float=Decimal) == json.loads(before, parse_float=Decimal)


def test_a_catalog_json_of_another_writer_goes_on_in_the_catalogue(lake: Any) -> None:
    note = {"breadcrumb": ["properties", "id"], "metadata": {"note": "by people"}}
    entries = [{"tap_stream_id": name, "stream": name, "schema": {}, "metadata": [note]} for name in ("old", "users")]
    path = lake.path / "raw/tap-x/catalog.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"streams": entries, "owner": "us"}))

    fill(lake, 1, name=TEXT)

    new = json.loads(path.with_name("catalogue.json").read_bytes())
    assert new["owner"] == "us"
    assert new["streams"][0] == entries[0]
    assert note in new["streams"][1]["metadata"]
    assert set(new["streams"][1]["schema"]["properties"]) == {"id", "name"}
    assert json.loads(path.read_bytes())["streams"] == entries


@pytest.mark.parametrize("odd", [["x"], {"x": "1"}, {"x": -1}], ids=["a list", "a text in it", "a negative number"])
def test_a_manifest_that_continues_what_is_no_number_is_broken(lake: Any, odd: Any) -> None:
    fill(lake, 1)
    _, state = read(lake)
    wire = json.loads(lake.manifest_path().read_bytes())
    lake.manifest_path().write_text(json.dumps(wire | {"continues": odd}))
    assert [one.kind for one in care.check(lake.store).findings] == ["json"]

    care.rebuild(lake.store)

    assert read(lake, state)[0] == [0]
    assert care.check(lake.store).findings == ()
