"""Claim, commit, fence, adopt, load."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from burler.errors import LakeError, LockLost, StorageError, UsageError
from burler.lake import FileStats, Store, streams
from burler.singer.messages import Schema
from support.internals import hashing, lake_store, layout, manifest

LINE = hashing.schema_line(Schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
HASH = hashing.schema_hash(LINE)
TIME = "2024-01-02T12:00:00.000000Z"
STATS = FileStats(records=1, bytes=10, first=TIME, last=TIME, clean=True)


def name(day: int, digest: str = HASH) -> str:
    return f"{digest}/users-202401{day:02d}T000000Z-202401{day:02d}T000000Z.singer.gz"


def claim(lake: Any, writer_id: str = "me", digest: str = HASH) -> manifest.Claim:
    return manifest.claim(lake.store, "tap-x", "users", hash=digest, writer_id=writer_id)


def wire(lake: Any) -> dict[str, Any]:
    return json.loads(lake.manifest_path().read_bytes())


def test_a_claim_names_the_writer_and_counts_epochs(lake: Any) -> None:
    assert claim(lake).epoch == 1
    assert claim(lake, "you").epoch == 2
    assert wire(lake)["writers"] == {HASH: {"writer-id": "you", "epoch": 2}}
    assert wire(lake)["sequence"] == 0
    assert claim(lake, "me", "otherhash11").epoch == 1


def test_the_wire_form(lake: Any) -> None:
    mine = claim(lake)
    stats = FileStats(2, 20, TIME, TIME, clean=False, activate_version=7, versions=(5, 7))
    manifest.commit(lake.store, mine, [(name(2), STATS), (name(1), stats)], schema_line=LINE)
    assert wire(lake)["sequence"] == 1
    document = wire(lake)
    assert document["versions"] == {HASH: "v1"}
    assert document["files"] == [name(1), name(2)]
    assert document["schemas"] == {HASH: {"base85": hashing.schema_hash(LINE, "base85"), "line": LINE.decode()}}
    assert document["file_stats"] == {
        name(1): {
            "records": 2,
            "bytes": 20,
            "first": TIME,
            "last": TIME,
            "sequence": 1,
            "clean": False,
            "activate_version": 7,
            "versions": [5, 7],
        },
        name(2): {"records": 1, "bytes": 10, "first": TIME, "last": TIME, "sequence": 1, "clean": True},
    }
    assert len(document["commit_ids"]) == 1
    assert len(document["generation"]) == 32
    assert (document["format"], document["tap_id"], document["stream"]) == (1, "tap-x", "users")


def test_versions_are_numbered_by_first_commit(lake: Any) -> None:
    lines = [hashing.schema_line(Schema("users", {"v": n})) for n in range(3)]
    for line in (*lines, lines[0]):
        mine = claim(lake, digest=hashing.schema_hash(line))
        manifest.commit(lake.store, mine, [], schema_line=line)
    assert wire(lake)["versions"] == {hashing.schema_hash(line): f"v{n}" for n, line in enumerate(lines, 1)}
    assert lake.load().hashes == tuple(map(hashing.schema_hash, lines))


def test_each_commit_counts_and_the_last_hundred_ids_are_kept(lake: Any) -> None:
    mine = claim(lake)
    for number in range(102):
        manifest.commit(lake.store, mine, [], schema_line=LINE)
        assert wire(lake)["sequence"] == number + 1
    assert len(wire(lake)["commit_ids"]) == 100
    assert len(set(wire(lake)["commit_ids"])) == 100


def test_a_later_claim_fences_the_earlier_writer(lake: Any) -> None:
    mine, yours = claim(lake), claim(lake, "you")
    with pytest.raises(LockLost, match=r"you, epoch 2") as caught:
        manifest.commit(lake.store, mine, [(name(1), STATS)], schema_line=LINE)
    assert caught.value.exit_code == 3
    assert wire(lake)["files"] == []
    manifest.commit(lake.store, yours, [(name(2), STATS)], schema_line=LINE)
    with pytest.raises(LockLost):
        manifest.commit(lake.store, mine, [(name(1), STATS)], schema_line=LINE)


def test_the_same_writer_with_an_older_epoch_is_fenced_too(lake: Any) -> None:
    mine = claim(lake)
    claim(lake)
    with pytest.raises(LockLost):
        manifest.commit(lake.store, mine, [], schema_line=LINE)


def test_a_claim_that_was_taken_out_is_no_claim(lake: Any) -> None:
    mine = claim(lake)
    document = wire(lake)
    document["writers"] = {}
    lake.manifest_path().write_text(json.dumps(document))
    with pytest.raises(LockLost, match="none named"):
        manifest.commit(lake.store, mine, [], schema_line=LINE)


def test_keys_of_others_survive(lake: Any) -> None:
    mine = claim(lake)
    document = wire(lake)
    document["later"] = {"x": [1.5]}
    document["schemas"]["foreign"] = {"note": 1}
    lake.manifest_path().write_text(json.dumps(document))
    manifest.commit(lake.store, mine, [(name(1), STATS)], schema_line=LINE)
    assert wire(lake)["later"] == {"x": [1.5]}
    assert wire(lake)["schemas"]["foreign"] == {"note": 1}


def test_register_makes_a_schema_known_once(lake: Any) -> None:
    manifest.register(lake.store, "tap-x", "users", schema_line=LINE)
    before = lake.manifest_path().read_bytes()
    manifest.register(lake.store, "tap-x", "users", schema_line=LINE)
    assert lake.manifest_path().read_bytes() == before
    snapshot = lake.load()
    assert snapshot.versions == {HASH: "v1"}
    assert snapshot.schema_lines == {HASH: LINE}
    assert (snapshot.files, snapshot.sequence) == ((), 1)


class Flaky:
    """A store whose answers get lost: each entry of ``plan`` says what happens to one write."""

    def __init__(self, store: Store, plan: list[str]) -> None:
        self._store, self.plan = store, plan

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._store, attribute)

    def create(self, path: str, data: bytes) -> str:
        return self._do(lambda: self._store.create(path, data))

    def replace(self, path: str, data: bytes, *, tag: str) -> str:
        return self._do(lambda: self._store.replace(path, data, tag=tag))

    def _do(self, write: Any) -> str:
        step = self.plan.pop(0) if self.plan else "works"
        if step in ("works", "done but conflict", "done but unknown"):
            result = write()
        if step in ("conflict", "done but conflict"):
            raise lake_store.Conflict
        if step in ("unknown", "done but unknown"):
            raise lake_store.OutcomeUnknown("lost")
        if step == "fails":
            raise StorageError("broken")
        return result


@pytest.mark.parametrize("step", ["conflict", "unknown", "done but conflict", "done but unknown"])
def test_a_lost_reply_makes_no_second_commit_and_no_lost_one(lake: Any, step: str) -> None:
    mine = manifest.claim(Flaky(lake.store, [step]), "tap-x", "users", hash=HASH, writer_id="me")
    assert wire(lake)["writers"][HASH] == {"writer-id": "me", "epoch": mine.epoch}
    manifest.commit(Flaky(lake.store, [step, step]), mine, [(name(1), STATS)], schema_line=LINE)
    assert wire(lake)["sequence"] == 1
    assert wire(lake)["files"] == [name(1)]
    manifest.register(Flaky(lake.store, [step]), "tap-x", "users", schema_line=b"{}")
    assert wire(lake)["sequence"] == 2


def test_a_commit_that_succeeded_unseen_stands_although_another_claimed_since(lake: Any) -> None:
    mine = claim(lake)

    class Slow(Flaky):
        def _do(self, write: Any) -> str:
            super()._do(write)
            claim(lake, "you")
            raise lake_store.OutcomeUnknown("lost")

    manifest.commit(Slow(lake.store, []), mine, [(name(1), STATS)], schema_line=LINE)
    assert wire(lake)["sequence"] == 1


def test_a_write_that_fails_is_not_tried_for_ever(lake: Any) -> None:
    mine = claim(lake)
    with pytest.raises(StorageError, match="broken"):
        manifest.commit(Flaky(lake.store, ["fails"]), mine, [], schema_line=LINE)


def test_two_writers_of_two_schemas_lose_nothing_of_each_other(lake: Any) -> None:
    mine = claim(lake)

    class Meanwhile(Flaky):
        done = False

        def _do(self, write: Any) -> str:
            if not self.done:
                self.done = True
                other = manifest.claim(lake.store, "tap-x", "users", hash="otherhash11", writer_id="you")
                manifest.commit(lake.store, other, [(name(9, "otherhash11"), STATS)], schema_line=b'{"o":1}')
            return super()._do(write)

    manifest.commit(Meanwhile(lake.store, []), mine, [(name(1), STATS)], schema_line=LINE)
    assert wire(lake)["files"] == [name(1), name(9, "otherhash11")]
    assert wire(lake)["sequence"] == 2


def test_load_orders_by_commit_then_by_time(lake: Any) -> None:
    mine = claim(lake)
    manifest.commit(lake.store, mine, [(name(9), STATS), (name(8), STATS)], schema_line=LINE)
    manifest.commit(lake.store, mine, [(name(1), STATS)], schema_line=LINE)
    snapshot = lake.load()
    assert [file.path for file in snapshot.files] == [f"raw/tap-x/users/{name(day)}" for day in (8, 9, 1)]
    assert [file.sequence for file in snapshot.files] == [1, 1, 2]
    assert snapshot.files[0].clean
    assert snapshot.files[0].hash == HASH


def test_a_plain_singerlake_manifest_is_read(lake: Any) -> None:
    path = lake.manifest_path()
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"versions": {HASH: "v1"}, "files": [name(2), name(1)]}))
    snapshot = lake.load()
    assert [file.stats for file in snapshot.files] == [None, None]
    assert [file.path.rpartition("/")[2] for file in snapshot.files] == [name(1)[12:], name(2)[12:]]
    assert (snapshot.generation, snapshot.sequence, snapshot.files[0].clean) == (None, 0, False)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"files": {}}',
        b'{"versions": []}',
        b'{"files": [1]}',
        b'{"files": ["../../x/y"]}',
        b'{"files": ["/etc/passwd"]}',
        b'{"files": ["h/f"], "file_stats": {"h/f": {"records": 1}}}',
        b'{"files": ["h/f"], "file_stats": {"h/f": 1}}',
    ],
)
def test_a_broken_manifest_is_named_with_the_cure(lake: Any, content: bytes) -> None:
    path = lake.manifest_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(LakeError, match=r"(?s)manifest\.json is broken.*Make it anew: burler lake rebuild") as caught:
        lake.load()
    assert str(path) in str(caught.value)
    if b"file_stats" not in content:
        with pytest.raises(LakeError):
            claim(lake)
        assert path.read_bytes() == content


def test_a_newer_format_is_left_alone(lake: Any) -> None:
    path = lake.manifest_path()
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 2}')
    with pytest.raises(LakeError, match="Upgrade burler"):
        claim(lake)


def test_an_unknown_stream_is_a_usage_error_that_names_the_known(lake: Any) -> None:
    manifest.register(lake.store, "tap-x", "users", schema_line=LINE)
    with pytest.raises(UsageError, match=r"no stream 'tap-x/nope'.*tap-x/users"):
        lake.load("nope")


def write(lake: Any, *ids: int, **keywords: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema(**keywords))
        writer.records(lake.page("users", *ids))


def test_without_a_manifest_the_folder_is_listed(lake: Any) -> None:
    write(lake, 1)
    write(lake, 2)
    lake.manifest_path().unlink()
    snapshot = lake.load()
    assert lake.ids() == [1, 2]
    assert snapshot.generation is None
    assert [file.stats for file in snapshot.files] == [None, None]
    assert streams(lake.store) == [("tap-x", "users")]


def test_a_removed_manifest_is_made_anew_from_the_files(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema(note={"type": "string"}))
        writer.records(lake.page("users", {"id": 1, "note": "ü"}, version=4))
        writer.schema(lake.schema())
        lake.clock.forward(1)
        writer.records(lake.page("users", {"id": 2.5}, at=lake.clock.moment))
    old = lake.load()
    lake.manifest_path().unlink()
    with caplog.at_level(logging.WARNING, "burler.lake"):
        write(lake, 3)
    assert "no manifest, 2 data files" in caplog.text
    new = lake.load()
    assert lake.ids() == [1, 2.5, 3]
    assert new.generation not in (None, old.generation)
    assert [file.sequence for file in new.files] == [1, 1, 2]
    for before, after in zip(old.files, new.files, strict=False):
        assert before.path == after.path
        assert before.stats is not None and after.stats is not None
        assert (before.stats.clean, after.stats.clean) == (before is old.files[0],) * 2
        for part in ("records", "bytes", "first", "last", "activate_version", "versions"):
            assert getattr(before.stats, part) == getattr(after.stats, part)
    assert set(new.versions.values()) == {"v1", "v2"}
    assert dict(new.schema_lines) == dict(old.schema_lines)


def test_a_manifest_removed_under_a_running_writer_costs_nothing(lake: Any) -> None:
    writer, other = lake.writer(), lake.writer()
    writer.schema(lake.schema())
    other.schema(lake.schema(note={"type": "string"}))
    for ids in ([1], [2]):
        writer.records(lake.page("users", *ids))
        other.records(lake.page("users", ids[0] + 10))
        lake.manifest_path().unlink(missing_ok=True)
        writer.flush()
        other.flush()
    writer.state(lake.state(1))
    assert sorted(lake.ids()) == [1, 2, 11, 12]
    assert lake.states == [{"at": 1}]


def test_a_broken_file_does_not_stop_a_new_manifest_and_stays_in_view(lake: Any) -> None:
    write(lake, 1)
    (file,) = lake.files()
    lake.manifest_path().unlink()
    file.write_bytes(file.read_bytes()[:-5])
    write(lake, 2)
    stats = [file.stats for file in lake.load().files]
    assert [known is None for known in stats] == [True, False]
    with pytest.raises(LakeError, match=file.name):
        lake.ids()


def test_streams_of_odd_names_come_back(lake: Any) -> None:
    names = ["../..", ".", "_x", "😀", "n" * 300, "a/b"]
    for tap in ("tap-a", "t" * 300):
        lake.tap_id = tap
        with lake.writer() as writer:
            for stream in names:
                writer.schema(lake.schema(stream))
                writer.records(lake.page(stream, 1))
    assert sorted(streams(lake.store)) == sorted((tap, stream) for tap in ("tap-a", "t" * 300) for stream in names)
    for stream in names:
        assert lake.ids(stream) == [1]


def test_folders_without_data_are_no_streams(lake: Any) -> None:
    (lake.path / "raw" / "tap" / "empty").mkdir(parents=True)
    (lake.path / "raw" / "tap" / "other").mkdir()
    (lake.path / "raw" / "tap" / "other" / "readme.txt").write_text("")
    assert streams(lake.store) == []
    assert layout.manifest_path("tap", "empty") == "raw/tap/empty/manifest.json"


def test_a_manifest_made_anew_by_another_writer_fences_the_first(lake: Any) -> None:
    """Somebody removed the manifest, and another writer has claimed in the new one."""
    mine = claim(lake)
    lake.manifest_path().unlink()
    claim(lake, "you")
    with pytest.raises(LockLost):
        manifest.commit(lake.store, mine, [(name(1), STATS)], schema_line=LINE)


@pytest.mark.parametrize("content", [b"{}", b'{"files": []}', b'{"versions": {}}'])
def test_a_manifest_without_its_two_keys_is_broken(lake: Any, content: bytes) -> None:
    claim(lake)
    lake.manifest_path().write_bytes(content)
    with pytest.raises(LakeError, match=r"is broken: .* missing"):
        claim(lake)
