"""The summary: a table that fits, and shows what failed. (On a terminal: tests/cli/test_report_endings.py.)"""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from reportruns import Streams


def test_the_table_of_a_run():
    run = Streams()
    run.add("contacts", ["2024-01-01T00:00:00.000000Z", "2024-03-01T12:30:00.250000Z"], rows=12345)
    run.add("notes", [None, 9], rows=7)
    run.add("tags", [5])
    lines = [re.sub(r" +\d+\.\d ", "   0.0 ", line) for line in run.table()]
    assert lines[0].split() == ["stream", "rows", "updated", "skipped", "seconds", "errors", "bookmark"]
    assert set(lines[1]) == {"-"}
    assert [" ".join(line.split()) for line in lines[2:]] == [
        "contacts 12,345 12,345 0 0.0 0 2024-01-01T00:00:00Z -> 2024-03-01T12:30:00Z",
        "notes 7 7 0 0.0 0 none -> 9",
        "tags 0 0 0 0.0 0 5",
        "total 12,352 12,352 0 0",
    ]


def test_how_a_stream_ended_is_not_said_where_its_errors_say_it():
    run = Streams()
    run.add("a", [None, 1])
    run.add("b", error=ValueError("x"))
    assert "status" not in "\n".join(run.table())


def names_in(lines: list[str]) -> list[str]:
    return [line.split("  ")[0] for line in lines[2:]]


def test_of_many_streams_forty_are_shown_and_the_rest_is_summed():
    run = Streams()
    for i in range(100):
        run.add(f"s{i:02}", [None, 1], rows=i)
    lines = run.table()
    assert names_in(lines) == [*(f"s{i:02}" for i in range(60, 100)), "and 60 more", "total"]
    (rest,) = [line for line in lines if line.startswith("and 60 more")]
    assert rest.split()[:4] == ["and", "60", "more", f"{sum(range(60)):,}"]
    assert f"{sum(range(100)):,}" in lines[-1]


def test_streams_that_failed_are_always_shown():
    run = Streams()
    for i in range(100):
        run.add(f"s{i:02}", [None, 1], rows=100 - i, error=ValueError(i) if i < 50 else None)
    assert names_in(run.table()) == [*(f"s{i:02}" for i in range(50)), "and 50 more", "total"]
    other = Streams()
    for i in range(50):
        other.add(f"s{i:02}", [None, 1], rows=100 - i, error=ValueError(i) if i == 49 else None)
    assert names_in(other.table())[-3:] == ["s49", "and 10 more", "total"]


def test_long_names_keep_both_ends_and_bookmarks_both_values():
    run = Streams()
    run.add("crm_accounts_of_the_northern_region_and_of_many_more_regions_of_the_world_2024", ["2024-01-01T00:00:00Z"])
    run.add("crm_accounts_of_the_northern_region_and_of_many_more_regions_of_the_world_2025", ["a" * 100, "b" * 100])
    lines = run.table()
    assert max(map(len, lines)) <= 120
    assert lines[2].startswith("crm_ac") and "2024  " in lines[2]
    assert "2025  " in lines[3]
    assert re.search(r"a{5,}\.\.a{5,} -> b{5,}\.\.b{5,}$", lines[3])


def test_what_is_cut_off_a_bookmark_is_told():
    run = Streams()
    name = "crm_accounts_of_the_northern_region_and_of_many_more_2024"
    run.add(name, [9876543210123001, 9876543210123458])
    run.add(name + "5", ["2024-01-01T00:00:00.123Z", "2024-01-01T09:00:00.123Z"])
    first, second = run.table()[2:4]
    assert re.search(r"  9\d+\.\.\d*001 -> 9\d+\.\.\d*458$|  9876543210123001 -> 9876543210123458$", first)
    assert re.search(r"  2024-01-01T00.* -> 2024-01-01T09", second)


HOSTILE = ["a\nINFO METRIC: {}", "\x1b[31mred", "a\tb", "caf\u00e9\n", "客户", "\x7f", "\x85", "x" * 5000]


def test_a_name_can_not_break_the_table_and_what_is_not_ascii_is_spelled_out():
    run = Streams()
    for name in HOSTILE:
        run.add(name, [None, name])
    lines = run.table()
    assert len(lines) == 2 + len(HOSTILE) + 1
    assert all(re.fullmatch(r"[ -~]{1,120}", line) for line in lines)
    assert lines[5].startswith("caf\\xe9\\x0a  ") and lines[6].endswith("  none -> \\u5ba2\\u6237")


@settings(max_examples=15)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="*?[]!", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
            str.strip
        ),
        st.tuples(st.integers(0, 9), st.none() | st.text(max_size=60)),
        min_size=1,
        max_size=8,
    )
)
def test_any_table_fits_and_is_ascii(streams: dict[str, tuple[int, str | None]]):
    run = Streams()
    for name, (rows, bookmark) in streams.items():
        run.add(name, [None, bookmark], rows=rows)
    lines = run.table()
    assert len(lines) >= 2 + len(streams)
    assert all(re.fullmatch(r"[ -~]{1,120}", line) for line in lines)
