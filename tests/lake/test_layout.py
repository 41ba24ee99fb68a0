"""Names to paths and back."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import UsageError
from support.internals import layout

FIRST = dt.datetime(2023, 1, 17, 18, 9, 3, 999999, tzinfo=dt.UTC)
LAST = dt.datetime(2023, 1, 17, 19, 11, 7, tzinfo=dt.timezone(dt.timedelta(hours=1)))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("users", "users"),
        ("public-users.v2_x", "public-users.v2_x"),
        ("..", "%2E%2E"),
        ("con", "%63on"),
        ("COM1", "%43OM1"),
        ("nul.tar.gz", "%6Eul.tar.gz"),
        ("console", "console"),
        ("com10", "com10"),
        ("ends.", "ends%2E"),
        ("%2F", "%252F"),
        (".", "%2E"),
        ("../../etc", "%2E.%2F..%2Fetc"),
        ("_hidden", "%5Fhidden"),
        ("a/b:c%d#e", "a%2Fb%3Ac%25d%23e"),
        ("a b=c{*?}", "a%20b%3Dc%7B%2A%3F%7D"),
        ("é", "%C3%A9"),
        ("😀", "%F0%9F%98%80"),
        ("nul\0", "nul%00"),
        ("catalogue.json", "%63atalogue.json"),
        ("Manifest.JSON", "%4Danifest.JSON"),
    ],
)
def test_components(name: str, folder: str) -> None:
    assert layout.component(name) == folder
    assert layout.name_of(folder) == name


def test_long_names_are_cut_and_stay_apart() -> None:
    one, two = layout.component("a" * 300), layout.component("a" * 299 + "b")
    assert one.startswith("a" * 150 + "~")
    assert len(one) == 150 + 1 + 11
    assert one != two
    assert layout.name_of(one) is None
    assert layout.component("a" * 200) == "a" * 200
    assert layout.component("a" * 201) != "a" * 201


def test_a_cut_never_splits_an_escape() -> None:
    for lead in range(4):
        folder = layout.component("x" * lead + "😀" * 60)
        head = folder.partition("~")[0]
        assert len(head) <= 150
        assert head[lead:].replace("%F0", "").replace("%9F", "").replace("%98", "").replace("%80", "") == ""


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_every_name_gives_one_safe_component_and_comes_back(name: str) -> None:
    folder = layout.component(name)
    assert set(folder) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%~")
    assert folder[0] not in "._"
    assert len(folder) <= 200
    if "~" not in folder:
        assert layout.name_of(folder) == name
    parsed = layout.parse_file_name(layout.file_name(name, FIRST, LAST, 3))
    assert parsed is not None
    assert parsed.stream == folder


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_names_that_can_be_no_folder(name: str) -> None:
    with pytest.raises(UsageError):
        layout.component(name)


def test_paths() -> None:
    assert layout.singerlake_path() == "raw/singerlake.json"
    assert layout.catalogue_path("tap") == "raw/tap/catalogue.json"
    assert layout.manifest_path("tap", "a/b") == "raw/tap/a%2Fb/manifest.json"


def test_file_names_are_floored_to_seconds_in_utc() -> None:
    assert layout.file_name("users", FIRST, LAST) == "users-20230117T180903Z-20230117T181107Z.singer.gz"
    assert layout.file_name("users", FIRST, LAST, 2) == "users-20230117T180903Z-20230117T181107Z-2.singer.gz"
    assert layout.file_name("u", FIRST, LAST, compression=None).endswith("Z.singer")
    assert layout.file_name("u", FIRST, LAST, compression="bz2").endswith("Z.singer.bz2")
    early = dt.datetime(5, 1, 1, tzinfo=dt.UTC)
    assert layout.file_name("u", early, early) == "u-00050101T000000Z-00050101T000000Z.singer.gz"


def test_file_names_are_parsed_from_the_right() -> None:
    name = "a-20200101T000000Z-b-20230117T180903Z-20230117T181107Z-12.singer.bz2"
    assert layout.parse_file_name(name) == layout.FileName(
        "a-20200101T000000Z-b",
        FIRST.replace(microsecond=0),
        dt.datetime(2023, 1, 17, 18, 11, 7, tzinfo=dt.UTC),
        12,
        "bz2",
    )


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "users-20230117T180903Z.singer.gz",
        "users-20230117T180903Z-20230117T181107Z.singer.gz.tmp",
        "users-20230117T180903Z-20230117T181107Z.singer.zst",
        "users-20231317T180903Z-20230117T181107Z.singer.gz",
        "users-20230117T180960Z-20230117T181161Z.singer.gz",
        "-20230117T180903Z-20230117T181107Z.singer.gz",
        "users-20230117T180903Z-20230117T181107Z.singer.gz\n",
    ],
)
def test_other_files_are_no_data_files(name: str) -> None:
    assert layout.parse_file_name(name) is None


def test_sort_key_is_first_then_last_then_number() -> None:
    ordered = [
        layout.file_name("u", FIRST, LAST),
        layout.file_name("u", FIRST, LAST, 2),
        layout.file_name("u", FIRST, LAST, 10),
        layout.file_name("u", FIRST, LAST + dt.timedelta(seconds=1)),
        layout.file_name("u", FIRST + dt.timedelta(seconds=1), LAST),
    ]
    shuffled = [ordered[at] for at in (3, 0, 4, 2, 1)]
    assert sorted(shuffled, key=layout.sort_key) == ordered
