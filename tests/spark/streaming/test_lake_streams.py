"""``readStream.format("singerlake")``: a range of offsets is the same rows whatever has become of the lake since."""

from __future__ import annotations

import json
import time

import pytest

from burler.errors import ExportError, LakeError, StateError, UsageError
from burler.lake import care, open_store

MORE = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}, "extra": {"type": "string"}},
}


def fill(lake, commits, rows=2):
    for at in commits:
        lake.commit("users", [{"id": at * 10 + row} for row in range(rows)])


def flat(batches):
    return [one for batch in batches for one in batch]


def ids(commits, rows=2):
    return [at * 10 + row for at in commits for row in range(rows)]


def test_batches_follow_the_commits(lake, query):
    fill(lake, [1, 2])
    one = query(lake.root)
    start = one.initial()
    end = one.latest(start)
    assert json.loads(end) == {"generation": lake.manifest("users")["generation"], "sequence": 2}
    assert one.ids(start, end) == ids([1, 2])
    assert one.latest(end) == end and one.rows(end, end) == []
    fill(lake, [3])
    again = query(lake.root)  # after a restart
    assert again.ids(end, again.latest(end)) == ids([3])


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"maxFilesPerTrigger": 2}, [4, 4, 2]),
        ({"maxRowsPerTrigger": 5}, [4, 4, 2]),
        ({"maxRowsPerTrigger": 1}, [2, 2, 2, 2, 2]),
        ({"maxBytesPerTrigger": 1}, [2, 2, 2, 2, 2]),
        ({"maxRowsPerTrigger": 100, "maxFilesPerTrigger": 3}, [6, 4]),
        ({}, [10]),
    ],
    ids=["files", "rows", "one", "bytes", "both", "all"],
)
def test_limits_cut_batches_and_lose_nothing(lake, query, options, sizes):
    fill(lake, range(1, 6))
    found = query(lake.root, **options).batches()
    assert [len(one) for one in found] == sizes
    assert flat(found) == ids(range(1, 6))
    one = query(lake.root, **options)
    everything = one.latest(one.initial(), limited=False)
    assert len(one.ids(one.initial(), everything)) == 10


def test_a_commit_of_several_files_may_be_cut(lake, query):
    fill(lake, range(1, 5))
    document = lake.manifest("users")
    for stats in document["file_stats"].values():
        stats["sequence"] = 1  # as a manifest has it that was made anew from the files
    document["sequence"] = 1
    lake.save("users", document)
    one = query(lake.root, maxFilesPerTrigger=3)
    assert one.batches() == [ids([1, 2, 3]), ids([4])]
    first = json.loads(one.latest(one.initial()))
    assert first["sequence"] == 1 and first["file"].endswith(".singer.gz")


def test_the_same_range_gives_the_same_rows_after_compaction(lake, query):
    fill(lake, range(1, 7))
    one = query(lake.root, maxFilesPerTrigger=2)
    start = one.latest(one.initial())
    end = one.latest(start)
    before = one.rows(start, end)
    assert [row["id"] for row in before] == ids([3, 4])
    care.compact(open_store(str(lake.root)))
    assert len(lake.manifest("users")["files"]) == 1
    assert query(lake.root).rows(start, end) == before
    fill(lake, [7])
    assert query(lake.root).batches(end) == [ids([5, 6, 7])]
    assert query(lake.root, maxFilesPerTrigger=1).batches() == [ids([at]) for at in range(1, 8)]


def test_after_vacuum_a_range_is_whole_or_an_error(lake, query):
    fill(lake, range(1, 5))
    one = query(lake.root, maxFilesPerTrigger=2)
    start, middle = one.initial(), one.latest(one.initial())
    end = one.latest(middle)
    store = open_store(str(lake.root))
    care.compact(store)
    care.vacuum(store, older_than_seconds=0, yes=True, now=lambda: time.time() + 10)
    assert query(lake.root).ids(start, end) == ids(range(1, 5))
    for cut in ((start, middle), (middle, end)):
        with pytest.raises(LakeError, match=r'(?s)users.*"behind", "again"'):
            query(lake.root).rows(*cut)
    assert query(lake.root, behind="again").ids(middle, end) == ids(range(1, 5))
    fill(lake, [5])
    assert query(lake.root).batches(end) == [ids([5])]


def test_a_rebuilt_manifest_is_gone_on_with(lake, query):
    fill(lake, range(1, 5))
    one = query(lake.root, maxFilesPerTrigger=2)
    middle = one.latest(one.initial())
    end = one.latest(middle)
    document = lake.manifest("users")
    fill(lake, [5])
    lake.save("users", document)  # a file that no manifest names, for rebuild to take in
    care.rebuild(open_store(str(lake.root)))
    assert lake.manifest("users")["generation"] != json.loads(end)["generation"]
    assert query(lake.root).ids(middle, end) == ids([3, 4])
    fill(lake, [6])
    assert query(lake.root).batches(end) == [ids([5, 6])]


def test_another_manifest_is_an_error_or_all_of_it_comes_again(lake, query):
    fill(lake, [1, 2])
    one = query(lake.root)
    end = one.latest(one.initial())
    lake.manifest_path("users").unlink()
    with pytest.raises(LakeError, match="rebuild"):
        query(lake.root).latest(end)
    care.rebuild(open_store(str(lake.root)))
    with pytest.raises(UsageError, match=r"made anew[\s\S]*again"):
        query(lake.root).latest(end)
    again = query(lake.root, behind="again")
    assert again.batches(end) == [ids([1, 2])]


def test_an_older_copy_of_the_lake_is_an_error(lake, query):
    fill(lake, [1])
    old = lake.manifest("users")
    fill(lake, [2])
    one = query(lake.root)
    end = one.latest(one.initial())
    lake.save("users", old)
    with pytest.raises(UsageError, match="older copy"):
        query(lake.root).latest(end)


def test_available_now_takes_what_is_there_and_no_more(lake, query):
    fill(lake, [1, 2])
    one = query(lake.root, maxFilesPerTrigger=1)
    one.reader.prepareForTriggerAvailableNow()
    fill(lake, [3])
    assert one.batches() == [ids([1]), ids([2])]


@pytest.mark.parametrize(("starting", "expected"), [("latest", [3]), ("1", [2, 3]), ("earliest", [1, 2, 3])])
def test_a_new_query_begins_where_it_is_told(lake, query, starting, expected):
    fill(lake, [1, 2])
    one = query(lake.root, starting=starting)
    start = one.initial()
    fill(lake, [3])
    assert flat(one.batches(start)) == ids(expected)


def test_the_manifest_is_read_no_more_often_than_asked(lake, query, monkeypatch):
    fill(lake, [1])
    one = query(lake.root, poll_seconds=60)
    looks = []
    kind = type(open_store(str(lake.root)))
    read = kind.read
    monkeypatch.setattr(kind, "read", lambda self, path, /: looks.append(path) or read(self, path))
    start = one.initial()
    for _ in range(50):
        end = one.latest(start)
    assert sum(path.endswith("manifest.json") for path in looks) <= 4
    fill(lake, [2])
    assert one.latest(start) == end  # not looked at yet
    assert one.ids(start, end) == ids([1])


def test_new_fields_stop_the_query_and_a_restart_takes_them(lake, query):
    fill(lake, [1])
    one = query(lake.root)
    start = one.initial()
    fill(lake, [2])
    lake.commit("users", [{"id": 30, "extra": "x"}], schema=MORE)
    end = one.latest(start)
    with pytest.raises(ExportError) as caught:
        one.rows(start, end)
    assert "new field 'extra'" in str(caught.value) and "start the query again" in str(caught.value)
    assert [row["extra"] for row in query(lake.root).rows(start, end)] == [None, None, None, None, "x"]
    assert query(lake.root, as_loaded=one.schema, new_fields="ignore").ids(start, end) == [*ids([1, 2]), 30]


def test_rows_before_a_change_go_on_to_come(lake, query):
    fill(lake, [1])
    one = query(lake.root, maxFilesPerTrigger=1)
    start = one.initial()
    lake.commit("users", [{"id": 30, "extra": "x"}], schema=MORE)
    end = one.latest(start)
    assert one.ids(start, end) == ids([1])
    with pytest.raises(ExportError, match="extra"):
        one.rows(end, one.latest(end))


def test_batches_hold_old_table_versions_too(lake, query):
    lake.commit("users", [{"id": 1}], version=1, activate=1)
    lake.commit("users", [{"id": 2}], version=2, activate=2)
    assert query(lake.root).batches() == [[1, 2]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"after_sequence": "1"}, "starting"),
        ({"versions": "all"}, "spark.read alone"),
        ({"starting": "tomorrow"}, "earliest or latest"),
        ({"starting": "77"}, "last commit is 1"),
        ({"maxRowsPerTrigger": "none"}, "whole number"),
        ({"poll_secs": "1"}, "poll_seconds"),
    ],
    ids=["after", "versions", "word", "future", "limit", "typo"],
)
def test_wrong_options(lake, query, options, said):
    fill(lake, [1])
    with pytest.raises(UsageError) as caught:
        query(lake.root, **options).initial()
    assert said in str(caught.value)


def test_a_checkpoint_of_something_else_is_refused(lake, query):
    fill(lake, [1])
    with pytest.raises(StateError, match="another query"):
        query(lake.root).latest('{"partition-1": {"index": 3}}')
