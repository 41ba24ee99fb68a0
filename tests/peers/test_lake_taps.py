"""What taps of others write goes into a lake and out again, into a target on the Singer SDK: the rows are those of
``tap | target``."""

import contextlib
import json

import foreign_taps
import peers_environment
import pytest
from batch_pipes import Pipe, Tables, messages, own


def programs(name):
    try:
        return peers_environment.make_tap(name)
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the tap can't be installed: {error}")


@contextlib.contextmanager
def rest(folder, peers, postgres, s3_server):
    with foreign_taps.api() as url:
        yield foreign_taps.rest(programs("rest"), folder, url)


@contextlib.contextmanager
def tables(folder, peers, postgres, s3_server):
    yield foreign_taps.postgres(peers, folder, postgres)


@contextlib.contextmanager
def s3_csv(folder, peers, postgres, s3_server):
    yield foreign_taps.s3_csv(programs("s3-csv"), folder, s3_server)


TAPS = {"rest": rest, "tables": tables, "s3_csv": s3_csv}


def in_order(rows):
    """By their values; columns stand in another order in each table."""
    return sorted(rows, key=lambda row: json.dumps(own([row]), default=str, sort_keys=True))


def types(lines):
    return {message["type"] for message in messages(lines)}


def cell(name, store, *marks):
    return pytest.param(name, store, id=f"{store}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("name", "store"),
    [
        cell("tables", "disk"),
        cell("rest", "disk", pytest.mark.nightly),
        cell("s3_csv", "s3", pytest.mark.nightly),
        cell("rest", "s3", pytest.mark.nightly),
        cell("tables", "s3", pytest.mark.nightly),
        cell("s3_csv", "disk", pytest.mark.nightly),
    ],
)
def test_replayed_rows_equal_those_that_were_loaded_at_once(tmp_path, peers, postgres, request, name, store):
    """In a push the tap with the most types; a lake on S3, and messages without times, have tests in ``tests/lake``."""
    s3_server = request.getfixturevalue("s3_server") if "s3" in name + store else None
    pipe = Pipe(tmp_path, peers, s3_server and s3_server.environment)
    lake = str(tmp_path / "lake") if store == "disk" else s3_server.url("lake")
    with TAPS[name](tmp_path, peers, postgres, s3_server) as tap:
        lines = pipe.run(tap.command, b"", **tap.environment)

    states = pipe.burler("lake", "write", lake, "--tap-id", name, given=lines)
    assert json.loads(states.splitlines()[-1]) == messages(lines.splitlines())[-1]
    replayed = pipe.burler("lake", "read", lake)
    assert types(replayed.splitlines()) == {"SCHEMA", "RECORD", "STATE"} | types(lines.splitlines())

    at_once = Tables(tmp_path, pipe, postgres, f"at_once_{name}_{store}")
    later = Tables(tmp_path, pipe, postgres, f"replayed_{name}_{store}")
    pipe.load(at_once.command, lines.splitlines(keepends=True))
    pipe.load(later.command, replayed.splitlines(keepends=True))
    for stream, count in tap.rows.items():
        table = stream.rpartition("-")[2]
        expected, found = in_order(at_once.rows(table)), in_order(later.rows(table))
        assert len(expected) == count
        assert own(found) == own(expected)
        if tap.writes_time_extracted:  # else it is the moment at which the lake or the target took the row
            assert [row["_sdc_extracted_at"] for row in found] == [row["_sdc_extracted_at"] for row in expected]


@pytest.mark.nightly
def test_a_replay_goes_on_where_the_last_one_ended(tmp_path, peers, postgres):
    """Two runs of a tap, two replays, each into the target: the second brings the second run's rows alone."""
    pipe = Pipe(tmp_path, peers)
    lake, state = tmp_path / "lake", tmp_path / "state.json"
    with rest(tmp_path, peers, postgres, None) as tap:
        lines = pipe.run(tap.command, b"", **tap.environment)
    target = Tables(tmp_path, pipe, postgres, "twice_replayed")

    kept = [line for line in lines.splitlines(keepends=True) if b'"RECORD"' in line]
    first, second = kept[:100], kept[100:]
    head = next(line for line in lines.splitlines(keepends=True) if b'"SCHEMA"' in line)
    counts = []
    for part in (first, second, []):
        pipe.burler("lake", "write", lake, "--tap-id", "rest", given=b"".join([head, *part]))
        went_on = ["--state", state] if state.exists() else []
        replayed = pipe.burler("lake", "read", lake, *went_on).splitlines(keepends=True)
        counts.append(sum(b'"RECORD"' in line for line in replayed))
        state.write_text(pipe.load(target.command, replayed))
    assert counts == [100, 150, 0]
    assert len(target.rows("users")) == 250
