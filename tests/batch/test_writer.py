"""``BatchWriter``: when files end, what their messages say, which STATE may go."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from burler.errors import BatchError, BurlerError, MessageError, OutputClosed, StorageError
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Records, Schema, State
from support.internals import batch_config, batch_file, batch_writer

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}}}


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> dt.datetime:
        return NOON + dt.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class File:
    """A file of ``Memory``."""

    def __init__(self, storage: Memory, name: str) -> None:
        self._storage, self._name, self._data = storage, name, b""

    def write(self, data: Any) -> None:
        if self._storage.full:
            raise StorageError("no room")
        self._data += bytes(data)

    def publish(self, name: str | None = None) -> str:
        self._name = name or self._name
        if self._name in self._storage.taken:
            raise FileExistsError(self._name)
        self._storage.files[self._name] = self._data
        return f"memory://{self._name}"

    def discard(self) -> None:
        self._storage.discarded.append(self._name)

    def withdraw(self) -> None:
        self._storage.files.pop(self._name, None)


class Memory:
    """A storage whose files are in ``files``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.discarded: list[str] = []
        self.taken: set[str] = set()  # by files of other runs
        self.full, self.signs = False, True
        self.root = "memory://"

    def new_file(self, name: str) -> File:
        return File(self, name)

    def presign(self, url: str, seconds: int) -> str:
        if not self.signs:
            raise StorageError("not signed")
        return f"{url}?for={seconds}"


class Run:
    """A writer, what it was given to, and a short way to give it rows."""

    def __init__(self, **config: Any) -> None:
        self.storage, self.clock = Memory(), Clock()
        self.out: list[Any] = []
        self.fail_at: type | None = None
        self.fail_with: Any = StorageError
        self.writer = batch_writer.BatchWriter(
            self.storage, batch_config.BatchConfig(**config), tap="tap-t", emit=self._emit, clock=self.clock, run_id="r"
        )

    def _emit(self, message: Any) -> None:
        if self.fail_at is not None and isinstance(message, self.fail_at):
            raise self.fail_with("stdout")
        self.out.append(message)

    def schema(self, stream: str = "s", fields: Any = FIELDS) -> Run:
        self.writer.schema(Schema(stream, fields))
        return self

    def rows(self, *ids: int, stream: str = "s", version: int | None = None, at: dt.datetime = NOON) -> Run:
        lines = b"".join(b'{"id":%d}\n' % one for one in ids)
        self.writer.records(Records(stream, lines, len(ids), at, version, True))
        return self

    def state(self, value: int) -> Run:
        self.writer.state(State({"at": value}))
        return self

    @property
    def seen(self) -> list[Any]:
        """What went out: ids of rows in files, STATE values, and types of the rest."""
        seen: list[Any] = []
        for message in self.out:
            if isinstance(message, Batch):
                assert len(message.manifest) == 1
                lines = self.storage.files[message.manifest[0].removeprefix("memory://")].splitlines()
                seen.append([json.loads(line)["id"] for line in lines])
            elif isinstance(message, State):
                seen.append(message.value["at"])
            else:
                seen.append(type(message).__name__)
        return seen

    @property
    def batches(self) -> list[Batch]:
        return [message for message in self.out if isinstance(message, Batch)]


def test_a_state_waits_for_the_file_of_its_rows():
    run = Run().schema().rows(1, 2).state(2)
    assert run.seen == ["Schema"]
    run.writer.close()
    assert run.seen == ["Schema", [1, 2], 2]


def test_a_file_ends_with_so_many_rows_and_only_then_its_state_comes():
    run = Run(batch_size=2).schema().rows(1, 2, 3).state(3).rows(4)
    assert run.seen == ["Schema", [1, 2], [3, 4], 3]


def test_a_file_ends_at_so_many_bytes():
    run = Run(batch_bytes=20).schema().rows(1, 2, 3)
    run.writer.close()
    assert run.seen == ["Schema", [1, 2], [3]]


def test_a_row_bigger_than_a_file_may_be_has_one_to_itself():
    run = Run(batch_bytes=5).schema().rows(1, 2)
    run.writer.close()
    assert run.seen == ["Schema", [1], [2]]


def test_a_file_ends_when_it_is_old_enough():
    run = Run(batch_age_seconds=10).schema().rows(1).state(1)
    run.clock.seconds = 9.9
    run.writer.tick()
    assert run.seen == ["Schema"] and run.writer.next_due_seconds == pytest.approx(0.1)
    run.clock.seconds = 10
    run.writer.tick()
    assert run.seen == ["Schema", [1], 1] and run.writer.next_due_seconds is None


def test_the_message_says_what_the_file_holds():
    run = Run(encoding=batch_config.Encoding("jsonl", "gzip", {}, {"level": 1})).schema()
    run.rows(1, at=NOON + dt.timedelta(seconds=5)).rows(2, 3, at=NOON).writer.close()
    (batch,) = run.batches
    (data,) = run.storage.files.values()
    assert batch.to_wire() == {
        "type": "BATCH",
        "stream": "s",
        "time_extracted": "2024-01-02T12:00:00.000000Z",
        "size": 3,
        "format": {"name": "jsonl", "options": {}},
        "compression": {"name": "gzip", "options": {"level": 1}, "enabled": True},
        "encoding": {"format": "jsonl", "compression": "gzip"},
        "manifest": ["memory://tap-t--s-r-00001.jsonl.gz"],
        "file_stats": [{"records": 3, "bytes": len(data)}],
    }


@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("sip", {"time_extracted", "size", "format", "compression", "file_stats", "version"}),
        ("meltano", {"encoding", "version"}),
    ],
)
def test_a_dialect_has_its_keys_alone(dialect: str, keys: set[str]):
    run = Run(dialect=dialect).schema().rows(1, version=7)
    run.writer.close()
    assert run.batches[0].to_wire().keys() == {"type", "stream", "manifest"} | keys


def test_no_compression_is_named_as_both_dialects_have_it():
    run = Run().schema().rows(1)
    run.writer.close()
    wire = run.batches[0].to_wire()
    assert wire["compression"] == {"name": None, "options": {}, "enabled": False}
    assert wire["encoding"]["compression"] == "none"


def test_rows_of_another_version_begin_a_file():
    run = Run().schema().rows(1, version=7).rows(2, version=8)
    run.writer.close()
    assert [(batch.version, batch.size) for batch in run.batches] == [(7, 1), (8, 1)]


def test_another_schema_ends_the_file_of_the_one_before_it():
    run = Run().schema().rows(1)
    run.schema().rows(2)
    assert run.seen == ["Schema", "Schema"]  # the same again changes nothing
    run.schema(fields={**FIELDS, "title": "new"}).rows(3).writer.close()
    assert run.seen == ["Schema", "Schema", [1, 2], "Schema", [3]]


@pytest.mark.parametrize(
    ("config", "sent"),
    [({}, False), ({"dialect": "sip"}, True), ({"activate_version": True}, True), ({"dialect": "meltano"}, False)],
)
def test_activate_version_stands_behind_its_rows_where_targets_know_versions(config: Any, sent: bool, caplog: Any):
    run = Run(**config).schema().rows(1, version=7)
    with caplog.at_level("INFO", logger="burler"):
        run.writer.activate_version(ActivateVersion("s", 7))
        run.writer.activate_version(ActivateVersion("s", 7))
    assert run.seen == ["Schema", [1], *(["ActivateVersion"] * 2 if sent else [])]
    assert len([line for line in caplog.messages if "kept back" in line]) == (0 if sent else 1)


def test_streams_that_are_not_batched_go_on_at_once_and_states_still_wait_for_the_files():
    run = Run().schema().rows(1)
    run.writer.pass_on(Records("plain", b"{}\n", 1, NOON))
    run.state(1)
    assert run.seen == ["Schema", "Records"]
    run.writer.flush()
    assert run.seen == ["Schema", "Records", [1], 1]


def test_a_state_goes_at_once_where_nothing_waits():
    assert Run().schema().state(1).seen == ["Schema", 1]


def test_of_states_that_wait_the_newest_comes():
    run = Run().schema().rows(1).state(1).rows(2).state(2)
    run.writer.close()
    assert run.seen == ["Schema", [1, 2], 2]


def test_a_stream_that_is_always_open_holds_back_no_state_for_ever():
    run = Run(batch_size=2).schema("a").schema("b").rows(1, stream="a").state(1).rows(9, stream="b").state(9)
    run.rows(2, stream="a")
    assert run.seen == ["Schema", "Schema", [1, 2], 1]
    run.writer.close()
    assert run.seen == ["Schema", "Schema", [1, 2], 1, [9], 9]


def test_files_that_somebody_else_made_keep_their_place():
    run = Run().schema().rows(1)
    foreign = Batch("s", ("memory://elsewhere",))
    run.writer.batch(foreign)
    run.rows(2).writer.close()
    assert [type(one).__name__ for one in run.out] == ["Schema", "Batch", "Batch", "Batch"]
    assert run.out[2] is foreign and list(run.storage.files.values()) == [b'{"id":1}\n', b'{"id":2}\n']


def test_rows_before_their_schema_are_an_error_and_the_writer_goes_on():
    run = Run()
    with pytest.raises(MessageError, match="SCHEMA first"):
        run.rows(1)
    run.schema().rows(1).writer.close()
    assert run.seen == ["Schema", [1]]


def test_a_file_without_rows_is_never_named():
    run = Run().schema()
    run.writer.close()
    assert run.seen == ["Schema"] and not run.storage.files


@pytest.mark.parametrize(("error", "stays"), [(OutputClosed, False), (StorageError, True)])
def test_where_the_message_fails_no_state_comes_and_the_file_stays_if_the_line_may_be_out(error: Any, stays: bool):
    run = Run().schema().rows(1).state(1)
    run.fail_at, run.fail_with = Batch, error
    with pytest.raises(error):
        run.writer.close()
    assert run.seen == ["Schema"] and bool(run.storage.files) is stays
    run.fail_at = None
    run.writer.close()
    assert run.seen == ["Schema"]
    with pytest.raises(BurlerError, match="has ended"):
        run.rows(2)


def test_a_file_whose_url_can_not_be_signed_goes():
    run = Run(dialect="sip", presign_seconds=60).schema().rows(1).state(1)
    run.storage.signs = False
    with pytest.raises(StorageError):
        run.writer.close()
    assert run.seen == ["Schema"] and not run.storage.files


def test_where_a_file_can_not_be_written_nothing_more_goes_out():
    run = Run().schema().rows(1).state(1)
    run.storage.full = True
    with pytest.raises(StorageError):
        run.rows(2)
    run.writer.close()
    assert run.seen == ["Schema"] and run.storage.discarded == ["tap-t--s-r-00001.jsonl"]


def test_an_end_by_error_drops_what_no_message_has_named():
    run = Run(batch_size=2).schema().rows(1, 2, 3).state(3)
    run.writer.abort()
    run.writer.close()
    assert run.seen == ["Schema", [1, 2]] and run.storage.discarded == ["tap-t--s-r-00002.jsonl"]


def test_urls_are_signed_where_that_is_asked_for():
    run = Run(dialect="sip", presign_seconds=60).schema().rows(1)
    run.writer.close()
    assert run.batches[0].manifest == ("memory://tap-t--s-r-00001.jsonl?for=60",)


@pytest.mark.parametrize("stream", ["a b", "ü/../x", ".hidden", "x" * 300, "a?b", ""])
def test_names_of_files_hold_letters_that_every_target_takes(stream: str):
    run = Run().schema(stream or "é").rows(1, stream=stream or "é")
    run.writer.close()
    (name,) = run.storage.files
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") and len(name) < 200


def test_streams_whose_names_become_alike_keep_files_of_their_own():
    run = Run().schema("a b").schema("a?b").rows(1, stream="a b").rows(2, stream="a?b")
    run.writer.close()
    assert len(run.storage.files) == 2


def test_a_stream_whose_name_is_what_another_one_becomes_keeps_files_of_its_own():
    other = batch_file.plain("a/b")
    run = Run().schema("a/b").schema(other).rows(1, stream="a/b").rows(2, stream=other)
    run.writer.close()
    assert sorted(run.storage.files.values()) == [b'{"id":1}\n', b'{"id":2}\n']


def test_only_so_many_files_are_open_at_once():
    run = Run()
    for number in range(201):
        run.schema(f"s{number}").rows(number, stream=f"s{number}")
    assert [batch.stream for batch in run.batches] == ["s0"]


def test_the_end_says_what_was_made(caplog: pytest.LogCaptureFixture):
    run = Run(batch_size=2).schema().rows(1, 2, 3)
    with caplog.at_level("INFO", logger="burler"):
        run.writer.close()
    assert "BATCH: 2 files of 3 rows, 27 bytes, in memory://" in caplog.messages


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_pages_of_columns_are_cut_into_files_of_so_many_bytes(form: str):
    import pyarrow as pa

    run = Run(encoding=batch_config.Encoding(form), batch_bytes=10_000).schema(
        fields={"properties": {"t": {"type": "string"}}}
    )
    table = pa.RecordBatch.from_pylist([{"t": "x" * 1000} for _ in range(100)], schema=run.writer.arrow_schema("s"))
    run.writer.table(ArrowPage("s", table, NOON))
    run.writer.close()
    assert sum(batch.size or 0 for batch in run.batches) == 100
    assert {batch.size for batch in run.batches} <= set(range(8, 12)) | {run.batches[-1].size}


def test_a_file_that_is_too_old_takes_no_more_rows_where_no_timer_runs():
    run = Run(batch_age_seconds=10).schema().rows(1)
    run.clock.seconds = 10
    run.rows(2).writer.close()
    assert run.seen == ["Schema", [1], [2]]


def test_what_could_not_be_kept_is_said_once_not_for_each_file(caplog: pytest.LogCaptureFixture):
    run = Run(encoding=batch_config.Encoding("csv", None, dict(batch_config.CSV_DEFAULTS)), batch_size=1).schema()
    lines = b'{"id":1,"more":1}\n{"id":2,"more":2}\n'
    with caplog.at_level("WARNING", logger="burler"):
        run.writer.rows("s", lines, 2, NOON)
        run.writer.close()
    assert len(run.batches) == 2
    assert len([line for line in caplog.messages if "'more'" in line]) == 1


def test_a_state_ends_files_that_are_too_old():
    run = Run(batch_age_seconds=10).schema().rows(1)
    run.clock.seconds = 10
    assert run.state(1).seen == ["Schema", [1], 1]


def test_a_file_that_no_encoder_takes_is_discarded(monkeypatch: pytest.MonkeyPatch):
    run = Run().schema()

    def refuse(*_args: Any) -> None:
        raise StorageError("no memory")

    monkeypatch.setattr(batch_file, "open_encoder", refuse)
    with pytest.raises(StorageError):
        run.rows(1)
    assert run.storage.discarded == ["tap-t--s-r-00001.jsonl"]


def test_a_name_that_another_run_has_taken_is_drawn_anew():
    run = Run().schema()
    run.storage.taken = {"tap-t--s-r-00001.jsonl"}
    run.rows(1).writer.close()
    (name,) = run.storage.files
    assert name != "tap-t--s-r-00001.jsonl" and run.seen == ["Schema", [1]]


# ---- rows that a file can't hold -----------------------------------------------------------------------------------

KEYED = {"properties": {"id": {"type": "integer"}, "of": {"type": "string"}, "n": {"type": ["null", "integer"]}}}


@pytest.mark.parametrize(
    ("keys", "row", "start"),
    [
        (("id",), '{"n":1.5,"id":3,"of":"x"}', "stream 's', row id=3: field 'n': a value can't"),
        (("of", "id"), '{"n":1.5,"id":3,"of":"x\\ny"}', "stream 's', row of=\"x\\ny\", id=3: field 'n'"),
        (("id",), '{"n":1.5}', "stream 's': field 'n': a value can't"),
        ((), '{"n":1.5,"id":3}', "stream 's': field 'n': a value can't"),
        (("id",), '{"n":1.5,"id":3', "stream 's': a row can't be read"),
    ],
    ids=["a key", "two", "none there", "no key", "no row"],
)
def test_a_row_that_a_file_can_not_hold_is_named_by_its_key(keys: tuple[str, ...], row: str, start: str):
    """Among others of its page, whose file goes on."""
    run = Run(encoding=batch_config.Encoding("csv", None, dict(batch_config.CSV_DEFAULTS)))
    run.writer.schema(Schema("s", KEYED, keys))
    good = b'{"id":1,"of":"a","n":7}\n'
    with pytest.raises(BatchError) as caught:
        run.writer.rows("s", good * 5 + row.encode() + b"\n" + good, 7, NOON)
    assert str(caught.value).startswith(start)
    assert caught.value.rows_taken == 5
    run.writer.close()
    assert [message.size for message in run.batches] == [5]


def test_names_that_are_one_in_letters_of_files_stay_apart():
    names = ["a_b", "a/b", "a?b", ".a_b", "x" * 200, "x" * 201, "", "_"]
    assert len({batch_file.plain(name) for name in names}) == len(names)
    assert batch_file.plain("a_b") == "a_b", "what needs no change is left as it is"
